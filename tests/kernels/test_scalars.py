"""Every scalar function on every type it is defined for, against its NumPy reference."""

import re

import numpy as np
import pytest

from rlx.errors import UnsupportedError
from rlx.ir.scalars import SCALAR_OPS
from rlx.ir.types import DType
from tests.kernels.run_prim import elementwise
from tests.kernels.samples import COMPLEX, FLOATS, INTEGERS, sample
from tests.tolerance import tolerance

TYPES = (*FLOATS, *INTEGERS, DType.BOOL, *COMPLEX)
CASES = [(name, dtype) for name, op in SCALAR_OPS.items() for dtype in TYPES if op.allows(dtype)]
# x * 0 at -infinity: the limit is 0, the formula gives NaN; ONNX does not say which.
NO_MINUS_INFINITY = {"gelu", "gelu_tanh", "silu"}


def arguments(name: str, dtype: DType, n: int, rng) -> list[np.ndarray]:
    """Arguments inside the function's domain for the most part."""
    op = SCALAR_OPS[name]
    types = [DType.BOOL, dtype, dtype] if name == "select" else [dtype] * op.arity
    xs = [sample(t, n, rng) for t in types]
    with np.errstate(all="ignore"):
        if name in ("asin", "acos", "atanh"):
            xs[0] = np.where(rng.random(n) < 0.8, np.tanh(xs[0].astype(float)), xs[0])
        if name == "acosh":
            xs[0] = np.where(rng.random(n) < 0.8, 1 + np.abs(xs[0].astype(float)), xs[0])
        if name == "pow" and dtype.is_float:
            xs = [np.abs(xs[0].astype(float)) + 0.1, np.clip(xs[1].astype(float), -5, 5)]
        if name in NO_MINUS_INFINITY:
            xs[0] = np.maximum(xs[0].astype(float), -80)
        if name in ("pow", "shift_left", "shift_right") and dtype.is_integer:
            few = xs[1] % dtype.numpy.type(17)
            xs[1] = np.where(rng.random(n) < 0.8, few, xs[1])
        return [x.astype(t.numpy) for x, t in zip(xs, types)]


def wide(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "c":
        return x.astype(np.complex128)
    return x if x.dtype.kind in "biu" else x.astype(np.float64)


@pytest.mark.parametrize("n", [1, 7, 1001])
@pytest.mark.parametrize(("name", "dtype"), CASES, ids=lambda v: getattr(v, "name", v))
def test_matches_the_reference(name, dtype, n):
    op = SCALAR_OPS[name]
    xs = arguments(name, dtype, n, np.random.default_rng(n))
    out = op.result_dtype(dtype)
    got = elementwise(name, xs, out)
    want = np.asarray(op.reference(*map(wide, xs)))
    if not (out.is_float or out in COMPLEX):
        np.testing.assert_array_equal(got, want.astype(out.numpy))
        return
    with np.errstate(over="ignore"):
        rounded = wide(want.astype(out.numpy))
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(wide(got)[~finite], rounded[~finite])
    what = "tail" if name in NO_MINUS_INFINITY else "scalar function"
    np.testing.assert_allclose(wide(got)[finite], want[finite],
                               **tolerance(what, out.name.lower()))


@pytest.mark.parametrize("name", ["add", "div", "max", "eq", "select", "pow", "and"])
@pytest.mark.parametrize("shapes", [
    ((3, 5, 7), (7,)), ((3, 5, 7), (5, 1)), ((1,), (3, 5, 7)), ((), (4, 6)), ((4, 1), (1, 6)),
    ((2, 1, 300), (2, 70, 1)), ((0, 3), (3,)), ((1, 1), (1, 1)), ((), ())], ids=str)
def test_broadcasts(name, shapes):
    rng = np.random.default_rng(1)
    dtype = DType.BOOL if name == "and" else DType.FLOAT32
    xs = [rng.integers(0, 2, s).astype(dtype.numpy) if name == "and"
          else np.asarray(rng.uniform(0.5, 3, s), np.float32) for s in shapes]
    if name == "select":
        xs = [rng.integers(0, 2, shapes[0]).astype(bool), *xs]
    out = SCALAR_OPS[name].result_dtype(dtype)
    want = np.asarray(SCALAR_OPS[name].reference(*map(wide, xs)))
    for threads in (1, 2, 5):
        got = elementwise(name, xs, out, threads)
        assert got.shape == want.shape
        np.testing.assert_allclose(wide(got), wide(want), **tolerance("scalar function", "float32"))


def test_division_by_zero_and_by_minus_one():
    x = np.array([-128, -128, 7, 0], np.int8)
    y = np.array([-1, 0, 0, 0], np.int8)
    assert elementwise("div", [x, y], DType.INT8).tolist() == [-128, 0, 0, 0]
    assert elementwise("mod", [x, y], DType.INT8).tolist() == [0, 0, 0, 0]
    assert elementwise("fmod", [x, y], DType.INT8).tolist() == [0, 0, 0, 0]


def test_nan_wins_in_min_and_max():
    nan = np.float32(np.nan)
    x, y = np.array([nan, 1, nan], np.float32), np.array([1, nan, nan], np.float32)
    for op in ("min", "max"):
        assert np.isnan(elementwise(op, [x, y], DType.FLOAT32)).all()


def test_a_function_missing_for_a_type_is_named():
    with pytest.raises(UnsupportedError, match="exp.*int32"):
        elementwise("exp", [np.ones(3, np.int32)], DType.INT32)


def test_table_has_the_rows_of_the_header(source):
    text = (source / "kernels/include/scalar_ops.h").read_text()
    rows = {name: int(arity) for name, arity in re.findall(r'X\(\w+, "(\w+)", (\d)\)', text)}
    assert rows == {name: op.arity for name, op in SCALAR_OPS.items()}
