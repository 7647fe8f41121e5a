"""Worked products (shape, bias, activation, type) where there is no library, on each rung."""

import pytest

import rlx
from tests.emu.case import emulated
from tests.products import ACTIVATIONS, check_product, product

# (m, k, n); the first stands for 1024x4096x4096, which tests/gpu/test_rungs.py takes.
SHAPES = [(128, 64, 192), (1, 3, 2)]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("rung", ["", "kernel", "tensor cores", "gemv"])
@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("m, k, n", SHAPES)
def test_products_without_a_library(dtype, rung, name, m, k, n):
    emulated("emu")
    used = check_product("emu", dtype, rung, name, m, k, n)
    if rung == "kernel":
        assert used == "tiled kernel"
    if (rung == "tensor cores" and dtype == "float16") or (rung == "gemv" and m == 1):
        assert used == rung


@pytest.mark.parametrize("rung", ["cublaslt", "cublaslt + region"])
def test_a_library_that_is_missing_cannot_be_forced(rung):
    emulated("emu")
    with rlx.load(product("gelu", 3, 2, "float32")[0], device="emu", force=rung) as session:
        with pytest.raises(rlx.DeviceError, match="library that is missing") as caught:
            session.run({"x": [[1.0, 2.0, 3.0]]})
    assert caught.value.op == "Gelu" and f"'{rung}'" in str(caught.value)


@pytest.mark.parametrize("rung", ["onednn", "gemm", "plain", "cuBLASLt"])
def test_a_rung_of_another_device_is_refused(rung):
    emulated("emu")
    with pytest.raises(rlx.InputError, match="force") as caught:
        rlx.load(product("gelu", 3, 2, "float32")[0], device="emu", force=rung)
    assert "cublaslt + region" in str(caught.value)
