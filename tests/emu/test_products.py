"""Which kernel of ours does a product without a library, unasked, and that it is right."""

import ml_dtypes
import numpy as np
import pytest

import rlx
from tests.emu.case import emulated
from tests.products import ACTIVATIONS, product, random
from tests.tolerance import assert_network_output, tolerance

TILES = [(200, 264, 232, "128 x 128"), (70, 64, 64, "64 x 64"), (8, 64, 64, "16 x 64"),
         (16, 2048, 24, "16 x 64, k in"), (33, 45, 37, "64 x 64")]


@pytest.mark.parametrize("m, k, n, tile", TILES)
@pytest.mark.parametrize("device", ["emu", "emu:descending"])
def test_half_types_are_multiplied_by_tensor_cores_unasked(device, m, k, n, tile):
    emulated(device)
    made, w, b = product("relu", k, n, "float16")
    with rlx.load(made, device=device) as session:
        x = random(m, k, seed=3).astype("float16")
        found = session.run({"x": x})["y"]
        row = session.explain()[0]
    truth = np.maximum(x.astype(float) @ w.astype("float16").astype(float) +
                       b.astype("float16").astype(float), 0)
    assert_network_output(found, truth, "float16", "y")
    assert row["rung"] == "tensor cores" and f"tiles of {tile}" in row["reason"]


@pytest.mark.parametrize("m, rung", [(1, "gemv"), (4, "gemv"), (16, "gemv"), (17, "tiled kernel")])
@pytest.mark.parametrize("weights", ["", "f16", "bf16"])
def test_products_that_tensor_cores_refuse(m, rung, weights):
    """float32 without TF32, and half weights under float32 activations, which are not rounded."""
    emulated("emu")
    made, w, b = product("silu", 160, 72, "float32")
    with rlx.load(made, device="emu", weights=weights, tf32=False) as session:
        x = random(m, 160, seed=3).astype("float32")
        found = session.run({"x": x})["y"]
        row = session.explain()[0]
    kept = {"": "float32", "f16": "float16", "bf16": ml_dtypes.bfloat16}[weights]
    w = w.astype("float32").astype(kept).astype(float)
    truth = ACTIVATIONS["silu"](x.astype(float) @ w + b)
    np.testing.assert_allclose(found, truth, **tolerance("rounded", "float32"))
    assert row["rung"] == rung, row
