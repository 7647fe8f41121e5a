"""ScatterElements and GatherElements at sizes that several threads share, duplicates included."""

import numpy as np
import pytest

from rlx.ir.prims import Gather, Scatter
from rlx.ir.types import DType, TensorType
from tests.kernels.run_prim import run_prim

CASES = [  # shape of data, shape of indices, axis
    ((300,), (5000,), 0),
    ((40, 64), (900, 64), 0),
    ((40, 64, 3), (900, 64, 3), 0),
    ((40, 70, 5), (900, 61, 5), 0),
    ((70, 40, 9), (65, 200, 9), 1),
    ((6, 70, 40), (6, 70, 300), 2),
    ((64, 40), (50, 3000), 1),
    ((3, 4), (0, 4), 0),
]
COMBINE = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def indices_of(rng, shape, axis, length, expanded):
    """Random indices, negative ones too; `expanded`: one for each step along the axis."""
    if expanded:
        shape = tuple(n if k == axis else min(n, 1) for k, n in enumerate(shape))
    return rng.integers(-length, length, shape)


def places(indices, axis):
    """What data is indexed by, as NumPy takes it."""
    grid = list(np.indices(indices.shape))
    grid[axis] = indices
    return tuple(grid)


@pytest.mark.parametrize("expanded", [False, True], ids=["each", "expanded"])
@pytest.mark.parametrize("reduction", ["none", *COMBINE])
@pytest.mark.parametrize(("data_shape", "shape", "axis"), CASES, ids=str)
def test_scatter_elements(data_shape, shape, axis, reduction, expanded):
    rng = np.random.default_rng(3)
    data = rng.integers(-9, 9, data_shape).astype(np.float32)
    picked = indices_of(rng, shape, axis, data_shape[axis], expanded)
    indices = np.ascontiguousarray(np.broadcast_to(picked, shape))
    updates = rng.choice([-1.0, 1.0] if reduction == "mul" else np.arange(-9.0, 9), shape)
    want = data.astype(np.float64)
    at = places(indices, axis)
    if reduction == "none":
        flat = np.ravel_multi_index(tuple(np.where(a < 0, a + n, a).ravel()
                                          for a, n in zip(at, data_shape)), data_shape)
        for place, update in zip(flat, updates.ravel()):  # the last of duplicates stays
            want.ravel()[place] = update
    else:
        COMBINE[reduction].at(want, at, updates)
    for threads in (1, 3):
        got, = run_prim(Scatter("elements", axis, reduction),
                        [data, indices.astype(rng.choice([np.int32, np.int64])),
                         updates.astype(np.float32)],
                        [TensorType(DType.FLOAT32, data_shape)], threads=threads)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", [DType.UINT8, DType.FLOAT16, DType.FLOAT32, DType.FLOAT64,
                                   DType.COMPLEX128], ids=lambda d: d.name)
@pytest.mark.parametrize(("data_shape", "shape", "axis"), CASES, ids=str)
def test_gather_elements(data_shape, shape, axis, dtype):
    rng = np.random.default_rng(4)
    data = rng.integers(0, 200, data_shape).astype(dtype.numpy)
    indices = indices_of(rng, shape, axis, data_shape[axis], False)
    for threads in (1, 3):
        got, = run_prim(Gather("elements", axis), [data, indices], [TensorType(dtype, shape)],
                        threads=threads)
        np.testing.assert_array_equal(got, data[places(indices, axis)])


@pytest.mark.parametrize("at", [0, 40000])
def test_an_index_out_of_range_is_named_and_nothing_is_written(at):
    data, indices = np.zeros(8, np.float32), np.zeros(50000, np.int64)
    indices[at] = 8
    with pytest.raises(Exception, match="index 8 is out of range"):
        run_prim(Scatter("elements", 0, "add"), [data, indices, np.ones(50000, np.float32)],
                 [TensorType(DType.FLOAT32, (8,))], threads=2)
