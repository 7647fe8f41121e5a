"""The folder of compiled GPU kernels: where it is and what lies there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from rlx import _core
from rlx.errors import InputError


@dataclass(frozen=True, slots=True)
class CacheFile:
    """A file of the kernel cache: its size in bytes, and when it was written or, to a day, last
    used (seconds, Unix)."""

    path: Path
    bytes: int
    modified: float


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """The kernel cache. folder is None when it is switched off, and need not exist yet."""

    folder: Path | None
    files: tuple[CacheFile, ...]

    @property
    def bytes(self) -> int:
        """Of all files together."""
        return sum(file.bytes for file in self.files)


def cache_info() -> CacheInfo:
    """Where compiled kernels and choices of libraries are kept, and what is there.

    The folder is that of rlx.configure(kernel_cache=) or RLX_CUDA_PTX_CACHE, else
    $XDG_CACHE_HOME/rlx/kernels, else ~/.cache/rlx/kernels. It keeps to 1 GiB, where what was used
    longest ago leaves first. Other files may lie there too; `rlx cache clear` removes ours only.
    InputError where it cannot be read.
    """
    folder = _core.cuda_cache_folder()
    if not folder:
        return CacheInfo(None, ())
    return CacheInfo(Path(folder), tuple(_files(Path(folder))))


_ENDINGS = ("cubin", "kernel", "plan", "algo")  # of cuda/cache.h
# A key, which kind of entry it is of, and what is added while the entry is being written.
_OURS = re.compile(rf"[0-9a-f]{{64}}\.({'|'.join(_ENDINGS)})(\.\d+\.\d+\.tmp)?", re.ASCII)


def _files(where: Path) -> list[CacheFile]:
    """Links, folders and other files are left alone: the folder is of the user's choice."""
    found = []
    try:
        for path in sorted(where.iterdir()) if where.is_dir() else ():
            try:
                if _OURS.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                    stat = path.stat()
                    found.append(CacheFile(path, stat.st_size, stat.st_mtime))
            except FileNotFoundError:  # removed meanwhile
                continue
    except OSError as error:
        raise InputError(f"the kernel cache cannot be read: {error}") from error
    return found
