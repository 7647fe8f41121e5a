"""Reductions of every kind and type along every choice of axes, with and without a prologue."""

import numpy as np
import pytest

from rlx.errors import UnsupportedError
from rlx.ir.prims import Reduce, RegionOp
from rlx.ir.reference.reduction import reduce as reference
from rlx.ir.types import DType, TensorType
from tests.kernels.run_prim import region, run_prim
from tests.kernels.samples import FLOATS, INTEGERS
from tests.tolerance import tolerance

SUMS = ("sum", "mean", "l1", "l2", "sum_square")
KINDS = (*SUMS, "max", "min", "prod", "log_sum", "log_sum_exp", "argmax", "argmin")
# Shapes with axes that leave rows, columns, rows in the middle, both ends, and nothing.
LAYOUTS = [((7,), (0,)), ((64, 100), (1,)), ((64, 100), (0,)), ((3, 50, 40), (1,)),
           ((6, 5, 4, 130), (0, 2, 3)), ((6, 5, 4, 130), (1,)), ((4, 1, 3, 1), (1, 3)),
           ((5, 6), ()), ((2100,), (0,)), ((2, 5000), (1,)), ((5000, 2), (0,)),
           ((700, 3), (1,)), ((9, 50, 4, 4), (2, 3))]

# Roots and logarithms of sums only where ONNX has them: narrower integers would wrap.
CASES = [(k, d) for k in KINDS for d in (*FLOATS, *INTEGERS)
         if k not in ("l2", "log_sum") or d.is_float or d.itemsize >= 4]


def values(kind: str, dtype: DType, shape, rng) -> np.ndarray:
    if dtype.is_integer:
        low = 1 if kind == "log_sum" else 0 if dtype.name.startswith("U") else -9
        return rng.integers(low, 10, shape).astype(dtype.numpy)
    x = rng.standard_normal(shape)
    if kind == "prod":
        x = 1 + x * 0.01
    if kind == "log_sum":
        x = np.abs(x) + 0.1
    if kind in ("argmax", "argmin", "max", "min"):
        x = np.round(x * 4)  # equal values
    return np.asarray(x).astype(dtype.numpy)


def check(prim: Reduce, inputs, dtype: DType, threads: int, what: str = "sum") -> None:
    shape = inputs[0].shape
    kept = tuple(1 if k in prim.axes else d for k, d in enumerate(shape)
                 if prim.keepdims or k not in prim.axes)
    out = TensorType(DType.INT64 if prim.kind.startswith("arg") else dtype, kept)
    want = np.asarray(reference(prim, inputs, [out], lambda dim: dim)[0])
    got, = run_prim(prim, inputs, [out], threads)
    if not out.dtype.is_float:
        np.testing.assert_array_equal(got, want)
        return
    sizes = np.sum(np.abs(inputs[0].astype(float)), prim.axes, keepdims=prim.keepdims)
    scale = np.where(np.isfinite(sizes), np.maximum(sizes, 1), 1) if prim.kind == "sum" else 1.0
    np.testing.assert_allclose(got / scale, want / scale, **tolerance(what, dtype.name.lower()))


@pytest.mark.parametrize(("kind", "dtype"), CASES, ids=lambda v: getattr(v, "name", v))
@pytest.mark.parametrize(("shape", "axes"), LAYOUTS, ids=str)
def test_kind_and_type(kind, dtype, shape, axes):
    arg = kind.startswith("arg")
    if arg and len(axes) != 1:
        axes = (len(shape) - 1,)
    rng = np.random.default_rng(len(shape) + sum(shape))
    x = values(kind, dtype, shape, rng)
    check(Reduce(kind, axes, keepdims=bool(rng.integers(2)), select_last_index=arg and bool(
        rng.integers(2))), [x], dtype, threads=int(rng.choice([1, 2, 5])))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("shape", "axes"), [((9, 70), (1,)), ((70, 9), (0,)), ((3, 4, 600), (2,)),
                                             ((40000,), (0,)), ((700, 3), (1,))], ids=str)
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT16], ids=lambda d: d.name)
def test_prologue(kind, shape, axes, dtype):
    """What is reduced is x + row, which is never written."""
    rng = np.random.default_rng(3)
    x, row = values(kind, dtype, shape, rng), values(kind, dtype, shape[-1:], rng)
    op = "mul" if kind == "prod" else "add"
    ops = [RegionOp("load", dtype, (0,)), RegionOp("load", dtype, (1,)),
           RegionOp(op, dtype, (0, 1))]
    prologue = region(shape, [shape, shape[-1:]], ops)
    what = "rounded" if kind == "prod" else "sum"  # each factor is rounded by the prologue
    check(Reduce(kind, axes, True, prologue=prologue), [x, row], dtype, 2, what)


@pytest.mark.parametrize("kind", ["max", "min", "argmax", "argmin", "sum", "log_sum_exp"])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("axis", [0, 1])
def test_special_values(kind, special, axis):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((37, 41)).astype(np.float32)
    x[rng.random(x.shape) < 0.05] = special
    x[3, :] = x[:, 5] = special
    for last in (False, True) if kind.startswith("arg") else (False,):
        check(Reduce(kind, (axis,), False, last), [x], DType.FLOAT32, threads=1)


@pytest.mark.parametrize(("kind", "empty"), [
    ("sum", 0), ("prod", 1), ("max", -np.inf), ("min", np.inf), ("mean", np.nan), ("l2", 0),
    ("log_sum", -np.inf), ("log_sum_exp", -np.inf)])
@pytest.mark.parametrize(("shape", "axis"), [((4, 0), 1), ((0, 4), 0)], ids=str)
def test_nothing_gives_the_identity(kind, empty, shape, axis):
    prim = Reduce(kind, (axis,), False)
    got, = run_prim(prim, [np.zeros(shape, np.float32)], [TensorType(DType.FLOAT32, (4,))])
    np.testing.assert_array_equal(got, np.full(4, empty, np.float32))


def test_booleans_have_extremes_and_no_sum():
    x = np.random.default_rng(0).random((6, 50)) < 0.5
    for kind, want in (("max", x.any(1)), ("min", x.all(1))):
        got, = run_prim(Reduce(kind, (1,), False), [x], [TensorType(DType.BOOL, (6,))])
        np.testing.assert_array_equal(got, want)
    with pytest.raises(UnsupportedError, match="bool"):
        run_prim(Reduce("sum", (1,), False), [x], [TensorType(DType.BOOL, (6,))])


def test_integer_sums_wrap_in_their_type():
    x = np.full((1, 1000), 100, np.int8)
    got, = run_prim(Reduce("sum", (1,), False), [x], [TensorType(DType.INT8, (1,))])
    assert got[0] == (100000 + 128) % 256 - 128


def test_a_norm_survives_squares_that_do_not_fit():
    x = np.array([[3e30, 4e30], [3e-30, 4e-30]], np.float32)
    got, = run_prim(Reduce("l2", (1,), False), [x], [TensorType(DType.FLOAT32, (2,))])
    np.testing.assert_allclose(got, [5e30, 5e-30], **tolerance("scalar function", "float32"))
