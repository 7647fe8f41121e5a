"""rlx runs ONNX models; this file holds its public names and nothing else."""

from rlx._load import load_core
from rlx.api import devices, load, run
from rlx.errors import (
    DeviceError,
    Error,
    InputError,
    InternalError,
    MemoryLimitError,
    ModelError,
    StaleHandleError,
    UnsupportedError,
)
from rlx.feeds import Info
from rlx.options import Options
from rlx.session import Session
from rlx.state import State

__version__: str = load_core().__version__

__all__ = [
    "DeviceError", "Error", "Info", "InputError", "InternalError", "MemoryLimitError",
    "ModelError", "Options", "Session", "StaleHandleError", "State", "UnsupportedError", "devices",
    "load", "run",
]
