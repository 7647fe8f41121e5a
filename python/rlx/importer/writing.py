"""Loaded nodes and graphs back to protobuf, for the onnx package's function builders.

Tensors are stand-ins without data, which the reader that lent them resolves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from rlx.importer.loaded import LoadedGraph, LoadedNode, Weight
from rlx.importer.protos import AttributeProto, GraphProto, NodeProto, ValueInfoProto
from rlx.importer.tensors import TensorReader


def write_node(tensors: TensorReader, node: LoadedNode) -> NodeProto:
    """A NodeProto that GraphLoader reads back as a node of the same meaning."""
    return NodeProto(
        op_type=node.op_type,
        domain=node.domain,
        name=node.name,
        input=node.input,
        output=node.output,
        attribute=[_attribute(tensors, key, value) for key, value in node.attributes.items()],
        overload=node.overload,
    )


def _graph(tensors: TensorReader, graph: LoadedGraph) -> GraphProto:
    # onnx's builders copy a graph's nodes into their own graphs and lose its initializers, so
    # these become Constant nodes.
    constants = [
        helper.make_node("Constant", [], [name], value=tensors.lend(weight))
        for name, weight in graph.initializers.items()
        if name not in graph.defaults
    ]
    return GraphProto(
        name=graph.name or "graph",
        input=[ValueInfoProto(name=n, type=t) for n, t in graph.inputs.items()],
        output=[ValueInfoProto(name=n, type=graph.output_types[n]) for n in graph.outputs],
        node=constants + [write_node(tensors, node) for node in graph.nodes],
    )


def _attribute(tensors: TensorReader, name: str, value: Any) -> AttributeProto:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    items = value if isinstance(value, list) else [value]
    if not items:
        # An empty list reads back as an empty list whatever its type.
        return AttributeProto(name=name, type=AttributeProto.INTS)
    if isinstance(items[0], Weight):
        items = [tensors.lend(item) for item in items]
    elif isinstance(items[0], LoadedGraph):
        items = [_graph(tensors, item) for item in items]
    return helper.make_attribute(name, items if isinstance(value, list) else items[0])
