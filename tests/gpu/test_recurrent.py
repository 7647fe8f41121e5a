"""Recurrent layers on a GPU: cuDNN's and our kernel against float64, each forced too."""

import numpy as np
import pytest

import rlx
from tests.recurrent import BY_LIBRARY, NOT_BY_LIBRARY, layer
from tests.tolerance import tolerance


def check(gpu, kind, options, force="", dtype=np.float32):
    """Runs it three times (walk, recording, replay); gives the row of the layer."""
    made, feeds, expected = layer(kind, dtype=dtype, **options)
    with rlx.load(made, device=gpu, tf32=False, force=force) as session:
        runs = [session.run(feeds) for _ in range(3)]
        row, = [r for r in session.explain() if r["prim"] == "Recurrent"]
    for found in runs:
        for name, y in found.items():
            np.testing.assert_allclose(y, expected[name],
                                       **tolerance("rounded", np.dtype(dtype).name))
            np.testing.assert_array_equal(y, runs[0][name])
    return row


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", BY_LIBRARY)
def test_layers_by_the_library(gpu, name, dtype):
    row = check(gpu, *BY_LIBRARY[name], "cudnn", dtype)
    assert row["rung"] == "cudnn", row["reason"]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", BY_LIBRARY)
def test_layers_by_the_kernel(gpu, name, dtype):
    assert check(gpu, *BY_LIBRARY[name], "kernel", dtype)["rung"] == "a block for each row"


@pytest.mark.parametrize("name", NOT_BY_LIBRARY)
def test_other_layers_say_why_not(gpu, name):
    kind, options, word = NOT_BY_LIBRARY[name]
    assert word in check(gpu, kind, options)["reason"]


USUAL = {"steps": 60, "batch": 8, "size": 256, "hidden": 256}


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_a_layer_of_usual_size(gpu, kind):
    assert check(gpu, kind, USUAL)["rung"] == "cudnn"


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("kind, options", [
    ("LSTM", {}), ("LSTM", {"direction": "reverse", "batchwise": True}), ("GRU", {}),
    ("GRU", {"linear_before_reset": 0, "direction": "bidirectional", "batch": 11}),
    ("RNN", {"hidden": 512, "lengths": [60, 1, 7, 59, 30, 31, 2, 8], "size": 3})])
def test_a_layer_of_usual_size_by_steps(gpu, kind, options, dtype):
    row = check(gpu, kind, USUAL | options, "kernel", dtype)
    assert row["rung"] == "a launch for each step"
