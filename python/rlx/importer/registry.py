"""The open set of ONNX operators: @op registers a function whose signature is the schema.

Positional parameters are the ONNX inputs in order (a default of None marks an optional one,
*xs a variadic tail); keyword-only parameters are the attributes with their ONNX defaults.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Callable

from rlx.errors import ModelError, UnsupportedError


@dataclass(frozen=True, slots=True)
class Entry:
    """One function for the opsets from `since` up to the next entry of the same operator."""

    name: str
    domain: str
    since: int
    function: Callable
    inputs: tuple[str, ...]     # names of positional parameters after the builder
    required: int               # how many of them must be given
    variadic: bool
    attributes: dict[str, Any]  # name -> default; inspect.Parameter.empty when required

    def arguments(self, inputs: list, attributes: dict[str, Any]) -> tuple[list, dict]:
        """Checks a node's inputs and attributes against the signature; ModelError otherwise."""
        given = list(inputs)
        while given and given[-1] is None:
            given.pop()
        if not self.variadic and len(given) > len(self.inputs):
            raise ModelError("too many inputs", expected=f"at most {len(self.inputs)}",
                             got=len(given))
        for i, name in enumerate(self.inputs[:self.required]):
            if i >= len(given) or given[i] is None:
                raise ModelError(f"required input {name!r} is missing")
        for name in attributes:
            if name not in self.attributes:
                raise UnsupportedError(f"unknown attribute {name!r}",
                                       expected=", ".join(self.attributes) or "no attributes")
        for name, default in self.attributes.items():
            if default is inspect.Parameter.empty and name not in attributes:
                raise ModelError(f"required attribute {name!r} is missing")
        given += [None] * (len(self.inputs) - len(given))
        return given, attributes


_ENTRIES: dict[tuple[str, str], list[Entry]] = {}


def op(name: str, *, since: int = 1, domain: str = "") -> Callable:
    """Registers a function for an operator from opset `since` on; may be stacked."""

    def register(function: Callable) -> Callable:
        parameters = list(inspect.signature(function).parameters.values())[1:]
        positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        entry = Entry(
            name, domain, since, function,
            inputs=tuple(p.name for p in positional),
            required=sum(p.default is p.empty for p in positional),
            variadic=any(p.kind is p.VAR_POSITIONAL for p in parameters),
            attributes={p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY},
        )
        versions = _ENTRIES.setdefault((domain, name), [])
        if any(e.since == since for e in versions):
            raise ValueError(f"{domain}:{name} since {since} is registered twice")
        versions.append(entry)
        versions.sort(key=lambda e: e.since)
        return function

    return register


def find(domain: str, name: str, opset: int) -> Entry | None:
    """The newest entry not above opset, or None."""
    found = None
    for entry in _ENTRIES.get((domain, name), ()):
        if entry.since <= opset:
            found = entry
    return found


def entries() -> list[Entry]:
    """Every entry, for coverage tables."""
    return [e for key in sorted(_ENTRIES) for e in _ENTRIES[key]]
