"""What callers pass and get: input containers and array-likes to NumPy, descriptions of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlx.errors import InputError
from rlx.importer.loaded import LoadedGraph
from rlx.importer.types import type_of
from rlx.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class Info:
    """An input or output of a model.

    dtype is the ONNX element type in lower case ("float32", "seq(float32)"); shape has an int for
    a fixed dim, a name or None for a free one, and is None when the model does not give it.
    """

    name: str
    dtype: str
    shape: tuple[int | str | None, ...] | None


def describe(protos: Mapping[str, Any]) -> tuple[Info, ...]:
    """Infos of a graph's inputs or outputs from their onnx.TypeProtos."""
    return tuple(_info(name, proto) for name, proto in protos.items())


def _info(name: str, proto) -> Info:
    if proto is None or proto.WhichOneof("value") is None:
        return Info(name, "unknown", None)
    type = type_of(proto, lambda: 0)
    if not isinstance(type, TensorType):
        return Info(name, str(type).lower(), None)
    known = proto.tensor_type.HasField("shape")
    return Info(name, type.dtype.name.lower(), tuple(d or None if d != 0 else 0 for d in type.shape)
                if known else None)


def normalise(inputs: Any, graph: LoadedGraph) -> dict[str, Any]:
    """inputs (dict, sequence in the model's order, or one array) as name -> array or list."""
    names = [n for n in graph.inputs if n not in graph.defaults]
    if isinstance(inputs, Mapping):
        return {name: convert(x) for name, x in inputs.items()}
    if isinstance(inputs, Sequence) and not isinstance(inputs, (str, bytes)):
        if len(inputs) > len(graph.inputs):
            raise InputError("too many inputs", expected=len(graph.inputs), got=len(inputs))
        return {name: convert(x) for name, x in zip(graph.inputs, inputs)}
    if len(names) != 1:
        raise InputError("one array was given, but the model has several inputs",
                         expected=f"a dict with {', '.join(names)}", got=type(inputs).__name__)
    return {names[0]: convert(inputs)}


def convert(x: Any) -> Any:
    """A NumPy array (list of arrays for a sequence, None for an absent optional) from what has
    the array interface, DLPack, the buffer protocol or nested numbers."""
    if x is None or isinstance(x, np.ndarray):
        return x
    if isinstance(x, (list, tuple)) and any(hasattr(v, "shape") for v in x):
        return [convert(v) for v in x]
    if isinstance(x, list) and not x:
        return x
    if not hasattr(x, "__array__") and hasattr(x, "__dlpack__"):
        try:
            return np.from_dlpack(x)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise InputError(f"cannot read this {type(x).__name__} on the host: {error}",
                             remedy="copy it to the CPU first") from error
    try:
        array = np.asarray(x)
    except (RuntimeError, TypeError, ValueError) as error:  # ragged lists, failing __array__
        raise InputError(f"cannot make an array of this {type(x).__name__}: {error}") from error
    if array.dtype == object and not _is_text(array):
        raise InputError(f"cannot make an array of {type(x).__name__}")
    return array


def _is_text(array: np.ndarray) -> bool:
    return all(isinstance(v, (str, bytes)) for v in array.reshape(-1)[:16])
