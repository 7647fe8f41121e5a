"""Seeded values of every element type, special ones among them."""

import ml_dtypes
import numpy as np

from rlx.ir.types import DType

FLOATS = (DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.BFLOAT16)
INTEGERS = tuple(DType[f"{s}INT{b}"] for s in ("", "U") for b in (8, 16, 32, 64))
COMPLEX = (DType.COMPLEX64, DType.COMPLEX128)
SMALL_INTEGERS = (DType.INT4, DType.UINT4, DType.INT2, DType.UINT2)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -0.5, 2.5, 1.5, -1.5, np.inf, -np.inf, np.nan,
           1e-40, -1e-40, 1e30, -1e30)


def sample(dtype: DType, shape, rng: np.random.Generator) -> np.ndarray:
    """Values over the whole range of a type; a fifth of the floats are special."""
    if dtype is DType.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.is_integer:
        return _integers(dtype, shape, rng)
    with np.errstate(all="ignore"):
        x = rng.standard_normal(shape) * 10.0 ** rng.uniform(-3, 1.5, shape)
        if dtype in COMPLEX:
            return (x + 1j * rng.standard_normal(shape)).astype(dtype.numpy)
        x = np.where(rng.random(shape) < 0.2, rng.choice(SPECIAL, shape), x)
        return x.astype(dtype.numpy)


def _integers(dtype: DType, shape, rng) -> np.ndarray:
    info = ml_dtypes.iinfo(dtype.numpy)
    low, high = int(info.min), int(info.max)
    wide = np.uint64 if low == 0 else np.int64
    x = rng.integers(low, high, shape, dtype=wide, endpoint=True)
    edges = np.array([low, high, 0, 1, 2, 3, max(low, -1)], wide)
    return np.where(rng.random(shape) < 0.3, rng.choice(edges, shape), x).astype(dtype.numpy)
