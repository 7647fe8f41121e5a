"""Arrays of the host on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlx import _core
from rlx.errors import InputError
from rlx.ir.types import DType
from rlx.options import gpu_ordinal


def to_device(array: Any, device: str = "cuda") -> Any:
    """A copy of a host array on a GPU, as a DeviceArray of the same shape and element type.

    array: whatever numpy.asarray takes, of an element type that DLPack has (also ml_dtypes').
    The copy waits for what the GPU is doing and is complete on return; .numpy() of it copies back,
    and any DLPack library takes it.
    Raises InputError for other element types, DeviceError without a usable GPU.
    """
    array = np.asarray(array)
    known = {dtype.numpy for dtype in DType if dtype is not DType.STRING}
    if array.dtype not in known:
        raise InputError("a GPU has no arrays of this element type", got=array.dtype)
    return _core.cuda_to_device(np.ascontiguousarray(array).reshape(array.shape),
                                gpu_ordinal(device))
