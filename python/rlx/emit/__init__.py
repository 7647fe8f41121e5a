"""Graph -> _core.Program: the only writer of Programs."""

from rlx.emit.program import emit

__all__ = ["emit"]
