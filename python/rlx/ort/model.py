"""A model as a program sees it: read with its overrides, and described as onnxruntime does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
import onnx

from rlx.errors import Error
from rlx.importer.importer import import_model
from rlx.importer.loaded import LoadedGraph, LoadedModel, Weight
from rlx.importer.reader import read
from rlx.ir.build import Specialise
from rlx.ir.types import TensorType, dtype_of
from rlx.ort.options import SessionOptions
from rlx.ort.settings import seed
from rlx.ort.status import Fail, made, translated
from rlx.ort.types import ModelMetadata, NodeArg, shape_of, type_name

_RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli",
           "Multinomial"}


def load(model: Any, options: SessionOptions) -> LoadedModel:
    """The model at a path or in bytes, its free dims and initializers overridden."""
    if not isinstance(model, (str, bytes, os.PathLike)):
        raise TypeError(f"Unable to load from type {str(type(model))!r}")
    with translated():
        loaded = read(model)
    graph = loaded.graph
    for protos in (graph.inputs, graph.output_types, graph.hints):
        for name, proto in protos.items():
            protos[name] = _fixed(proto, options)
    for name, array in options._initializers.items():
        if name not in graph.initializers:
            raise made(Fail, f"the model has no initializer {name!r}")
        graph.initializers[name] = _weight(name, array)
    if seed() is not None:
        _seed(graph, count(seed()))
    return loaded


def _seed(graph: LoadedGraph, seeds: Iterator[int]) -> None:
    """Gives each random node without a seed the next one."""
    for node in graph.nodes:
        if node.op_type in _RANDOM and not node.domain:
            node.attributes.setdefault("seed", float(next(seeds)))
        for _, inner in node.subgraphs():
            _seed(inner, seeds)


def save(model: str | bytes | os.PathLike, path: str) -> None:
    """Writes the model as it is: rlx has no optimised form of it in ONNX."""
    proto = onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(model)
    onnx.save(proto, path)


def _fixed(proto: onnx.TypeProto, options: SessionOptions) -> onnx.TypeProto:
    """The type with the dims that the options name as numbers."""
    fixed = onnx.TypeProto()
    fixed.CopyFrom(proto)
    for dim in fixed.tensor_type.shape.dim if fixed.HasField("tensor_type") else ():
        for kind, known in options._dims.items():
            if getattr(dim, kind) in known:
                dim.dim_value = known[getattr(dim, kind)]
    return fixed


def _weight(name: str, array: np.ndarray) -> Weight:
    data = np.frombuffer(np.asarray(array, order="C").tobytes(), np.uint8)
    return Weight(name, dtype_of(array.dtype), array.shape, data)


def arguments(protos: dict[str, onnx.TypeProto]) -> list[NodeArg]:
    """NodeArgs from names and types."""
    return [NodeArg(name, type_name(proto), shape_of(proto)) for name, proto in protos.items()]


def inputs_of(loaded: LoadedModel, overridable: bool = False) -> list[NodeArg]:
    """The inputs that must be fed, or those that have an initializer."""
    graph = loaded.graph
    return arguments({name: proto for name, proto in graph.inputs.items()
                      if (name in graph.defaults) == overridable})


def outputs_of(loaded: LoadedModel) -> list[NodeArg]:
    """The outputs; dims that the model leaves open are those that follow from the inputs."""
    graph = loaded.graph
    protos = {name: graph.output_types.get(name) for name in graph.outputs}
    if all(proto is not None and None not in shape_of(proto) and _has_rank(proto)
           for proto in protos.values()):
        return arguments(protos)
    try:
        found = import_model(loaded)
    except (Error, Specialise):
        found = None  # more must be known than the model: what it declares is all there is
    types = {} if found is None else dict(zip(graph.outputs, (v.type for v in found.outputs)))
    return [_output(name, proto, types.get(name)) for name, proto in protos.items()]


def _has_rank(proto: onnx.TypeProto) -> bool:
    return not proto.HasField("tensor_type") or proto.tensor_type.HasField("shape")


def _output(name: str, proto: onnx.TypeProto | None, type: Any) -> NodeArg:
    declared = [] if proto is None else shape_of(proto)
    if not isinstance(type, TensorType):
        return NodeArg(name, "" if proto is None else type_name(proto), declared)
    inferred = [_dim(d) for d in type.shape]
    if proto is None or proto.WhichOneof("value") is None:
        proto = onnx.helper.make_tensor_type_proto(int(type.dtype), None)
    if len(declared) != len(inferred):
        declared = [None] * len(inferred)
    return NodeArg(name, type_name(proto),
                   [i if d is None else d for d, i in zip(declared, inferred)])


def _dim(dim: Any) -> int | str | None:
    """A dim of an output: a number, the name of an input's dim, or open."""
    if isinstance(dim, int):
        return dim
    symbol = dim.args[0] if dim.op == "symbol" else None
    # An unnamed dim of an input has a name of ours, with a dot.
    named = symbol is not None and symbol.kind == "dim" and symbol.name
    return symbol.name if named and symbol.name != f"{symbol.value.name}.{symbol.index}" else None


def metadata_of(loaded: LoadedModel) -> ModelMetadata:
    """What the model says about itself."""
    return ModelMetadata(loaded.producer, loaded.graph.name, loaded.domain, loaded.description,
                         loaded.graph_description, loaded.version, dict(loaded.metadata))
