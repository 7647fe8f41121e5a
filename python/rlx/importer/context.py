"""The builder that operators get: the IR Builder plus what only the importer knows."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Callable

from rlx.errors import UnsupportedError
from rlx.importer.loaded import LoadedGraph
from rlx.importer.scope import Scope
from rlx.ir.build import Builder
from rlx.ir.expr import Number
from rlx.ir.graph import Graph, Node, Value
from rlx.ir.types import TensorType, Type


class ImportBuilder(Builder):
    """`opset` is that of the node's domain; `wanted` says which of its outputs are used."""

    opset: int = 0
    wanted: tuple[bool, ...] = ()
    scope: Scope
    _run: Callable  # (builder, LoadedGraph) -> None: imports the graph's nodes into builder

    def start(self, scope: Scope, run: Callable) -> ImportBuilder:
        """Gives the builder its names and the importer's walk."""
        self.scope, self._run = scope, run
        return self

    def inline(self, graph: LoadedGraph, inputs: list[Value] = ()) -> list[Value]:
        """Imports a subgraph's nodes here and gives its outputs (a branch decided already)."""
        outer = self.scope
        self.scope = Scope(outer, own_graph=False)
        try:
            for name, value in zip(graph.inputs, inputs):
                self.scope.set(name, value)
            self._run(self, graph)
            return [self.scope.get(name) for name in graph.outputs]
        finally:
            self.scope = outer

    def child(self, graph: LoadedGraph, types: list[Type],
              given: Mapping[int, Value] = MappingProxyType({})) -> Child:
        """Imports a subgraph as a Graph of its own whose first inputs have the given types.

        Dims of `types` are this graph's; they become symbols of the child. The inputs at the
        places in `given` are these values of this graph instead, which the child captures.
        """
        scope = Scope(self.scope)
        builder = ImportBuilder(Graph(name=graph.name), fixed={}, denied=self.denied)
        builder.start(scope, self._run)
        inputs = []
        for place, (name, type) in enumerate(zip(graph.inputs, types)):
            if place in given:
                value = scope.capture(given[place])
            else:
                value = Value(type, name)
                value.type = scope.rebase(type, value)
            scope.set(name, value)
            inputs.append(value)
        builder.graph.inputs = [v for place, v in enumerate(inputs) if place not in given]
        self._run(builder, graph)
        outputs = [builder.materialise(scope.get(name)) for name in graph.outputs]
        # Captured values that the body tracks as numbers must exist as tensors outside.
        captured = [(self.materialise(outer), inner) for outer, inner in scope.captures.values()]
        builder.graph.inputs += [inner for _, inner in captured]
        builder.graph.outputs = outputs
        return Child(builder.graph, inputs, outputs, [outer for outer, _ in captured],
                     scope.outside)

    def stage(self, prim, inputs: list[Value | None], outputs: list[Value | None]) -> list[Value]:
        """Appends a stage node whose output values are made already."""
        for v in inputs:
            if v is not None:
                self.materialise(v)
        self.graph.nodes.append(Node(prim, inputs, list(outputs), self.origin))
        return outputs


class Child:
    """An imported subgraph: its Graph, the values of its own inputs and outputs, and the outer
    values that it captures (its further inputs, in order)."""

    def __init__(self, graph: Graph, inputs: list[Value], outputs: list[Value],
                 captures: list[Value], dim_outside: Callable[[Number], Number | None]):
        self.graph, self.inputs, self.outputs, self.captures = graph, inputs, outputs, captures
        self._dim_outside = dim_outside

    def outside(self, type: Type) -> Type:
        """A type of the child in the outer graph's dims; None for a dim unknown outside."""
        if not isinstance(type, TensorType):
            return type
        return TensorType(type.dtype, tuple(self._dim_outside(d) for d in type.shape))


def joined_type(types: list[Type], value: Value, what: str) -> Type:
    """One type for a value that may be any of `types`: dims that differ become its symbols."""
    first = types[0]
    if not isinstance(first, TensorType):
        return first
    for t in types[1:]:
        if not isinstance(t, TensorType) or t.dtype is not first.dtype or t.rank != first.rank:
            raise UnsupportedError(f"{what}: types differ", expected=str(first), got=str(t))
    dims: list[Number] = []
    for axis, column in enumerate(zip(*(t.shape for t in types))):
        same = column[0] is not None and all(d is column[0] or d == column[0] for d in column)
        dims.append(column[0] if same else value.dim(axis))
    return TensorType(first.dtype, tuple(dims))
