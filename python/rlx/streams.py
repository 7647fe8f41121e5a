"""Streams of CUDA as other libraries name them."""

from __future__ import annotations

from typing import Any

from rlx.errors import InputError


def handle_of(stream: Any, device: str = "cuda") -> int:
    """The handle of a stream; 0 is CUDA's default.

    stream: a handle, an object with one (PyTorch's), or with __cuda_stream__ (the protocol of
    CUDA's Python libraries), or None. Raises InputError for anything else, and on a CPU.
    """
    if device == "cpu":
        raise InputError("a stream is for runs on a GPU", expected="no stream", got="device 'cpu'")
    if stream is None:
        return 0
    if hasattr(stream, "__cuda_stream__"):
        stream = stream.__cuda_stream__()[1]
    handle = getattr(stream, "cuda_stream", stream)
    if isinstance(handle, bool) or not isinstance(handle, int) or not 0 <= handle < 2**64:
        raise InputError("stream is no stream", expected="a handle, or an object with one",
                         got=type(stream).__name__ if not isinstance(handle, int) else handle)
    return handle
