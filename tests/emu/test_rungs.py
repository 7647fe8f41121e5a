"""Products (shape, bias, activation, type) and convolutions without a library, on each rung."""

import numpy as np
from onnx import helper
import pytest

import rlx
from tests.emu.case import emulated
from tests.products import ACTIVATIONS, check_product, model, product, random
from tests.tolerance import assert_network_output

CONV, TILES = "tensor core convolution", "implicit product"

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


def convolution(dtype, x, w, constant=True, op="Conv", **attributes):
    """The model of one convolution."""
    given = {"x": list(x)} | ({} if constant else {"w": list(w)})
    weights = {"w": random(*w) / 4} if constant else {}
    return model([helper.make_node(op, ["x", "w"], ["y"], **attributes)], given, weights, dtype)


@pytest.mark.parametrize("device, force, dtype, x, w, options, used, reason", [
    ("emu", "", "float16", (1, 16, 6, 6), (24, 16, 3, 3), {}, CONV, "tiles of 64 pixels"),
    ("emu", "", "float16", (1, 256, 6, 6), (24, 256, 3, 3), {}, CONV, "k in 8 parts"),
    ("emu:tf32", "", "float32", (1, 16, 6, 6), (24, 16, 3, 3), {}, CONV, "tiles of 64 pixels"),
    ("emu", "", "float32", (1, 16, 6, 6), (24, 16, 3, 3), {}, TILES, "float32 without TF32"),
    ("emu", "kernel", "float16", (1, 16, 6, 6), (24, 16, 3, 3), {}, TILES, "every type and layout"),
    ("emu", CONV, "float16", (1, 8, 6, 6), (8, 1, 3, 3), {"group": 8}, "direct", "few filters"),
    ("emu", CONV, "float16", (1, 4, 6, 6), (16, 4, 1, 1), {}, TILES, "few products"),
    ("emu", CONV, "float64", (1, 16, 6, 6), (24, 16, 3, 3), {}, TILES, "no such types"),
    ("emu", "", "float16", (1, 16, 6, 6), (16, 8, 3, 3), {"op": "ConvTranspose"}, CONV, "tiles"),
    ("emu", CONV, "float16", (1, 16, 6, 6), (16, 8, 3, 3),
     {"op": "ConvTranspose", "constant": False}, TILES, "no constants"),
])
def test_convolutions_say_what_they_run_on(device, force, dtype, x, w, options, used, reason):
    emulated(device)
    made = convolution(dtype, x, w, **options)
    feeds = {"x": random(*x, seed=3).astype(dtype)}
    if not options.get("constant", True):
        feeds["w"] = random(*w).astype(dtype)
    with rlx.load(made, device=device, force=force) as session:
        session.run(feeds)
        row, = [row for row in session.explain() if row["prim"] == "Conv"]
    assert row["rung"] == used and reason in row["reason"]


@pytest.mark.parametrize("dtype, weights", [("float16", None), ("float32", "f16")])
def test_packed_weights_follow_updates(dtype, weights):
    """Weights that were packed, or widened, for tensor cores are packed anew."""
    emulated("emu:tf32")
    x = random(1, 8, 1, 1, seed=3).astype(dtype)
    made = convolution(dtype, x.shape, (16, 8, 2, 2), pads=[0, 0, 1, 1])
    with rlx.load(made, device="emu:tf32", **({"weights": weights} if weights else {})) as session:
        for seed in (0, 1, 2):
            w = (random(16, 8, 2, 2, seed=seed) / 4).astype(np.float16)
            if seed:
                session.update_weights({"w": w.astype(dtype)})
            found = session.run({"x": x})["y"]
            row, = [row for row in session.explain() if row["prim"] == "Conv"]
            assert row["rung"] == CONV and ("widened" in row["reason"]) == bool(weights)
            truth = w[:, :, 0, 0].astype(float) @ x[0, :, 0, 0].astype(float)
            assert_network_output(found[0, :, 0, 0], truth, "float16", "y")


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
