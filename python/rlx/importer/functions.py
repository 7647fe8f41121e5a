"""Function bodies: expands a node into the nodes of a model-local or an ONNX function.

An importer asks `is_local` first (such nodes are always expanded), then its own ops, then `expand`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rlx.errors import ModelError, UnsupportedError, context
from rlx.importer import opsets
from rlx.importer.attributes import read_attribute
from rlx.importer.graphs import GraphLoader
from rlx.importer.instance import Instance
from rlx.importer.loaded import FunctionBody, LoadedGraph, LoadedNode
from rlx.importer.protos import FunctionProto, NodeProto, TypeProto
from rlx.importer.schema_bodies import SchemaBody, schema_body

# More nodes than any real model has; functions that call functions can multiply beyond any bound.
MAX_NODES = 5_000_000

Key = tuple[str, str, str]  # domain, name, overload


@dataclass(slots=True, eq=False)
class Template:
    """A function as read: its nodes still have formal names and AttributeRefs.

    `attributes` are the names that a call may give, None if a schema says which. `outer` is as
    in SchemaBody.
    """

    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: set[str] | None
    defaults: dict[str, Any]
    nodes: list[LoadedNode]
    defined: set[str]
    imports: dict[str, int]
    outer: dict[str, str]


class FunctionTable:
    """The functions of one model, and through it those of the ONNX standard."""

    def __init__(self, protos: Iterable[FunctionProto], loader: GraphLoader) -> None:
        self.loader = loader
        self.protos: dict[Key, FunctionProto] = {}
        self.templates: dict[Key, Template] = {}
        for proto in protos:
            key = (opsets.domain_name(proto.domain), proto.name, proto.overload)
            if key in self.protos:
                raise ModelError(f"the model has two functions {_shown(key)}")
            self.protos[key] = proto
        self.sizes: dict[Key, int] = {}
        for key in self.protos:
            self._measure(key)

    def is_local(self, node: LoadedNode) -> bool:
        """Whether the model itself defines the node's operator."""
        return _key(node) in self.protos

    def expand(
        self,
        node: LoadedNode,
        imports: dict[str, int],
        input_types: Sequence[TypeProto | None] = (),
    ) -> FunctionBody | None:
        """The node's replacement, or None if its operator is no function.

        `imports` are those in force where the node stands. `input_types` are needed by the ONNX
        functions whose body depends on them; None for an absent input.
        """
        key = _key(node)
        with context("expanding", node):
            if key in self.protos:
                template = self._template(key)
            else:
                tensors, taken = self.loader.tensors, self.loader.names
                body = schema_body(tensors, node, imports, input_types, taken)
                if body is None:
                    return None
                template = self._read(body, imports, None)
            return self._instantiate(template, node)

    def _template(self, key: Key) -> Template:
        if key not in self.templates:
            proto = self.protos[key]
            with context("reading the function", _shown(key)):
                formal = {*proto.attribute, *(a.name for a in proto.attribute_proto)}
                body = SchemaBody(proto, {})
                self.templates[key] = self._read(body, self.loader.imports, formal)
        return self.templates[key]

    def _read(
        self, body: SchemaBody, outer_imports: dict[str, int], attributes: set[str] | None
    ) -> Template:
        proto = body.proto
        imports = {**outer_imports, **opsets.read_imports(proto.opset_import)}
        loader = GraphLoader(
            self.loader.tensors, imports, self.loader.ir_version, set(), in_function=True
        )
        inputs, outputs = list(proto.input), list(proto.output)
        # Which outputs a body has may depend on the call, so they are looked at when it is known.
        nodes, captures = loader.nodes(proto.node, inputs, ())
        loader.refuse_undefined({n: by for n, by in captures.items() if n not in body.outer})
        defined = {*inputs, *(name for node in nodes for name in node.output)}
        defaults = {**body.defaults, **{a.name: a for a in proto.attribute_proto}}
        values = {name: read_attribute(loader, a) for name, a in defaults.items()}
        return Template(
            proto.name, inputs, outputs, attributes, values, nodes, defined, imports, body.outer
        )

    def _instantiate(self, template: Template, node: LoadedNode) -> FunctionBody:
        for count, formal, what in (
            (len(node.input), template.inputs, "inputs"),
            (len(node.output), template.outputs, "outputs"),
        ):
            if count > len(formal):
                raise ModelError(
                    f"the node has more {what} than its function",
                    node=node.label, op=node.op_type, expected=f"at most {len(formal)}", got=count,
                )
        known = template.attributes
        unknown = [] if known is None else node.attributes.keys() - known
        if unknown:
            raise ModelError(
                f"the node gives its function the unknown attributes {sorted(unknown)}",
                node=node.label, op=node.op_type, expected=sorted(template.attributes),
            )
        for formal, actual in zip(template.outputs, node.output):
            if actual and formal not in template.defined:
                raise ModelError(
                    f"the function's output {formal!r} is defined nowhere in it",
                    node=node.label, op=node.op_type,
                )
        values = {**template.defaults, **node.attributes}
        instance = Instance(node, values, self.loader.names)
        nodes = instance.body(template.inputs, template.outputs, template.nodes, template.outer)
        return FunctionBody(template.name, nodes, dict(template.imports))

    def _measure(self, key: Key, calls: tuple[Key, ...] = ()) -> int:
        """The nodes that a function expands to, functions inside it too. Refuses recursion."""
        if key in calls:
            chain = " -> ".join(_shown(k) for k in (*calls[calls.index(key) :], key))
            raise ModelError(f"a function calls itself: {chain}")
        if len(calls) > 200:
            raise UnsupportedError("functions call each other more than 200 deep")
        if key not in self.sizes:
            total = 0
            for node in _all_nodes(self.protos[key].node):
                inner = _key(node)
                total += self._measure(inner, (*calls, key)) if inner in self.protos else 1
            self.sizes[key] = total
        return self.sizes[key]

    def check_size(self, graph: LoadedGraph) -> None:
        """Refuse a model whose local functions multiply it beyond MAX_NODES nodes."""
        if self.protos and self._expanded(graph) > MAX_NODES:
            raise ModelError(f"the model's functions expand to more than {MAX_NODES} nodes")

    def _expanded(self, graph: LoadedGraph) -> int:
        return sum(
            self.sizes.get(_key(node), 1) + sum(self._expanded(g) for _, g in node.subgraphs())
            for node in graph.nodes
        )


def _key(node: LoadedNode | NodeProto) -> Key:
    return opsets.domain_name(node.domain), node.op_type, node.overload


def _shown(key: Key) -> str:
    return f"{key[0] or 'ai.onnx'}.{key[1]}" + (f":{key[2]}" if key[2] else "")


def _all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        for attribute in node.attribute:
            stack += attribute.g.node
            for graph in attribute.graphs:
                stack += graph.node
