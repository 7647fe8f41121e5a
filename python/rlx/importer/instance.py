"""One use of a function: its nodes copied with the caller's names and attribute values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from rlx.importer.loaded import AttributeRef, LoadedGraph, LoadedNode

_ABSENT = object()


class Instance:
    """Makes the names of one use: the same each time, and unlike those of any other.

    `taken` are the names of the whole model. A new name is a path, the caller's and a last part
    without "/", so that names of two instances differ as their paths do; and a path is the first
    output of a node of the model, or stands in the inner node as unlike any such output.
    """

    def __init__(
        self, caller: LoadedNode, attributes: dict[str, Any], taken: Collection[str]
    ) -> None:
        self.caller, self.attributes, self.taken = caller, attributes, taken
        self.path = caller.path or next(filter(None, caller.output), caller.label)
        self.made: set[str] = set()

    def body(
        self,
        inputs: Sequence[str],
        outputs: Sequence[str],
        nodes: Sequence[LoadedNode],
        outer: dict[str, str],
    ) -> list[LoadedNode]:
        """The nodes with formal inputs and outputs replaced by the caller's; `outer` gives further
        names of the body that mean values around the caller."""
        given, wanted = self.caller.input, self.caller.output
        scope = dict(outer)
        scope |= {formal: given[i] if i < len(given) else "" for i, formal in enumerate(inputs)}
        passed_on: list[tuple[str, str]] = []
        for formal, actual in zip(outputs, wanted):
            if not actual:
                continue
            # A formal output that is an input, or is listed twice, has a name already.
            if formal in scope:
                passed_on.append((scope[formal], actual))
            else:
                scope[formal] = actual
        body = self._nodes(nodes, scope)
        body += [
            LoadedNode("Identity", "", f"{self.path}/Identity", [name], [actual], {})
            for name, actual in passed_on
        ]
        return body

    def _nodes(self, nodes: Sequence[LoadedNode], scope: dict[str, str]) -> list[LoadedNode]:
        copies = []
        for node in nodes:
            inputs = [self._read(name, scope) for name in node.input]
            attributes = self._attributes(node.attributes, scope)
            outputs = [self._define(name, scope) for name in node.output]
            path = self.fresh(node.name or node.op_type)
            copies.append(LoadedNode(
                node.op_type, node.domain, path, inputs, outputs, attributes, node.overload, path
            ))
        return copies

    def _attributes(self, attributes: dict[str, Any], scope: dict[str, str]) -> dict[str, Any]:
        resolved = {}
        for key, value in attributes.items():
            if isinstance(value, AttributeRef):
                value = self.attributes.get(value.name, _ABSENT)
            elif isinstance(value, LoadedGraph):
                value = self.graph(value, scope)
            elif isinstance(value, list) and value and isinstance(value[0], LoadedGraph):
                value = [self.graph(graph, scope) for graph in value]
            if value is not _ABSENT:
                resolved[key] = value
        return resolved

    def graph(self, graph: LoadedGraph, outer: dict[str, str]) -> LoadedGraph:
        """A subgraph renamed; names it defines hide those of `outer`."""
        scope = dict(outer)
        own = dict.fromkeys((*graph.inputs, *graph.initializers))
        for name in own:
            scope[name] = self.fresh(name)
        for node in graph.nodes:
            for name in filter(None, node.output):
                scope[name] = self.fresh(name)
        return LoadedGraph(
            name=graph.name,
            nodes=self._nodes(graph.nodes, scope),
            inputs={scope[name]: t for name, t in graph.inputs.items()},
            outputs=[self._read(name, scope) for name in graph.outputs],
            output_types={self._read(n, scope): t for n, t in graph.output_types.items()},
            initializers={scope[name]: weight for name, weight in graph.initializers.items()},
            defaults=frozenset(scope[name] for name in graph.defaults),
            captures={self._read(name, scope): by for name, by in graph.captures.items()},
            hints={scope[name]: t for name, t in graph.hints.items() if name in scope},
        )

    def _read(self, name: str, scope: dict[str, str]) -> str:
        # Names unknown here are defined around the caller.
        return scope.get(name, name)

    def _define(self, name: str, scope: dict[str, str]) -> str:
        if name and name not in scope:
            scope[name] = self.fresh(name)
        return scope.get(name, "")

    def fresh(self, name: str) -> str:
        """A new name that reminds of `name`."""
        new = base = f"{self.path}/{name.replace('/', '.')}"
        count = 1
        while new in self.taken or new in self.made:
            count += 1
            new = f"{base}:{count}"
        self.made.add(new)
        return new
