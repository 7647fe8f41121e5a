"""Bodies of the functions of the ONNX standard, taken from the onnx package's schemas."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rlx.errors import UnsupportedError
from rlx.importer.instance import Instance
from rlx.importer.loaded import LoadedGraph, LoadedNode
from rlx.importer.protos import AttributeProto, FunctionProto, TypeProto
from rlx.importer.tensors import TensorReader

if TYPE_CHECKING:
    from onnx import defs


@dataclass(slots=True)
class SchemaBody:
    """The function that defines a node, the defaults of its attributes, and the names in it that
    mean values around the node (captured by the node's own graphs)."""

    proto: FunctionProto
    defaults: dict[str, AttributeProto]
    outer: dict[str, str] = field(default_factory=dict)


def schema_body(
    tensors: TensorReader,
    node: LoadedNode,
    imports: dict[str, int],
    input_types: Sequence[TypeProto | None],
    taken: Collection[str],
) -> SchemaBody | None:
    """A node's function, or None if the standard defines the node's operator by words only."""
    from onnx import defs, helper  # here: most models need nothing of the package
    version = imports.get(node.domain, 0)
    if not defs.has(node.op_type, max_inclusive_version=version, domain=node.domain):
        return None
    schema = defs.get_schema(node.op_type, version, node.domain)
    outer: dict[str, str] = {}
    if schema.has_function:
        chosen = _choose(schema.function_opset_versions, version)
        body = schema.get_function_with_opset_version(chosen)
    elif schema.has_context_dependent_function:
        chosen = _choose(schema.context_dependent_function_opset_versions, version)
        node, outer = _with_unique_graphs(node, taken)
        body = _build(schema, chosen, tensors, node, input_types)
    else:
        return None
    proto = FunctionProto.FromString(body)
    if not proto.opset_import:
        proto.opset_import.append(helper.make_opsetid(node.domain, chosen))
    defaults = {
        name: attribute.default_value
        for name, attribute in schema.attributes.items()
        if attribute.default_value.name
    }
    return SchemaBody(proto, defaults, outer)


def _choose(versions: Sequence[int], version: int) -> int:
    """The newest body that the version covers, else the oldest: each names its own imports."""
    covered = [v for v in versions if v <= version]
    return max(covered) if covered else min(versions)


def _build(
    schema: defs.OpSchema,
    version: int,
    tensors: TensorReader,
    node: LoadedNode,
    input_types: Sequence[TypeProto | None],
) -> bytes:
    present = [t for name, t in zip(node.input, input_types) if name]
    if len(input_types) < len(node.input) or any(t is None for t in present):
        raise UnsupportedError(
            "the body depends on the types of the inputs, which are unknown",
            node=node.label, op=node.op_type,
        )
    types = [(t or TypeProto()).SerializeToString() for t in input_types]
    from rlx.importer.writing import write_node  # here, since it takes the package too
    data = write_node(tensors, node).SerializeToString()
    body = schema.get_context_dependent_function_with_opset_version(version, data, types)
    if not body:
        raise UnsupportedError(
            "the ONNX standard gives no body for these inputs and attributes",
            node=node.label, op=node.op_type,
        )
    return body


def _with_unique_graphs(
    node: LoadedNode, taken: Collection[str]
) -> tuple[LoadedNode, dict[str, str]]:
    """The node with all names in its graphs made unlike those of a built body, which mixes them
    with its own, and what the new names of captured values stand for."""
    captured = dict.fromkeys(name for _, graph in node.subgraphs() for name in graph.captures)
    instance = Instance(node, {}, taken)
    scope = {name: instance.fresh(name) for name in captured}
    attributes = {
        key: instance.graph(value, scope) if isinstance(value, LoadedGraph) else value
        for key, value in node.attributes.items()
    }
    renamed = replace(node, attributes=attributes)
    return renamed, {new: name for name, new in scope.items()}
