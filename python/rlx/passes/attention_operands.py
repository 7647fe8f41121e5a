"""What the queries, keys and values of an attention are, behind scales, transposes and repeats.

Nodes that a pattern needs and the graph lacks are appended to `made`; they precede the attention.
"""

from __future__ import annotations

from dataclasses import replace

from rlx.ir.expr import as_int
from rlx.ir.graph import Alias, Node, Value
from rlx.ir.prims import Region
from rlx.ir.types import TensorType
from rlx.passes.match import alias_source, transposed
from rlx.passes.regions import is_identity, live

HEADS_FIRST = (0, 2, 1, 3)  # the transpose between bshd and bhsd, its own inverse


def operand(v: Value) -> tuple[Value, str]:
    """v, seen through a heads transpose and through repeated key/value heads."""
    found = transposed(v)
    if found is not None and found[1] == HEADS_FIRST:
        return found[0], "bshd"
    return _unrepeated(v), "bhsd"


def key(b: Value, trans_b: bool, made: list[Node]) -> tuple[Value, str] | None:
    """The keys as [b, h, t, d] or [b, t, h, d]; the product reads them transposed."""
    if trans_b:
        return operand(b)
    found = transposed(b)
    if found is None:
        straight = _transposed_flat(b, made)
        return operand(straight) if straight is not None else None
    source, perm = found
    if perm == (0, 2, 3, 1):
        return source, "bshd"
    return operand(source) if perm == (0, 1, 3, 2) else None


def unscaled(v: Value, once: bool, made: list[Node]) -> tuple[Value, float]:
    """(x, number) when v is x times a number, as exporters that spread the scale write it.

    A longer Region that ends in the scale is made anew without it, if nobody else reads v.
    """
    node = v.producer
    if node is None or not isinstance(node.prim, Region) or len(node.prim.results) != 1:
        return v, 1.0
    region = node.prim
    op = region.ops[region.results[0]]
    if op.op not in ("mul", "div") or op.dtype is not v.dtype:
        return v, 1.0
    constants = [a for a in op.args if region.ops[a].op == "const"]
    others = [a for a in op.args if region.ops[a].op != "const"]
    if len(constants) != 1 or (op.op == "div" and op.args[1] != constants[0]):
        return v, 1.0
    number = region.ops[constants[0]].imm
    if not number:
        return v, 1.0
    scale = number if op.op == "mul" else 1.0 / number
    if region.ops[others[0]].op == "load":
        x = node.inputs[region.ops[others[0]].args[0]]
        if (tuple(x.shape) == tuple(v.shape) and x.dtype is v.dtype
                and is_identity(region.accesses[region.ops[others[0]].args[0]])):
            return x, scale
    if not once or region.ops[others[0]].dtype is not v.dtype:
        return v, 1.0
    x = Value(v.type)
    made.append(Node(live(replace(region, results=(others[0],))), node.inputs, [x], node.origin))
    return x, scale


def _transposed_flat(b: Value, made: list[Node]) -> Value | None:
    """[b, h, t, d] when b is it transposed while batch and heads were one axis."""
    flat = alias_source(b)
    found = transposed(flat) if flat is not None else None
    if found is None or found[1] != (0, 2, 1) or b.rank != 4:
        return None
    batch, heads, depth, rows = b.shape
    if any(x is not y and x != y for x, y in zip((depth, rows), flat.shape[1:])):
        return None
    straight = Value(TensorType(b.dtype, (batch, heads, rows, depth)))
    source = found[0]
    made.append(Node(Alias(), [alias_source(source) or source], [straight], b.producer.origin))
    return straight


def _unrepeated(v: Value) -> Value:
    """Key/value heads that an Expand repeated: [b, h, 1, t, d] -> [b, h, r, t, d] -> reshape."""
    wide = alias_source(v)
    node = wide.producer if wide is not None else None
    if node is None or not isinstance(node.prim, Region) or wide.rank != 5 or v.rank != 4:
        return v
    if [op.op for op in node.prim.ops] != ["load"]:
        return v
    narrow, access = node.inputs[0], node.prim.accesses[0]
    source = alias_source(narrow)
    if source is None or source.rank != 4 or narrow.rank != 5 or as_int(narrow.shape[2]) != 1:
        return v
    repeats = access[2].axis == -1 and is_identity(access[:2]) and access[3:] == tuple(
        replace(access[3], axis=k) for k in (3, 4))
    merged = wide.shape[1] * wide.shape[2]
    kept = (source.shape[0], source.shape[2], source.shape[3])
    fits = (v.shape[0], v.shape[2], v.shape[3]) == kept and (
        v.shape[1] is merged or v.shape[1] == merged)
    return source if repeats and fits else v
