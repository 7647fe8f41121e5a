"""What callers pass and get: input containers and array-likes to NumPy, descriptions of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rlx.errors import InputError
from rlx.importer.types import map_types, type_of
from rlx.ir.types import DType, TensorType

if TYPE_CHECKING:
    from rlx.importer.loaded import LoadedGraph


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
    if proto.WhichOneof("value") == "map_type":
        return Info(name, _map_text(proto.map_type), None)
    element = proto.sequence_type.elem_type
    if element.WhichOneof("value") == "map_type":
        return Info(name, f"seq({_map_text(element.map_type)})", None)
    type = type_of(proto, lambda: 0)
    if not isinstance(type, TensorType):
        return Info(name, str(type).lower(), None)
    known = proto.tensor_type.HasField("shape")
    return Info(name, type.dtype.name.lower(), tuple(d or None if d != 0 else 0 for d in type.shape)
                if known else None)


def _map_text(proto) -> str:
    return "map({}, {})".format(*(dtype.name.lower() for dtype in map_types(proto)))


def with_maps(results: dict[str, Any], maps: Mapping[str, tuple]) -> dict[str, Any]:
    """The results of a run in which rows of values have become dicts with the keys in `maps`."""
    def shown(name: str, x: Any) -> Any:
        if name not in maps or not isinstance(x, np.ndarray):
            return x
        return [dict(zip(maps[name], row)) for row in x.tolist()]

    return {name: shown(name, x) for name, x in results.items()}


def normalise(inputs: Any, graph: LoadedGraph, on_gpu: bool = False) -> dict[str, Any]:
    """inputs (dict, sequence in the model's order, or one array) as name -> array or list.

    With on_gpu, arrays that lie on a GPU stay there.
    """
    names = [n for n in graph.inputs if n not in graph.defaults]
    if isinstance(inputs, Mapping):
        given = dict(inputs)
    elif isinstance(inputs, Sequence) and not isinstance(inputs, (str, bytes)):
        if len(inputs) > len(graph.inputs):
            raise InputError("too many inputs", expected=len(graph.inputs), got=len(inputs))
        given = dict(zip(graph.inputs, inputs))
    elif len(names) != 1:
        raise InputError("one array was given, but the model has several inputs",
                         expected=f"a dict with {', '.join(names)}", got=type(inputs).__name__)
    else:
        given = {names[0]: inputs}
    found: dict[str, Any] = {}
    for name, x in given.items():
        proto = graph.inputs.get(name)
        if proto is not None and proto.HasField("map_type"):
            found[f"{name}/keys"], found[f"{name}/values"] = _map(name, x, proto.map_type)
        elif on_gpu and lies_on_gpu(x):
            found[name] = x
        elif x is not None or name not in graph.defaults:
            found[name] = _input(name, x, proto)
    return found


def _map(name: str, x: Any, proto) -> list[np.ndarray]:
    """The keys and the values of a map that is fed."""
    if not isinstance(x, Mapping):
        raise InputError(f"input {name!r} is a map", expected="a dict", got=type(x).__name__)
    columns = []
    for items, dtype in zip((list(x.keys()), list(x.values())), map_types(proto)):
        array = convert(items, dtype)
        columns.append(array if items else np.zeros(0, dtype.numpy))
    return columns


def lies_on_gpu(x: Any) -> bool:
    """Whether x says so, by DLPack or the CUDA array interface."""
    if isinstance(x, np.ndarray) or x is None:
        return False
    if hasattr(x, "__dlpack_device__"):
        return int(x.__dlpack_device__()[0]) == 2
    return hasattr(x, "__cuda_array_interface__")


def on_host(x: Any) -> Any:
    """x with a copy on the host in place of an array that lies on a GPU."""
    if not lies_on_gpu(x):
        return x
    if hasattr(x, "cpu"):  # PyTorch's
        x = x.cpu()
    if not hasattr(x, "numpy"):
        raise InputError("the model's form depends on the values of an input on the GPU",
                         remedy="feed it from the host")
    return x.numpy()


def _input(name: str, x: Any, proto) -> Any:
    """One input as an array, list of arrays or None, by its declared type (None: unknown name)."""
    kind = None if proto is None else proto.WhichOneof("value")
    if kind == "optional_type":
        if x is None:
            return None
        proto = proto.optional_type.elem_type
        kind = proto.WhichOneof("value")
    try:
        if kind == "sequence_type":
            if not isinstance(x, (list, tuple)):
                raise InputError("a sequence is given as a list", expected="a list of arrays",
                                 got=type(x).__name__)
            element = proto.sequence_type.elem_type.tensor_type.elem_type
            return [convert(v, element) for v in x]
        return convert(x, proto.tensor_type.elem_type if kind == "tensor_type" else 0)
    except InputError as error:
        error.contexts.append(f"reading input {name!r}")
        raise


def convert(x: Any, elem_type: int = 0) -> Any:
    """A NumPy array from what has the array interface, DLPack, the buffer protocol or nested
    numbers. Python numbers, which have no element type, become `elem_type` where that holds them.
    """
    if isinstance(x, np.ndarray):
        return x
    if x is None:
        raise InputError("there is no array", expected="an array", got="None")
    if hasattr(x, "__dlpack__") and not hasattr(x, "__array__"):
        return _from_dlpack(x)
    try:
        array = np.asarray(x)
        if isinstance(x, (list, tuple, int, float, complex)) and elem_type:
            array = _of_type(array, x, DType(elem_type).numpy)
    except (OverflowError, RuntimeError, TypeError, ValueError) as error:  # ragged, failing ...
        if hasattr(x, "__dlpack__"):  # torch gives bfloat16, and says more of a GPU's memory, there
            return _from_dlpack(x)
        raise InputError(f"cannot make an array of this {type(x).__name__}: {error}") from error
    if array.dtype == object and not _is_text(array):
        raise InputError(f"cannot make an array of {type(x).__name__}")
    return array


def _of_type(array: np.ndarray, x: Any, wanted: np.dtype) -> np.ndarray:
    """Python numbers as the wanted type: whole ones also as floats, but no float as an integer."""
    if array.dtype == wanted or wanted == object or array.dtype.kind not in "biufc":
        return array
    if not array.size or np.can_cast(array.dtype, wanted, "same_kind") or (
            array.dtype.kind == "i" and wanted.kind in "uV"):
        return np.asarray(x, wanted)
    return array


def _from_dlpack(x: Any) -> np.ndarray:
    from rlx import dlpack
    try:
        return dlpack.read(x)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"cannot read this {type(x).__name__} on the host: {error}",
                         remedy="copy it to the CPU first") from error


def _is_text(array: np.ndarray) -> bool:
    return all(isinstance(v, (str, bytes)) for v in array.reshape(-1)[:16])
