"""Softmax and its logarithm along every axis, with masked rows and prologues."""

import numpy as np
import pytest

from rlx.errors import UnsupportedError
from rlx.ir.prims import RegionOp, Softmax
from rlx.ir.reference.normalise import softmax as reference
from rlx.ir.types import DType, TensorType
from tests.kernels.run_prim import region, run_prim
from tests.kernels.samples import FLOATS
from tests.tolerance import tolerance

SHAPES = [((5,), 0), ((64, 128), 1), ((64, 128), 0), ((3, 21, 700), 1), ((1000, 10), 1),
          ((2, 3, 4, 5), 2), ((1, 30000), 1), ((8, 1), 1), ((0, 4), 1), ((4, 0), 1)]


def check(prim: Softmax, inputs, dtype: DType, threads: int = 1) -> np.ndarray:
    out = TensorType(dtype, inputs[0].shape)
    want = reference(prim, inputs, [out], lambda dim: dim)[0]
    got, = run_prim(prim, inputs, [out], threads)
    np.testing.assert_allclose(got.astype(float), want.astype(float),
                               **tolerance("softmax", dtype.name.lower()))
    return got


@pytest.mark.parametrize("log", [False, True], ids=["", "log"])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_against_the_reference(shape, axis, dtype, log):
    rng = np.random.default_rng(2)
    x = (rng.standard_normal(shape) * 3).astype(dtype.numpy)
    for threads in (1, 2, 5):
        check(Softmax(axis, log), [x], dtype, threads)


@pytest.mark.parametrize("axis", [0, 1])
def test_large_values_do_not_overflow(axis):
    x = np.array([[1e4, 1e4 - 1, -1e4], [-1e30, 88, 3e38], [0, 0, 0]], np.float32)
    check(Softmax(axis), [x], DType.FLOAT32)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("log", [False, True], ids=["", "log"])
def test_masked_and_special_values(axis, log):
    """-inf gets no weight; a row of nothing else is NaN, as the formula says, and NaN spreads."""
    x = np.random.default_rng(0).standard_normal((40, 50)).astype(np.float32)
    x[x < 0] = -np.inf
    x[7, :] = x[:, 9] = -np.inf
    x[20, 21] = np.nan
    x[22, 23] = np.inf
    check(Softmax(axis, log), [x], DType.FLOAT32)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT16], ids=lambda d: d.name)
def test_prologue(axis, dtype):
    """softmax(x / 8 + mask) without the sum in memory."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((6, 50, 70)).astype(dtype.numpy)
    mask = np.where(rng.random((50, 70)) < 0.3, -40, 0).astype(dtype.numpy)
    ops = [RegionOp("load", dtype, (0,)), RegionOp("const", dtype, (), 0.125),
           RegionOp("mul", dtype, (0, 1)), RegionOp("load", dtype, (1,)),
           RegionOp("add", dtype, (2, 3))]
    check(Softmax(axis, prologue=region(x.shape, [x.shape, mask.shape], ops)), [x, mask], dtype, 2)


def test_integers_are_refused():
    with pytest.raises(UnsupportedError, match="int32"):
        run_prim(Softmax(0), [np.ones(3, np.int32)], [TensorType(DType.INT32, (3,))])
