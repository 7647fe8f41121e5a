"""Types of the IR: element types (ONNX's, by ONNX's numbers), dims, tensor and container types."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Union

import ml_dtypes
import numpy as np

from rlx.errors import ModelError
from rlx.ir.expr import Expr, as_int

Dim = Union[int, Expr]


class DType(enum.IntEnum):
    """ONNX element types; the value is onnx.TensorProto.DataType, also in C++ (core/dtype.h)."""

    FLOAT32 = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    FLOAT64 = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20
    UINT4 = 21
    INT4 = 22
    FLOAT4E2M1 = 23
    FLOAT8E8M0 = 24
    UINT2 = 25
    INT2 = 26

    @classmethod
    def _missing_(cls, value):
        raise ModelError("there is no such element type", got=value)

    @property
    def numpy(self) -> np.dtype:
        """The NumPy (or ml_dtypes) dtype of host arrays; one value a byte for sub-byte types."""
        return _NUMPY[self]

    @property
    def itemsize(self) -> int:
        """Bytes a value in activations; a string is the 8 bytes of its id."""
        return 8 if self is DType.STRING else _NUMPY[self].itemsize

    @property
    def is_float(self) -> bool:
        return self in FLOATS

    @property
    def is_integer(self) -> bool:
        return self in SIGNED or self in UNSIGNED

    @property
    def compute(self) -> DType:
        """The type a Region computes this storage type in: small floats widen, small ints too."""
        if self in (DType.FLOAT64, DType.COMPLEX64, DType.COMPLEX128, DType.BOOL, DType.STRING):
            return self
        if self.is_float:
            return DType.FLOAT32
        if self in (DType.INT4, DType.INT2):
            return DType.INT8
        if self in (DType.UINT4, DType.UINT2):
            return DType.UINT8
        return self


FLOATS = frozenset(
    d for d in DType if d.name.startswith(("FLOAT", "BFLOAT")))
HALVES = frozenset({DType.FLOAT16, DType.BFLOAT16})
HALF_NAMES = {"f16": DType.FLOAT16, "bf16": DType.BFLOAT16}  # as the option `weights` has them
SIGNED = frozenset(d for d in DType if d.name.startswith("INT"))
UNSIGNED = frozenset(d for d in DType if d.name.startswith("UINT"))

_NUMPY = {
    DType.FLOAT32: np.dtype(np.float32),
    DType.STRING: np.dtype(object),
    DType.BOOL: np.dtype(np.bool_),
    DType.FLOAT16: np.dtype(np.float16),
    DType.FLOAT64: np.dtype(np.float64),
    DType.COMPLEX64: np.dtype(np.complex64),
    DType.COMPLEX128: np.dtype(np.complex128),
    DType.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
    DType.FLOAT8E4M3FN: np.dtype(ml_dtypes.float8_e4m3fn),
    DType.FLOAT8E4M3FNUZ: np.dtype(ml_dtypes.float8_e4m3fnuz),
    DType.FLOAT8E5M2: np.dtype(ml_dtypes.float8_e5m2),
    DType.FLOAT8E5M2FNUZ: np.dtype(ml_dtypes.float8_e5m2fnuz),
    DType.UINT4: np.dtype(ml_dtypes.uint4),
    DType.INT4: np.dtype(ml_dtypes.int4),
    DType.FLOAT4E2M1: np.dtype(ml_dtypes.float4_e2m1fn),
    DType.FLOAT8E8M0: np.dtype(ml_dtypes.float8_e8m0fnu),
    DType.UINT2: np.dtype(ml_dtypes.uint2),
    DType.INT2: np.dtype(ml_dtypes.int2),
    **{DType[f"{s}INT{b}"]: np.dtype(f"{'u' if s else 'i'}{b // 8}")
       for s in ("", "U") for b in (8, 16, 32, 64)},
}
_FROM_NUMPY = {n: d for d, n in _NUMPY.items()}


def dtype_of(array_dtype) -> DType:
    """The DType of a NumPy dtype; KeyError for one that ONNX does not have."""
    dt = np.dtype(array_dtype)
    if dt.kind in "US":
        return DType.STRING
    return _FROM_NUMPY[dt.newbyteorder("=")]


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor: element type and shape; every rank is known, each dim an int or an Expr."""

    dtype: DType
    shape: tuple[Dim, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    def static_shape(self) -> tuple[int, ...] | None:
        """The shape as ints, or None when some dim is symbolic."""
        dims = tuple(as_int(d) for d in self.shape)
        return None if None in dims else dims

    def __str__(self) -> str:
        return f"{self.dtype.name.lower()}[{', '.join(str(d) for d in self.shape)}]"


@dataclass(frozen=True, slots=True)
class SequenceType:
    """A sequence of tensors of one element type; rank is theirs where it is known and equal.

    mixed: they surely differ in rank.
    """

    dtype: DType
    rank: int | None = None
    mixed: bool = False

    def __str__(self) -> str:
        return f"seq({self.dtype.name.lower()})"


@dataclass(frozen=True, slots=True)
class OptionalType:
    """An absent optional value: one that is present has its element's type instead."""

    element: TensorType | SequenceType

    def __str__(self) -> str:
        return f"optional({self.element})"


Type = Union[TensorType, SequenceType, OptionalType]
