"""AttributeProto to plain Python values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rlx.errors import ModelError
from rlx.importer.loaded import LONG_LIST, AttributeRef
from rlx.importer.protos import AttributeProto
from rlx.importer.tensors import decode_text

if TYPE_CHECKING:
    from rlx.importer.graphs import GraphLoader

_A = AttributeProto
_ReadAs = Callable[["GraphLoader", AttributeProto], Any]

_READ: dict[int, _ReadAs] = {
    _A.FLOAT: lambda loader, a: a.f,
    _A.INT: lambda loader, a: a.i,
    _A.STRING: lambda loader, a: decode_text(a.s),
    _A.TENSOR: lambda loader, a: loader.tensors.weight(a.t, "attribute"),
    _A.GRAPH: lambda loader, a: loader.graph(a.g),
    _A.SPARSE_TENSOR: lambda loader, a: loader.tensors.sparse(a.sparse_tensor, "attribute"),
    _A.TYPE_PROTO: lambda loader, a: a.tp,
    _A.FLOATS: lambda loader, a: _numbers(a.floats, np.float32),
    _A.INTS: lambda loader, a: _numbers(a.ints, np.int64),
    _A.STRINGS: lambda loader, a: _texts(a.strings),
    _A.TENSORS: lambda loader, a: [loader.tensors.weight(t, "attribute") for t in a.tensors],
    _A.GRAPHS: lambda loader, a: [loader.graph(g) for g in a.graphs],
    _A.SPARSE_TENSORS: lambda loader, a: [
        loader.tensors.sparse(t, "attribute") for t in a.sparse_tensors
    ],
    _A.TYPE_PROTOS: lambda loader, a: list(a.type_protos),
}
# The field of each type, in the order in which an attribute that states no type is searched.
_FIELD_TYPES = {
    "f": _A.FLOAT, "i": _A.INT, "s": _A.STRING, "t": _A.TENSOR, "g": _A.GRAPH,
    "floats": _A.FLOATS, "ints": _A.INTS, "strings": _A.STRINGS, "tensors": _A.TENSORS,
    "graphs": _A.GRAPHS,
}


def read_attribute(loader: GraphLoader, attribute: AttributeProto) -> Any:
    """The value of an attribute (LoadedNode says which Python types occur)."""
    if attribute.ref_attr_name:
        if not loader.in_function:
            raise ModelError(
                f"attribute {attribute.name!r} refers to the function attribute"
                f" {attribute.ref_attr_name!r}, but stands outside a function"
            )
        return AttributeRef(attribute.ref_attr_name)
    # Models older than IR version 2 state no type.
    read = _READ.get(attribute.type or _type_by_content(attribute))
    if read is None:
        raise ModelError(f"attribute {attribute.name!r} has the unknown type {attribute.type}")
    return read(loader, attribute)


def _numbers(values: Sequence, dtype: type) -> list | np.ndarray:
    return values[:] if len(values) <= LONG_LIST else np.asarray(values, dtype)


def _texts(values: Sequence[bytes]) -> list[str]:
    # Long lists repeat a few words.
    known: dict[bytes, str] = {}
    return [known.get(v) or known.setdefault(v, decode_text(v)) for v in values]


def _type_by_content(attribute: AttributeProto) -> int:
    filled = {field.name for field, _ in attribute.ListFields()}
    return next((t for name, t in _FIELD_TYPES.items() if name in filled), 0)
