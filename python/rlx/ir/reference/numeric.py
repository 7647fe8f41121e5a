"""Number formats of the references: widening to what is computed in, rounding to what is kept."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from rlx.ir.types import DType

_SMALL_INTS = {DType.INT4: (-8, 7), DType.UINT4: (0, 15), DType.INT2: (-2, 1), DType.UINT2: (0, 3)}


def widen(x: np.ndarray, dtype: DType) -> np.ndarray:
    """x in the type that references compute in: float64, complex128, or its own integer type."""
    if dtype in (DType.COMPLEX64, DType.COMPLEX128):
        return x.astype(np.complex128)
    if dtype.is_float:
        return x.astype(np.float64)
    if dtype in _SMALL_INTS:
        return x.astype(dtype.compute.numpy)
    return x


def store(x: np.ndarray, dtype: DType) -> np.ndarray:
    """x, computed wide, rounded once to dtype."""
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(dtype.numpy)


def cast(x: np.ndarray, source: DType, target: DType, mode: int = 1) -> np.ndarray:
    """ONNX Cast of a wide array, giving a wide array that holds only values of `target`.

    mode is the imm of a Region's cast: 1 saturates, 2 rounds float8e8m0 down, 4 to nearest.
    """
    with np.errstate(all="ignore"):
        if target is DType.STRING or source is DType.STRING:
            return _cast_text(x, source, target)
        if target is DType.BOOL:
            return x != 0
        if target in (DType.COMPLEX64, DType.COMPLEX128):
            return x.astype(target.numpy).astype(np.complex128)
        if target.is_float:
            return _to_float(np.real(x).astype(np.float64), target, mode)
        return _to_integer(np.real(x), target)


def _to_float(x: np.ndarray, target: DType, mode: int) -> np.ndarray:
    if target in (DType.FLOAT64, DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16):
        return x.astype(target.numpy).astype(np.float64)
    if target is DType.FLOAT8E8M0:
        return _to_power_of_two(np.abs(x), mode)
    limit = float(ml_dtypes.finfo(target.numpy).max)
    if target is DType.FLOAT4E2M1:
        x = np.where(np.isnan(x), 0.0, np.clip(x, -limit, limit))
    elif mode & 1:
        x = np.where(np.abs(x) > limit, np.copysign(limit, x), x)
    return x.astype(target.numpy).astype(np.float64)


def _to_power_of_two(x: np.ndarray, mode: int) -> np.ndarray:
    """The power of two for x >= 0, from 2^-127 to 2^127; beyond them saturated or NaN."""
    low, high = 2.0**-127, 2.0**127
    inside = np.where((x >= low) & (x <= high), x, 1.0)
    fraction, exponent = np.frexp(inside)  # fraction in [0.5, 1)
    above = fraction > 0.5 if not mode & 6 else fraction >= 0.75 if mode & 4 else False
    y = np.ldexp(0.5, exponent + above)
    beyond = np.where(x > high, high, low) if mode & 1 else np.nan
    y = np.where((x >= low) & (x <= high), np.minimum(y, high), beyond)
    return np.where(np.isnan(x), np.nan, y)


def _to_integer(x: np.ndarray, target: DType) -> np.ndarray:
    """Floats are truncated and saturated, NaN gives 0; integers keep their low bits, as do floats
    on the way to less than a byte."""
    if x.dtype.kind == "f":
        x = _saturated(x, np.int64 if target in _SMALL_INTS else target.numpy)
    if target in _SMALL_INTS:
        bits = 4 if target in (DType.INT4, DType.UINT4) else 2
        low = x.astype(np.int64) & ((1 << bits) - 1)
        signed = target in (DType.INT4, DType.INT2)
        low = np.where(low >= 1 << (bits - 1), low - (1 << bits), low) if signed else low
        return low.astype(target.compute.numpy)
    return x.astype(target.numpy)


def _saturated(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    info = np.iinfo(dtype)
    whole = np.where(np.isnan(x), 0.0, np.trunc(x))
    over, under = whole >= float(info.max + 1), whole < float(info.min)
    y = np.where(over | under, 0.0, whole).astype(dtype)
    return np.where(over, info.max, np.where(under, info.min, y)).astype(dtype)


def _cast_text(x: np.ndarray, source: DType, target: DType) -> np.ndarray:
    if target is DType.STRING:
        own = x if source is DType.STRING else x.astype(source.numpy)  # the digits of its type
        return np.array([str(v) for v in own.reshape(-1)], object).reshape(x.shape)
    kind = float if target.is_float else int
    flat = [kind(v) for v in x.reshape(-1).tolist()]
    return widen(np.array(flat).astype(target.numpy).reshape(x.shape), target)
