"""Load the compiled module rlx._core."""

from types import ModuleType


def load_core() -> ModuleType:
    """Import rlx._core."""
    from rlx import _core

    return _core
