"""Objects that hold compiled code or a device's memory: they stay in the process they are of."""

from __future__ import annotations

from typing import NoReturn


class Live:
    """Cannot be pickled or copied, and says what to do instead."""

    _instead = "send the model's path or bytes, and load it there"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"{type(self).__name__} objects cannot be pickled or copied: they hold "
                        f"compiled code and memory of this process; {self._instead}")
