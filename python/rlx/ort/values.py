"""OrtValue and OrtDevice: a value of a run, and where it lies."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from rlx import dlpack
from rlx.ir.types import dtype_of
from rlx.ort.types import element_name, numpy_of, tensor_name

_KINDS = {"cpu": 0, "cuda": 1, "gpu": 1}


class OrtDevice:
    """A device by kind ("cpu", "cuda") and number."""

    def __init__(self, kind: str, number: int):
        if kind not in _KINDS:
            raise ValueError(f"Unsupported device type: {kind}")
        self._kind, self._number = kind, number

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """The device of that name."""
        return OrtDevice(ort_device_name.lower(), device_id)

    def device_type(self) -> int:
        """0 for the CPU, 1 for a GPU."""
        return _KINDS[self._kind]

    def device_id(self) -> int:
        """Its number among its kind."""
        return self._number


def host(device_type: str, device_id: int = 0) -> None:
    """Refuses a device whose memory programs cannot fill here."""
    if OrtDevice(device_type.lower(), device_id).device_type() != 0:
        raise RuntimeError(f"rlx.ort keeps values in host memory, not on {device_type!r}; "
                           "rlx.Session returns what lies on a device")


def view_of(pointer: int, shape: Any, element: Any) -> np.ndarray:
    """The array at an address that the caller keeps valid."""
    dtype = numpy_of(element)
    count = math.prod(shape)
    if count == 0:
        return np.empty(tuple(shape), dtype)
    raw = (ctypes.c_byte * (count * dtype.itemsize)).from_address(pointer)
    return np.frombuffer(raw, dtype).reshape(tuple(shape))


class OrtValue:
    """A tensor, a sequence (list) or nothing; made by its class methods or by a run."""

    def __init__(self, value: np.ndarray | list | None, element: int = 0):
        self._value = value
        self._element = element  # of an empty sequence, which cannot tell

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj: np.ndarray, /, device_type: str = "cpu",
                            device_id: int = 0, vendor_id: int = -1) -> OrtValue:
        """Wraps a NumPy array, without a copy when it is contiguous."""
        host(device_type, device_id)
        if not isinstance(numpy_obj, np.ndarray):
            raise RuntimeError(f"an OrtValue is made of a NumPy array, not {type(numpy_obj)}")
        return cls(np.asarray(numpy_obj, order="C"))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray, /,
                                           onnx_element_type: int) -> OrtValue:
        """Wraps an array whose bytes are of that ONNX type, e.g. uint16 for bfloat16."""
        dtype = numpy_of(int(onnx_element_type))
        if dtype.itemsize != data.dtype.itemsize:
            raise RuntimeError(f"{data.dtype} has not the size of {dtype}")
        return cls(np.asarray(data, order="C").view(dtype))

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape: Any, element_type: Any,
                                     device_type: str = "cpu", device_id: int = 0,
                                     vendor_id: int = -1) -> OrtValue:
        """A new tensor; its elements are zero."""
        host(device_type, device_id)
        return cls(np.zeros(tuple(shape), numpy_of(element_type)))

    @classmethod
    def from_dlpack(cls, data: Any, /) -> OrtValue:
        """Wraps what has DLPack, without a copy."""
        return cls(dlpack.read(data))

    def numpy(self) -> np.ndarray:
        """The tensor as a NumPy array over the same memory."""
        return self._tensor()

    def _tensor(self) -> np.ndarray:
        if not isinstance(self._value, np.ndarray):
            raise RuntimeError("Only OrtValues that are Tensors are convertible to Numpy objects")
        return self._value

    def shape(self) -> list[int]:
        """The tensor's dims."""
        return list(self._tensor().shape)

    def data_type(self) -> str:
        """The type by onnxruntime's name, e.g. "tensor(float)"."""
        if self.is_tensor_sequence():
            return f"seq(tensor({element_name(self.element_type())}))"
        return tensor_name(self._tensor())

    def element_type(self) -> int:
        """The number of the element type in onnx.TensorProto.DataType."""
        first = self._value[0] if self.is_tensor_sequence() and self._value else self._value
        return int(dtype_of(first.dtype)) if isinstance(first, np.ndarray) else self._element

    def device_name(self) -> str:
        """"cpu": rlx.ort keeps values in host memory."""
        return "cpu"

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._tensor().ctypes.data

    def tensor_size_in_bytes(self) -> int:
        """Bytes of the elements."""
        return self._tensor().nbytes

    def has_value(self) -> bool:
        """False for an absent optional."""
        return self._value is not None

    def is_tensor(self) -> bool:
        """Whether it is a dense tensor."""
        return isinstance(self._value, np.ndarray)

    def is_tensor_sequence(self) -> bool:
        """Whether it is a sequence of tensors."""
        return isinstance(self._value, list)

    def is_sparse_tensor(self) -> bool:
        """False: runs give dense tensors."""
        return False

    def update_inplace(self, data: np.ndarray) -> None:
        """Copies an array of the same shape and dtype into the tensor."""
        mine = self._tensor()
        data = np.asarray(data)
        if data.shape != mine.shape or data.dtype != mine.dtype:
            raise RuntimeError("The input size of numpy arrays does not match the size of the "
                               f"OrtValue: {data.dtype}{list(data.shape)} into "
                               f"{mine.dtype}{list(mine.shape)}")
        np.copyto(mine, data)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self._tensor()
        changed = array if dtype is None else array.astype(dtype, copy=False)
        return changed.copy() if copy and changed is array else changed

    def __dlpack__(self, **request: Any) -> Any:
        return dlpack.to_dlpack(self._tensor()).__dlpack__(**request)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._tensor().__dlpack_device__()
