"""DLPack for every element type: NumPy's own exchange knows neither bfloat16 nor the float8s."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

# DLDataTypeCode of the types that NumPy's exchange refuses.
_CODES = {
    np.dtype(ml_dtypes.bfloat16): 4,
    np.dtype(ml_dtypes.float8_e4m3fn): 10,
    np.dtype(ml_dtypes.float8_e4m3fnuz): 11,
    np.dtype(ml_dtypes.float8_e5m2): 12,
    np.dtype(ml_dtypes.float8_e5m2fnuz): 13,
    np.dtype(ml_dtypes.float8_e8m0fnu): 14,
}
_DTYPES = {code: dtype for dtype, code in _CODES.items()}
_UNSIGNED = 1


class _Tensor(ctypes.Structure):
    """The head of dlpack.h's DLTensor, up to its type."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _tensor(capsule: Any) -> _Tensor:
    """The description in a capsule that nobody has consumed yet."""
    return _Tensor.from_address(_pointer(capsule, b"dltensor"))


class _Capsule:
    """Gives a capsule away, once."""

    def __init__(self, capsule: Any, device: tuple[int, int]):
        self._capsule, self._device = capsule, device

    def __dlpack__(self, **request: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def read(x: Any) -> np.ndarray:
    """The array behind an object with DLPack in host memory, without a copy.

    Raises BufferError, TypeError or ValueError where that cannot be.
    """
    capsule = x.__dlpack__()
    tensor = _tensor(capsule)
    dtype = _DTYPES.get(tensor.code)
    if dtype is not None:
        # The same bytes under a type that NumPy takes; the capsule is ours alone until consumed.
        tensor.code = _UNSIGNED
    array = np.from_dlpack(_Capsule(capsule, x.__dlpack_device__()))
    return array if dtype is None else array.view(dtype)


class to_dlpack:
    """An output for other libraries: `torch.from_dlpack(rlx.to_dlpack(array))`, without a copy.

    Takes any array of an rlx result, also of bfloat16 and the float8 types, for which the
    array's own __dlpack__ raises.
    """

    def __init__(self, array: np.ndarray):
        self._array = array

    def __dlpack__(self, **request: Any) -> Any:
        code = _CODES.get(self._array.dtype)
        if code is None:
            return self._array.__dlpack__(**request)
        capsule = self._array.view(f"u{self._array.dtype.itemsize}").__dlpack__()
        _tensor(capsule).code = code
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()
