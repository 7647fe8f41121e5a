"""GraphProto to LoadedGraph: names resolved and checked, nodes ordered, subgraphs included."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from rlx.errors import ModelError, UnsupportedError, context
from rlx.importer import opsets
from rlx.importer.attributes import read_attribute
from rlx.importer.loaded import LoadedGraph, LoadedNode, Weight
from rlx.importer.protos import GraphProto, NodeProto
from rlx.importer.tensors import TensorReader
from rlx.importer.toposort import Cycle, topological_order

_MAX_NESTING = 50


class GraphLoader:
    """Reads graphs, subgraphs and function bodies that share operator set imports.

    `names` gathers every value name met, so that new ones can be made unlike them.
    """

    def __init__(
        self,
        tensors: TensorReader,
        imports: dict[str, int],
        ir_version: int,
        names: set[str],
        in_function: bool = False,
    ) -> None:
        self.tensors, self.imports, self.ir_version = tensors, imports, ir_version
        self.names, self.in_function = names, in_function
        self.depth = 0

    def main(self, proto: GraphProto) -> LoadedGraph:
        """A graph that nothing surrounds."""
        graph = self.graph(proto)
        self.refuse_undefined(graph.captures)
        return graph

    def graph(self, proto: GraphProto) -> LoadedGraph:
        """A graph whose `captures` are the names that it leaves to the surrounding ones."""
        if self.depth > _MAX_NESTING:
            raise UnsupportedError(f"subgraphs are nested more than {_MAX_NESTING} deep")
        self.depth += 1
        try:
            return self._graph(proto)
        finally:
            self.depth -= 1

    def _graph(self, proto: GraphProto) -> LoadedGraph:
        initializers = self._initializers(proto)
        listed = {info.name: info.type for info in proto.input}
        _check_names([info.name for info in proto.input], "graph input")
        inputs = listed
        if self.ir_version < opsets.IR_WITH_DEFAULTS:
            inputs = {name: t for name, t in listed.items() if name not in initializers}
        outputs = [info.name for info in proto.output]
        if not all(isinstance(name, str) and name for name in outputs):
            raise ModelError(f"a graph output has no usable name: {outputs}")
        nodes, captures = self.nodes(proto.node, inputs.keys() | initializers.keys(), outputs)
        return LoadedGraph(
            name=str(proto.name),
            nodes=nodes,
            inputs=inputs,
            outputs=outputs,
            output_types={info.name: info.type for info in proto.output},
            initializers=initializers,
            defaults=frozenset(inputs.keys() & initializers.keys()),
            captures=captures,
            hints={info.name: info.type for info in proto.value_info},
        )

    def _initializers(self, proto: GraphProto) -> dict[str, Weight]:
        weights = [self.tensors.weight(t, "initializer") for t in proto.initializer]
        weights += [self.tensors.sparse(t, "initializer") for t in proto.sparse_initializer]
        _check_names([weight.name for weight in weights], "initializer")
        return {weight.name: weight for weight in weights}

    def nodes(
        self, protos: Iterable[NodeProto], given: Iterable[str], outputs: Sequence[str]
    ) -> tuple[list[LoadedNode], dict[str, str]]:
        """Nodes in topological order, and the names read that neither `given` nor a node defines,
        each with the label of a reader. `outputs` are read too."""
        nodes = [self.node(proto) for proto in protos]
        given = set(given)
        producer = self._producers(nodes, given)
        reads = [_reads(node) for node in nodes]
        self.names |= given
        self.names.update(producer)
        try:
            order = topological_order(reads, producer)
        except Cycle as cycle:
            raise _cycle_error([nodes[i] for i in cycle.positions]) from None
        captures: dict[str, str] = {}
        for i in order:
            for name in reads[i]:
                if name and name not in producer and name not in given:
                    captures.setdefault(name, _reader(nodes[i], name))
        for name in outputs:
            if name not in producer and name not in given:
                captures.setdefault(name, "the graph's outputs")
        return [nodes[i] for i in order], captures

    def _producers(self, nodes: list[LoadedNode], given: set[str]) -> dict[str, int]:
        producer: dict[str, int] = {}
        for i, node in enumerate(nodes):
            for name in node.output:
                if not name:
                    continue
                if name in producer or name in given:
                    other = nodes[producer[name]] if name in producer else "an input of the graph"
                    raise ModelError(
                        f"the value {name!r} is defined twice, by {other} and by {node}",
                        node=node.label,
                        op=node.op_type,
                        remedy="give each value a name of its own",
                    )
                producer[name] = i
        return producer

    def node(self, proto: NodeProto) -> LoadedNode:
        """A node with its attributes read."""
        node = LoadedNode(
            proto.op_type, opsets.domain_name(proto.domain), proto.name,
            proto.input[:], proto.output[:], {}, proto.overload,
        )
        try:
            # The protobuf package gives bytes for text that is not UTF-8; join refuses them.
            "".join((node.op_type, node.domain, node.name, *node.input, *node.output))
        except TypeError:
            raise ModelError("a node has a name that is not UTF-8", node=str(node)) from None
        if not node.op_type:
            raise ModelError("a node has no op_type", node=node.label)
        if node.domain not in self.imports:
            opsets.require_domain(self.imports, node.domain, node.op_type, node.label)
        if proto.attribute:
            with context("reading the attributes of", node):
                self._attributes(proto, node.attributes)
        return node

    def _attributes(self, proto: NodeProto, values: dict[str, Any]) -> None:
        for attribute in proto.attribute:
            name = attribute.name
            if not isinstance(name, str) or not name or name in values:
                raise ModelError(f"the node has the attribute {name!r} twice, or without a name")
            values[name] = read_attribute(self, attribute)

    def refuse_undefined(self, captures: dict[str, str]) -> None:
        """Raise ModelError if a name is left that nothing around defines."""
        for name, reader in captures.items():
            few = len(self.names) < 10_000  # comparing with all takes a second for 10 000
            close = difflib.get_close_matches(name, self.names, 1) if few else []
            raise ModelError(
                f"{reader} needs the value {name!r}, which nothing defines",
                remedy=f"did the exporter mean {close[0]!r}?" if close else None,
            )


def _check_names(names: list[str], what: str) -> None:
    if len(set(names)) < len(names) or not all(isinstance(name, str) and name for name in names):
        bad = next(n for n in names if not isinstance(n, str) or not n or names.count(n) > 1)
        raise ModelError(f"{what} {bad!r} is listed twice, or has no usable name")


def _reads(node: LoadedNode) -> list[str]:
    """The names a node needs, those that its subgraphs capture too."""
    captured = [name for _, graph in node.subgraphs() for name in graph.captures]
    return node.input + captured if captured else node.input


def _reader(node: LoadedNode, name: str) -> str:
    """Who reads a name: the node, or one inside its subgraphs."""
    if name not in node.input:
        for attribute, graph in node.subgraphs():
            if name in graph.captures:
                return f"{graph.captures[name]}, in {attribute} of {node},"
    return str(node)


def _cycle_error(nodes: list[LoadedNode]) -> ModelError:
    shown = [str(node) for node in nodes[:8]] + ["..."] * (len(nodes) > 8)
    return ModelError(
        f"the graph has a cycle: {' -> '.join(shown)} -> {nodes[0]}",
        node=nodes[0].label,
        op=nodes[0].op_type,
    )
