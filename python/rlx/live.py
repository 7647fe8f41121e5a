"""Objects that hold compiled code or a device's memory: they stay in the process they are of."""

from __future__ import annotations

from collections.abc import Sequence
import os
from typing import Any, NoReturn


class Live:
    """Cannot be pickled or copied, and says what to do instead."""

    _instead = "send the model's path or bytes, and load it there"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"{type(self).__name__} objects cannot be pickled or copied: they hold "
                        f"compiled code and memory of this process; {self._instead}")


def place(session: Any) -> str:
    """The model's name, without its folder, and the device: for the reprs."""
    name = model_name(session._model.path or session._model.graph.name)
    opened = session._opened  # a repr waits for no GPU
    device = opened.name if opened is not None else session.options.device
    return f"{name} on {device}{', closed' if session._closed else ''}"


def model_name(path: str) -> str:
    """What a repr calls the model."""
    return repr(os.path.basename(path)[-60:])


def short(infos: Sequence[Any]) -> str:
    """The first few inputs: name, type and shape."""
    parts = []
    for info in infos[:3]:
        dims = ("?" if d is None else str(d) for d in info.shape or ())
        shape = "" if info.shape is None else f"[{', '.join(dims)}]"
        parts.append(f"{info.name} {info.dtype}{shape}")
    return ", ".join(parts) + (f" and {len(infos) - 3} more" if len(infos) > 3 else "")
