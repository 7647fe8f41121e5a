"""The open set of ONNX operators: @op registers a function whose signature is the schema.

Positional parameters are the ONNX inputs in order (a default of None marks an optional one,
*xs a variadic tail); keyword-only parameters are the attributes with their ONNX defaults and
types. A Literal lists the strings that an attribute may be.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cached_property
from types import NoneType, UnionType
from typing import Any, Callable, Literal, NewType, get_args, get_origin

import numpy as np

from rlx.errors import ModelError, UnsupportedError
from rlx.importer.loaded import LoadedGraph as Body
from rlx.ir.build import Value

# What attributes that are lists, and subgraphs, are annotated with. Lists that may be long, as the
# tables of tree ensembles, come as arrays.
Ints, Floats, Texts = tuple[int, ...], tuple[float, ...], tuple[str, ...]
IntArray, FloatArray = NewType("IntArray", np.ndarray), NewType("FloatArray", np.ndarray)
_ARRAYS = {IntArray: (Ints, np.int64), FloatArray: (Floats, np.float32)}
AutoPad = Literal["NOTSET", "", "SAME_UPPER", "SAME_LOWER", "VALID"]

@dataclass(frozen=True)
class Entry:
    """One function for the opsets from `since` up to the next entry of the same operator, or up to
    `until`, which has the operator no more."""

    name: str
    domain: str
    since: int
    function: Callable
    until: int | None = None

    @cached_property
    def _parameters(self) -> list[inspect.Parameter]:
        # Read when a model first has the operator: all at once take longer than most models do.
        return list(inspect.signature(self.function, eval_str=True).parameters.values())[1:]

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of the positional parameters after the builder."""
        return tuple(p.name for p in self._parameters if p.kind is p.POSITIONAL_OR_KEYWORD)

    @cached_property
    def required(self) -> int:
        """How many inputs must be given."""
        return sum(p.default is p.empty for p in self._parameters
                   if p.kind is p.POSITIONAL_OR_KEYWORD)

    @cached_property
    def variadic(self) -> bool:
        return any(p.kind is p.VAR_POSITIONAL for p in self._parameters)

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """Name -> default; inspect.Parameter.empty when it must be given."""
        return {p.name: p.default for p in self._parameters if p.kind is p.KEYWORD_ONLY}

    @cached_property
    def types(self) -> dict[str, Any]:
        """Name -> annotation of the attribute."""
        return {p.name: p.annotation for p in self._parameters if p.kind is p.KEYWORD_ONLY}

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
        for name, value in attributes.items():
            if name not in self.attributes:
                raise UnsupportedError(f"unknown attribute {name!r}",
                                       expected=", ".join(self.attributes) or "no attributes")
            attributes[name] = converted(name, value, self.types[name])
        for name, default in self.attributes.items():
            if default is inspect.Parameter.empty and name not in attributes:
                raise ModelError(f"required attribute {name!r} is missing")
        given += [None] * (len(self.inputs) - len(given))
        return given, attributes


def converted(name: str, value: Any, kind: Any) -> Any:
    """An attribute's value as its annotation says; ModelError when it is of another type."""
    if kind in _ARRAYS:
        element, dtype = _ARRAYS[kind]
        if _fits(value, element):
            return np.asarray(value, dtype)
    elif _fits(value, kind):
        return tuple(value.tolist()) if isinstance(value, np.ndarray) else value
    raise ModelError(f"attribute {name!r} is not what the operator takes", expected=_named(kind),
                     got=_shown(value), remedy="correct the attribute, or export the model again")


def _fits(value: Any, kind: Any) -> bool:
    origin = get_origin(kind)
    if origin is Literal:
        return value in get_args(kind)
    if origin is UnionType:
        return any(_fits(value, k) for k in get_args(kind))
    if origin is tuple:
        element = get_args(kind)[0]
        if isinstance(value, np.ndarray):
            return element is float or (element is int and value.dtype.kind == "i")
        # By the few types that a list has: there may be millions of elements.
        return isinstance(value, tuple) and all(
            issubclass(k, _accepted(element)) for k in set(map(type, value)))
    return isinstance(value, _accepted(kind))


def _accepted(kind: Any) -> Any:
    return (int, float) if kind is float else kind  # 1 is a good 1.0


def _named(kind: Any) -> str:
    origin = get_origin(kind)
    if origin is Literal:
        return "one of " + ", ".join(map(repr, get_args(kind)))
    if origin is UnionType:
        return " or ".join(_named(k) for k in get_args(kind) if k is not NoneType)
    if kind in _ARRAYS or origin is tuple:
        return f"a list of {_named(get_args(_ARRAYS.get(kind, (kind,))[0])[0])}"
    return {Body: "graph", Value: "tensor"}.get(kind, kind.__name__)


def _shown(value: Any) -> str:
    if isinstance(value, (int, float, str, tuple)):
        text = repr(value)
        return text if len(text) <= 60 else text[:57] + "..."
    return type(value).__name__


_ENTRIES: dict[tuple[str, str], list[Entry]] = {}


def op(name: str, *, since: int = 1, until: int | None = None, domain: str = "") -> Callable:
    """Registers a function for an operator from opset `since` on, and where ONNX removed it, before
    opset `until`; may be stacked."""

    def register(function: Callable) -> Callable:
        entry = Entry(name, domain, since, function, until)
        versions = _ENTRIES.setdefault((domain, name), [])
        if any(e.since == since for e in versions):
            raise ValueError(f"{domain}:{name} since {since} is registered twice")
        versions.append(entry)
        versions.sort(key=lambda e: e.since)
        return function

    return register


def find(domain: str, name: str, opset: int) -> Entry | None:
    """The newest entry not above opset, or None."""
    entry = _newest(domain, name, opset)
    return None if entry is None or _has_ended(entry, opset) else entry


def ended(domain: str, name: str, opset: int) -> int | None:
    """The opset, not above this one, in which ONNX removed the operator; None where it did not."""
    entry = _newest(domain, name, opset)
    return entry.until if entry is not None and _has_ended(entry, opset) else None


def _newest(domain: str, name: str, opset: int) -> Entry | None:
    found = None
    for entry in _ENTRIES.get((domain, name), ()):
        if entry.since <= opset:
            found = entry
    return found


def _has_ended(entry: Entry, opset: int) -> bool:
    return entry.until is not None and entry.until <= opset


def entries() -> list[Entry]:
    """Every entry, for coverage tables."""
    return [e for key in sorted(_ENTRIES) for e in _ENTRIES[key]]
