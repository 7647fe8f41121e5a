"""Devices by name: which there are here, and opening one."""

from __future__ import annotations

from typing import Any

from rlx._load import load_core
from rlx.errors import DeviceError

_core = load_core()


def devices() -> list[str]:
    """The devices that models can run on here, best first; opens no library to find out."""
    return ["cpu"]


def open_device(name: str) -> Any:
    """The _core.Device of "auto", "cpu" or "cpu:0"; DeviceError for one that is not here."""
    if name in ("auto", "cpu", "cpu:0"):
        return _core.cpu_device()
    raise DeviceError(f"there is no device {name!r}", expected=", ".join(["auto", *devices()]))
