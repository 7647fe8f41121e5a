"""Walks a LoadedModel and builds its Graph; every operator is a function of importer/ops."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np

import rlx.importer.ops  # noqa: F401  registers the operators
from rlx.errors import Error, InputError, ModelError, UnsupportedError
from rlx.importer.context import ImportBuilder
from rlx.importer.dims import InputDims
from rlx.importer.loaded import LoadedGraph, LoadedModel, LoadedNode, Weight
from rlx.importer.registry import Entry, ended, find
from rlx.importer.scope import Scope
from rlx.importer.types import MapValue, map_types, proto_of, type_of
from rlx.ir.build import Specialise
from rlx.ir.graph import Graph, Origin, Value
from rlx.ir.types import OptionalType, SequenceType, TensorType


_TAKE_MAPS = frozenset({"DictVectorizer", "Identity"})


@dataclass(frozen=True)
class Facts:
    """What a specialised import takes as known about the run, by value name."""

    ranks: dict[str, int] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    values: dict[str, np.ndarray] = field(default_factory=dict)
    present: dict[str, bool] = field(default_factory=dict)  # optional inputs
    fed: frozenset[str] = frozenset()      # overridable initializers that the caller feeds
    denied: frozenset[str] = frozenset()   # assumptions that do not hold
    states: tuple[tuple[str, str, int], ...] = ()  # growing: (input, output, axis)
    capacity: int = 0                      # step in which the axes of `states` grow

    def key(self) -> tuple:
        """A hashable form, equal for equal facts."""
        values = tuple(sorted((k, v.shape, v.tobytes()) for k, v in self.values.items()))
        return (tuple(sorted(self.ranks.items())), tuple(sorted(self.shapes.items())), values,
                tuple(sorted(self.present.items())), self.fed, self.denied, self.states,
                self.capacity)


def import_model(model: LoadedModel, facts: Facts = Facts(),
                 outputs: tuple[str, ...] | None = None, maps: dict[str, tuple] | None = None
                 ) -> Graph:
    """The typed Graph of a model under `facts`; outputs names other values of it to give.

    `maps` gets the keys of the outputs that are sequences of maps, whose values are [N, keys].
    Raises Specialise when a further fact is needed, ModelError or UnsupportedError with the node.
    """
    importer = _Importer(model, facts)
    graph = importer.run(outputs)
    if maps is not None:
        maps.update(importer.maps)
    return graph


class _Importer:
    def __init__(self, model: LoadedModel, facts: Facts):
        self.model, self.facts = model, facts
        self.maps: dict[str, tuple] = {}  # of the outputs that are sequences of maps: their keys
        self.opsets = model.opset_imports

    def run(self, outputs: tuple[str, ...] | None) -> Graph:
        graph = self.model.graph
        b = ImportBuilder(Graph(name=graph.name), fixed=self.facts.values,
                          denied=self.facts.denied)
        b.start(Scope(), self.walk)
        for name, proto in graph.inputs.items():
            if proto.HasField("map_type"):
                self.map_input(b, name, proto.map_type)
            elif name not in graph.defaults or name in self.facts.fed:
                b.graph.inputs.append(self.input(name, proto))
                b.scope.set(name, b.graph.inputs[-1])
        self.input_dims(b)
        self.walk(b, graph, None if outputs is None else set(outputs))
        for name in graph.outputs if outputs is None else outputs:
            value = b.scope.get(name)
            if isinstance(value, MapValue):
                self.maps[name] = value.keys
                value = value.values
            b.graph.outputs.append(b.materialise(value))
            b.graph.output_names.append(name)
        self.states(b.graph)
        return b.graph

    @staticmethod
    def map_input(b: ImportBuilder, name: str, proto) -> None:
        """A map that is fed: its keys and its values are two inputs."""
        parts = [Value(TensorType(dtype, ("",)), f"{name}/{part}")
                 for part, dtype in zip(("keys", "values"), map_types(proto))]
        b.graph.inputs += parts
        b.scope.set(name, MapValue(*parts, name))

    def input(self, name: str, proto) -> Value:
        value = Value(TensorType(None, ()), name)
        present = True
        if proto.HasField("optional_type"):
            if name not in self.facts.present:
                raise Specialise("presence", value, "an optional input decides the program")
            present = self.facts.present[name]
        value.type = type_of(proto, lambda: self.rank(value) if present else 0)
        if isinstance(value.type, OptionalType) and present:
            value.type = value.type.element
        if isinstance(value.type, SequenceType) and name in self.facts.ranks:
            value.type = SequenceType(value.type.dtype, self.facts.ranks[name])
        return value

    def input_dims(self, b: ImportBuilder) -> None:
        """Symbols, shared by name, for the inputs' open dims; numbers where facts tell them."""
        facts = self.facts
        capacities = {(name, axis): facts.capacity for name, _, axis in facts.states}
        dims = InputDims(facts.denied, capacities)
        tensors = [v for v in b.graph.inputs if isinstance(v.type, TensorType)]
        dims.resolve([(v, facts.shapes.get(v.name, v.shape)) for v in tensors])
        b.graph.guards += dims.guards
        for value in tensors:
            if value.name in facts.values:
                fixed = np.asarray(facts.values[value.name])
                value.type = TensorType(value.dtype, fixed.shape)
                value.exprs = tuple(fixed.reshape(-1).tolist())

    def states(self, graph: Graph) -> None:
        """Lists the growing pairs by position."""
        names = [v.name for v in graph.inputs]
        for given, result, axis in self.facts.states:
            pair = names.index(given), graph.output_names.index(result), axis
            _check_state(graph.inputs[pair[0]], graph.outputs[pair[1]], given, result, axis)
            graph.states.append(pair)

    def rank(self, value: Value) -> int:
        if value.name in self.facts.shapes:
            return len(self.facts.shapes[value.name])
        if value.name not in self.facts.ranks:
            raise Specialise("rank", value, "the model does not give it")
        return self.facts.ranks[value.name]

    def walk(self, b: ImportBuilder, graph: LoadedGraph, until: set[str] | None = None) -> None:
        """Imports every node, or only up to the ones that give the names in `until`."""
        for name, weight in graph.initializers.items():
            if name not in b.scope.values:
                b.scope.set(name, self.weight(b, weight))
        for node in graph.nodes:
            self.node(b, node, self.opsets)
            if until is not None and until <= b.scope.values.keys():
                break

    def weight(self, b: ImportBuilder, weight: Weight) -> Value:
        value = Value(TensorType(weight.dtype, tuple(weight.dims)), weight.name,
                      const=weight.array)
        value.weight = weight
        return value

    def node(self, b: ImportBuilder, node: LoadedNode, opsets: dict[str, int]) -> None:
        opset = opsets.get(node.domain, 0)
        origin = Origin(node.label, node.op_type, node.domain, opset)
        try:
            with b.at(origin):
                self.dispatch(b, node, opset, opsets)
        except Error as error:
            raise error.at(node=node.label, op=node.op_type, domain=node.domain, opset=opset)

    def dispatch(self, b: ImportBuilder, node: LoadedNode, opset: int, opsets: dict) -> None:
        entry = None if self.model.functions.is_local(node) else find(
            node.domain, node.op_type, opset)
        if entry is None:
            body = self.model.functions.expand(node, opsets, self.input_types(b, node))
            if body is None:
                raise _unknown(node, opset)
            for inner in body.nodes:
                self.node(b, inner, body.opset_imports)
            return
        inputs = [b.scope.get(name) if name else None for name in node.input]
        if not node.output:
            raise ModelError("the node has no outputs", remedy="remove the node from the model")
        if entry.name not in _TAKE_MAPS and any(isinstance(v, MapValue) for v in inputs):
            raise UnsupportedError("an input is a map", expected="a tensor",
                                   remedy="use maps as inputs of DictVectorizer or outputs only")
        given, attributes = entry.arguments(inputs, self.attributes(b, node))
        b.opset, b.wanted = opset, tuple(bool(name) for name in node.output)
        results = entry.function(b, *given, **attributes)
        self.define(b, node, entry, results)

    def define(self, b: ImportBuilder, node: LoadedNode, entry: Entry, results) -> None:
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        if len(node.output) > len(results):
            raise ModelError("too many outputs", expected=f"at most {len(results)}",
                             got=len(node.output))
        for name, value in zip(node.output, results):
            if not name:
                continue
            if value is None:
                raise UnsupportedError(f"output {name!r} of {entry.name} is not available")
            if not value.name:
                value.name = name
            b.scope.set(name, value)

    def attributes(self, b: ImportBuilder, node: LoadedNode) -> dict:
        """Tensors as constant Values, lists as tuples."""
        found = {}
        for name, value in node.attributes.items():
            if isinstance(value, Weight):
                value = self.weight(b, dataclasses.replace(value, name=""))
            elif isinstance(value, list):
                value = tuple(value)
            found[name] = value
        return found

    def input_types(self, b: ImportBuilder, node: LoadedNode) -> list:
        values = [b.scope.get(name) if name else None for name in node.input]
        return [None if v is None else proto_of(v.type) for v in values]


def _unknown(node: LoadedNode, opset: int) -> UnsupportedError:
    text = (f"operator {node.op_type!r} of domain {node.domain or 'ai.onnx'!r}, opset {opset}, is "
            f"not supported")
    last = ended(node.domain, node.op_type, opset)
    if last is None:
        return UnsupportedError(text, remedy="rlx ops lists the supported operators")
    return UnsupportedError(f"{text}: ONNX removed it in opset {last}",
                            remedy="export the model again, or for an older opset")


def _check_state(held: Value, result: Value, name: str, result_name: str, axis: int) -> None:
    """InputError where the output cannot continue the input; open dims are compared by runs."""
    fits = isinstance(result.type, TensorType) and (
        held.dtype == result.dtype and len(held.shape) == len(result.shape)
        and all(a == b or k == axis or not (isinstance(a, int) and isinstance(b, int))
                for k, (a, b) in enumerate(zip(held.shape, result.shape))))
    if not fits:
        raise InputError(f"output {result_name!r} cannot continue input {name!r}",
                         expected=str(held.type), got=str(result.type))


__all__ = ["Facts", "import_model"]
