"""How elements narrower than a byte are packed: bits per element, packing and unpacking."""

from __future__ import annotations

import numpy as np

from rlx.ir.types import DType

_NARROW = {DType.UINT4: 4, DType.INT4: 4, DType.FLOAT4E2M1: 4, DType.UINT2: 2, DType.INT2: 2}
_BITS = {dtype: _NARROW.get(dtype, 8 * dtype.itemsize) for dtype in DType}


def bits_of(dtype: DType) -> int:
    """Bits an element takes in a file."""
    return _BITS[dtype]


def is_narrow(dtype: DType) -> bool:
    """Whether several elements share a byte."""
    return dtype in _NARROW


def packed_nbytes(count: int, dtype: DType) -> int:
    """Bytes that `count` elements take in a file; the last byte may be partly used."""
    return (count * _BITS[dtype] + 7) // 8


def unpack(data: np.ndarray, dtype: DType, count: int) -> np.ndarray:
    """One value a byte from packed bytes: the first element is in the lowest bits."""
    bits = _BITS[dtype]
    parts = 8 // bits
    mask = (1 << bits) - 1
    values = np.empty((data.size, parts), np.uint8)
    for part in range(parts):
        np.right_shift(data, bits * part, out=values[:, part])
        values[:, part] &= mask
    return values.reshape(-1)[:count].view(dtype.numpy)


def unpack_rows(packed: np.ndarray, dtype: DType) -> np.ndarray:
    """One value a byte from rows of whole bytes, whatever of the last byte is used."""
    each = 8 // _BITS[dtype]
    flat = unpack(packed.reshape(-1), dtype, packed.size * each)
    return flat.reshape(*packed.shape[:-1], packed.shape[-1] * each)


def pack_rows(values: np.ndarray, dtype: DType) -> np.ndarray:
    """Rows of whole bytes from rows of one value a byte: what unpack_rows reverses."""
    each = 8 // _BITS[dtype]
    lacking = -values.shape[-1] % each
    if lacking:
        wide = np.zeros((*values.shape[:-1], values.shape[-1] + lacking), values.dtype)
        wide[..., :-lacking] = values
        values = wide
    packed = pack(np.ascontiguousarray(values), dtype)
    return packed.reshape(*values.shape[:-1], values.shape[-1] // each)


def pack(values: np.ndarray, dtype: DType) -> np.ndarray:
    """Packed bytes from one value a byte: what unpack reverses."""
    bits = _BITS[dtype]
    parts = 8 // bits
    flat = values.reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    padded = np.zeros(-(-flat.size // parts) * parts, np.uint8)
    padded[: flat.size] = flat
    packed = np.zeros(padded.size // parts, np.uint8)
    for part in range(parts):
        packed |= padded[part::parts] << (bits * part)
    return packed
