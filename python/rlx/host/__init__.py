"""The named host steps: what only Python can do with strings and encoded images, by name.

A function gets NumPy arrays (strings as object arrays of str, None for an absent input) and gives
arrays; what it cannot do raises an rlx error. It knows nothing of graphs or programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rlx.errors import InternalError
from rlx.host import image, regex, text

_MAKERS: dict[str, Callable[..., Callable]] = {
    "format": text.format_numbers,
    "parse": text.parse_numbers,
    "normalise": text.normalise,
    "concat": text.concat,
    "split": text.split,
    "unique": text.unique,
    "full_match": regex.full_match,
    "decode_image": image.decode,
}


def function_of(name: str, attributes: Mapping[str, Any]) -> Callable:
    """The function of a host step; raises when it lacks a library or its options mean nothing."""
    maker = _MAKERS.get(name)
    if maker is None:
        raise InternalError(f"there is no host function {name!r}")
    return maker(**attributes)


__all__ = ["function_of"]
