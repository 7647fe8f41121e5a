"""Casts between every two types: exact, by the rules of ONNX Cast."""

import ml_dtypes
import numpy as np
import pytest

from rlx.ir.prims import RegionOp
from rlx.ir.types import DType, TensorType
from tests.kernels.run_prim import region, run_prim
from tests.kernels.samples import COMPLEX, SMALL_INTEGERS, sample

TYPES = [d for d in DType if d is not DType.STRING]
FLOAT8 = (DType.FLOAT8E4M3FN, DType.FLOAT8E4M3FNUZ, DType.FLOAT8E5M2, DType.FLOAT8E5M2FNUZ)
BITS = {DType.INT4: 4, DType.UINT4: 4, DType.INT2: 2, DType.UINT2: 2}


def values_of(dtype: DType) -> np.ndarray:
    """All values of a type of one byte, else a sample and the edges of every other type."""
    if dtype in BITS:
        return np.arange(1 << BITS[dtype], dtype=np.uint8).view(dtype.numpy)
    if dtype is DType.FLOAT4E2M1:
        return np.arange(16, dtype=np.uint8).view(dtype.numpy)
    if dtype.itemsize == 1 and dtype is not DType.BOOL:
        return np.arange(256, dtype=np.uint8).view(dtype.numpy)
    x = sample(dtype, 700, np.random.default_rng(0))
    if dtype is DType.BOOL or dtype.is_integer:
        return x
    with np.errstate(all="ignore"):
        edges = np.concatenate([np.arange(-20, 20, 0.25), np.linspace(-300, 300, 101), [
            448, 464, 465, 57344, 61440, 65504, 65520, 2.0**31, 2.0**63, -2.0**63, 2.0**64,
            2.0**-126, 1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-11 + 2.0**-40]])
        return np.concatenate([x, edges.astype(dtype.numpy)])


def to_integer(x: np.ndarray, target: DType) -> np.ndarray:
    """Truncated; floats out of range give the nearest limit and NaN 0, integers wrap."""
    bits = BITS.get(target, 8 * target.itemsize)
    signed = target.name.startswith("INT")
    found = []
    for v in x.tolist():
        if isinstance(v, float):
            low, high = (-(2**31), 2**31 - 1) if target in SMALL_INTEGERS else (
                (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1))
            v = 0 if np.isnan(v) else int(max(min(v, 1e30), -1e30))
            v = max(low, min(high, v))
        v &= (1 << bits) - 1
        found.append(v - (1 << bits) if signed and v >> (bits - 1) else v)
    wide = np.uint64 if target is DType.UINT64 else np.int64
    return np.array(found, wide).astype(target.numpy)


def nearest(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """x rounded once, by search; ml_dtypes goes through float32 and may round twice."""
    codes = np.arange(0x7F80, dtype=np.uint16)  # the finite values that are not negative
    values = codes.view(dtype).astype(np.float64)
    above = np.searchsorted(values, np.abs(x)).clip(1, codes.size - 1)
    low, high = np.abs(x) - values[above - 1], values[above] - np.abs(x)
    up = (high < low) | ((high == low) & (above % 2 == 0))
    found = np.copysign(values[np.where(up, above, above - 1)], x).astype(dtype)
    return np.where(np.abs(x) < values[-1], found, x.astype(dtype))


def to_power(x: np.ndarray, saturate: bool, mode: str) -> np.ndarray:
    """x as float8e8m0 by the table in the text of ONNX Cast; nearest goes up at 1.5 times 2^k."""
    powers = 2.0 ** np.arange(-127, 128)
    with np.errstate(invalid="ignore"):
        above = np.searchsorted(powers, x).clip(0, 254)
        down = np.where(powers[above] == x, above, (above - 1).clip(0))
        near = np.where(x >= 1.5 * powers[down], above, down)
        code = {"up": above, "down": down, "nearest": near}[mode]
        outside = np.isnan(x) | (not saturate) & ((x > powers[-1]) | (x < powers[0]))
        code = np.where(x > powers[-1], 254, np.where(x < powers[0], 0, code))
    return np.where(outside, 255, code).astype(np.uint8).view(DType.FLOAT8E8M0.numpy)


def expected(x: np.ndarray, source: DType, target: DType, saturate: bool) -> np.ndarray:
    if source in COMPLEX and target not in (*COMPLEX, DType.BOOL):
        x = x.real
    if source.is_float:
        x = x.astype(np.float64)
    elif source in SMALL_INTEGERS:
        x = x.astype(np.int64)
    if target is DType.BOOL:
        return x != 0
    if target in SMALL_INTEGERS or target.is_integer:
        return to_integer(x if x.dtype.kind != "f" else x.astype(np.float64), target)
    if target is DType.FLOAT8E8M0:
        return to_power(x.astype(np.float64), saturate, "up")
    if target in FLOAT8 and saturate:
        limit = float(ml_dtypes.finfo(target.numpy).max)
        x = np.clip(x.astype(np.float32 if x.dtype.kind != "f" else x.dtype), -limit, limit)
    if target is DType.BFLOAT16 and source in (DType.FLOAT64, DType.COMPLEX128):
        return nearest(x, target.numpy)
    return x.astype(target.numpy)


def same(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Equal bits, or NaN on both sides."""
    bits = (a.view(np.uint8).reshape(a.size, -1) for a in (got, np.ascontiguousarray(want)))
    equal = np.equal(*bits).all(axis=1)
    if got.dtype.kind in "fcV":
        wide = np.complex128 if got.dtype.kind == "c" else np.float64
        with np.errstate(all="ignore"):
            a, b = got.astype(wide), want.astype(wide)
        equal |= np.isnan(a) & np.isnan(b)
        if got.dtype == DType.FLOAT4E2M1.numpy:  # NaN becomes a zero of either sign
            equal |= (a == 0) & (b == 0)
    return equal


@pytest.mark.parametrize("source", TYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("target", TYPES, ids=lambda d: d.name)
def test_cast(source, target):
    x = values_of(source)
    ops = [RegionOp("load", source, (0,)), RegionOp("cast", target, (0,), 1)]
    for saturate in (True, False) if target in (*FLOAT8, DType.FLOAT8E8M0) else (True,):
        ops[1] = RegionOp("cast", target, (0,), int(saturate))
        got, = run_prim(region(x.shape, [x.shape], ops), [x], [TensorType(target, x.shape)])
        with np.errstate(all="ignore"):
            want = x if source is target else expected(x, source, target, saturate)
        wrong = ~same(got, want)
        if target is DType.FLOAT8E8M0 and source is not target:  # unspecified below 0
            wrong &= ~np.signbit(np.real(x).astype(np.float64))
        wrong = np.flatnonzero(wrong)
        assert not wrong.size, (x[wrong[:5]], got[wrong[:5]], want[wrong[:5]])


@pytest.mark.parametrize(("bits", "mode"), [(1, "up"), (3, "down"), (5, "nearest")])
def test_rounding_to_powers_of_two(bits, mode):
    x = np.array([0, 1e-42, 2.0**-127, 1e-38, 0.124, 0.25, 0.3, 0.375, 1.1, 1.5, 1.6, 1.5e38, 3e38,
                  np.inf, np.nan], np.float32)
    out = TensorType(DType.FLOAT8E8M0, x.shape)
    for saturate in (True, False):
        ops = [RegionOp("load", DType.FLOAT32, (0,)),
               RegionOp("cast", DType.FLOAT8E8M0, (0,), bits - 1 + saturate)]
        got, = run_prim(region(x.shape, [x.shape], ops), [x], [out])
        want = to_power(x.astype(np.float64), saturate, mode)
        np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


def test_arithmetic_on_small_types_rounds_where_asked():
    """(a + b) as float16 and then as float32 has lost what float16 cannot hold."""
    a, b = np.array([2048.0], np.float16), np.array([1.0], np.float16)
    half, single = DType.FLOAT16, DType.FLOAT32
    loads = [RegionOp("load", half, (0,)), RegionOp("load", half, (1,)),
             RegionOp("add", half, (0, 1))]
    out = [TensorType(single, (1,))]
    kept = [*loads, RegionOp("cast", single, (2,), 1)]
    rounded = [*loads, RegionOp("cast", half, (2,), 1), RegionOp("cast", single, (3,), 1)]
    assert run_prim(region((1,), [(1,), (1,)], kept), [a, b], out)[0] == 2049
    assert run_prim(region((1,), [(1,), (1,)], rounded), [a, b], out)[0] == 2048
