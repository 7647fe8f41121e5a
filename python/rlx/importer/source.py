"""Bytes that weights are views of: a mapped file or a caller's buffer, with its identity."""

from __future__ import annotations

import mmap
import os
import stat
from typing import Any

import numpy as np

from rlx.errors import ModelError, ModelNotFoundError


class Source:
    """A buffer that is read in place. Views of it keep it alive.

    `identity` names the file's present content, or is None for bytes in memory. As with any mapped
    file, cutting it short while it is in use is the caller's fault and ends the process.
    """

    def __init__(self, buffer: Any, identity: str | None = None) -> None:
        self.buffer = memoryview(buffer).cast("B")
        self.identity = identity

    @property
    def nbytes(self) -> int:
        return self.buffer.nbytes

    def view(self, offset: int, nbytes: int) -> np.ndarray:
        """The bytes at offset as a read-only uint8 array."""
        array = np.frombuffer(self.buffer, np.uint8)[offset : offset + nbytes]
        array.flags.writeable = False
        return array

    def key(self, offset: int, nbytes: int) -> str | None:
        """What Weight.source says of these bytes."""
        return self.identity and f"{self.identity}@{offset}+{nbytes}"


def open_file(path: str) -> Source:
    """Map a regular file. Raises ModelNotFoundError or ModelError."""
    try:
        # A pipe would block when opened, so look first.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ModelError(f"{path!r} is not a regular file")
        with open(path, "rb") as file:
            return map_file(file.fileno())
    except FileNotFoundError as error:
        raise ModelNotFoundError(f"there is no file {path!r}") from error
    except (OSError, ValueError) as error:
        raise ModelError(f"{path!r} cannot be read: {error}") from error


def unchanged(path: str, source: Source) -> bool:
    """Whether the file at `path` is still the one that `source` maps, with the same content."""
    try:
        return _identity(os.stat(path)) == source.identity
    except OSError:
        return False


def _identity(info: os.stat_result) -> str:
    return f"{info.st_dev}:{info.st_ino}:{info.st_size}:{info.st_mtime_ns}"


def map_file(descriptor: int) -> Source:
    """Map an open regular file from its start."""
    info = os.fstat(descriptor)
    identity = _identity(info)
    if info.st_size == 0:
        return Source(b"", identity)
    return Source(mmap.mmap(descriptor, info.st_size, access=mmap.ACCESS_READ), identity)
