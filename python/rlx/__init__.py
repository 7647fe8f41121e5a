"""rlx runs ONNX models; this file holds its public names and nothing else.

They are loaded when first used, so that `rlx --help` need not wait for NumPy and onnx.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlx import cuda
    from rlx.ahead import compile
    from rlx.api import devices, empty_cache, load, reset, run
    from rlx.dlpack import to_dlpack
    from rlx.errors import (
        DeviceError,
        Error,
        InputError,
        InternalError,
        MemoryLimitError,
        ModelError,
        ModelNotFoundError,
        StaleHandleError,
        UnsupportedError,
    )
    from rlx.feeds import Info
    from rlx.kernel_cache import CacheInfo, cache_info
    from rlx.options import Options, configure
    from rlx.profile import Profile
    from rlx.session import Session
    from rlx.state import State

    __version__: str

_NAMES = {
    "rlx.ahead": ("compile",),
    "rlx.api": ("devices", "empty_cache", "load", "reset", "run"),
    "rlx.cuda": (),
    "rlx.dlpack": ("to_dlpack",),
    "rlx.errors": ("DeviceError", "Error", "InputError", "InternalError", "MemoryLimitError",
                   "ModelError", "ModelNotFoundError", "StaleHandleError", "UnsupportedError"),
    "rlx.feeds": ("Info",),
    "rlx.kernel_cache": ("CacheInfo", "cache_info"),
    "rlx.options": ("Options", "configure"),
    "rlx.profile": ("Profile",),
    "rlx.session": ("Session",),
    "rlx.state": ("State",),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "CacheInfo", "DeviceError", "Error", "Info", "InputError", "InternalError",
    "MemoryLimitError", "ModelError", "ModelNotFoundError", "Options", "Profile", "Session",
    "StaleHandleError", "State", "UnsupportedError", "cache_info", "compile", "configure", "cuda",
    "devices", "empty_cache", "load", "reset", "run", "to_dlpack",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value = import_module("rlx._core").__version__
    elif name in _MODULE_OF:
        value = getattr(import_module(_MODULE_OF[name]), name)
    elif f"rlx.{name}" in _NAMES:
        return import_module(f"rlx.{name}")
    elif name == "_core":
        return import_module("rlx._core")
    else:
        raise AttributeError(f"module 'rlx' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    own = (name for name in globals() if name.startswith("__"))
    return sorted({*own, *__all__, "__version__"})
