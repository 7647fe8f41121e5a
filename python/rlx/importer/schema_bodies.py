"""Bodies of the functions of the ONNX standard, taken from the onnx package's schemas."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import defs

from rlx.errors import UnsupportedError
from rlx.importer.instance import Instance
from rlx.importer.loaded import LoadedGraph, LoadedNode
from rlx.importer.tensors import TensorReader
from rlx.importer.writing import write_node

Body = tuple[onnx.FunctionProto, LoadedNode, dict[str, onnx.AttributeProto]]


def schema_body(
    tensors: TensorReader,
    node: LoadedNode,
    imports: dict[str, int],
    input_types: Sequence[onnx.TypeProto | None],
    names: set[str],
) -> Body | None:
    """The function that defines a node, the node as the function sees it, and the defaults of its
    attributes; None if the standard defines the node's operator by words only."""
    version = imports.get(node.domain, 0)
    if not defs.has(node.op_type, max_inclusive_version=version, domain=node.domain):
        return None
    schema = defs.get_schema(node.op_type, version, node.domain)
    if schema.has_function:
        chosen = _choose(schema.function_opset_versions, version)
        body = schema.get_function_with_opset_version(chosen)
    elif schema.has_context_dependent_function:
        chosen = _choose(schema.context_dependent_function_opset_versions, version)
        node = _with_unique_graphs(node, names)
        body = _build(schema, chosen, tensors, node, input_types)
    else:
        return None
    proto = onnx.FunctionProto.FromString(body)
    if not proto.opset_import:
        proto.opset_import.append(onnx.helper.make_opsetid(node.domain, chosen))
    defaults = {
        name: attribute.default_value
        for name, attribute in schema.attributes.items()
        if attribute.default_value.name
    }
    return proto, node, defaults


def _choose(versions: Sequence[int], version: int) -> int:
    """The newest body that the version covers, else the oldest: each names its own imports."""
    covered = [v for v in versions if v <= version]
    return max(covered) if covered else min(versions)


def _build(
    schema: defs.OpSchema,
    version: int,
    tensors: TensorReader,
    node: LoadedNode,
    input_types: Sequence[onnx.TypeProto | None],
) -> bytes:
    present = [t for name, t in zip(node.input, input_types) if name]
    if len(input_types) < len(node.input) or any(t is None for t in present):
        raise UnsupportedError(
            "the body depends on the types of the inputs, which are unknown",
            node=node.label, op=node.op_type,
        )
    types = [(t or onnx.TypeProto()).SerializeToString() for t in input_types]
    data = write_node(tensors, node).SerializeToString()
    body = schema.get_context_dependent_function_with_opset_version(version, data, types)
    if not body:
        raise UnsupportedError(
            "the ONNX standard gives no body for these inputs and attributes",
            node=node.label, op=node.op_type,
        )
    return body


def _with_unique_graphs(node: LoadedNode, names: set[str]) -> LoadedNode:
    """The node with its graphs renamed: a built body mixes their names with its own."""
    if not any(True for _ in node.subgraphs()):
        return node
    instance = Instance(node, {}, names)
    return LoadedNode(
        node.op_type, node.domain, node.name, node.input, node.output,
        {key: instance.graph(value, {}) if isinstance(value, LoadedGraph) else value
         for key, value in node.attributes.items()},
        node.overload,
    )
