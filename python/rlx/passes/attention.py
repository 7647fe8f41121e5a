"""Makes MatMul -> score Region -> Softmax -> MatMul one Attention; transposes become layouts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rlx.ir.expr import as_int
from rlx.ir.graph import Graph, Node, Value
from rlx.ir.prims import Attention, MatMul, Region, RegionOp, Softmax
from rlx.ir.types import DType
from rlx.passes.children import for_each_graph
from rlx.passes.epilogues import reorder
from rlx.passes.match import Uses, alias_source, transposed
from rlx.passes.regions import is_identity, merged_origin

_HEADS_FIRST = (0, 2, 1, 3)  # the transpose between bshd and bhsd, its own inverse


def attention(graph: Graph) -> Graph:
    """Every attention whose scores nobody else reads; runs after the regions pass."""
    for_each_graph(graph, _rewrite)
    return graph


def _rewrite(graph: Graph) -> None:
    uses = Uses(graph)
    for node in list(graph.nodes):
        if isinstance(node.prim, Softmax):
            _fuse(graph, uses, node)


@dataclass
class _Score:
    """What stands between the first product and the softmax."""

    product: Node
    region: Region | None
    extras: list[Value]
    scale: float = 1.0


def _fuse(graph: Graph, uses: Uses, softmax: Node) -> None:
    x, p = softmax.inputs[0], softmax.outputs[0]
    second = uses.only_reader(p)
    score = _score(uses, x)
    if score is None or second is None or not _plain(second.prim) or second.inputs[0] is not p:
        return
    if softmax.prim.axis != x.rank - 1 or softmax.prim.log or x.rank != 4:
        return
    if second.prim.trans_a or second.prim.trans_b or second.prim.alpha != 1.0:
        return
    first = score.product
    if not _plain(first.prim) or first.prim.trans_a or x.dtype is DType.FLOAT64:
        return
    k0, k_scale = _unscaled(first.inputs[1])
    q0, q_scale = _unscaled(first.inputs[0])
    k = _key(k0, first.prim.trans_b)
    q, q_layout = _operand(q0)
    v, v_layout = _operand(second.inputs[1])
    if k is None or any(t.rank != 4 for t in (q, k[0], v)):
        return
    if any(t.dtype is not q.dtype for t in (k[0], v, second.outputs[0])):
        return  # the softmax runs in a wider type than the keys are in
    heads = [_heads(t, layout) for t, layout in ((q, q_layout), k, (v, v_layout))]
    if heads[1] is not heads[2] and heads[1] != heads[2]:
        return
    if heads[0] != heads[1] and (as_int(heads[0]) is None or as_int(heads[1]) is None
                                 or heads[0] % heads[1]):
        return
    if not _same_batch(q, k[0], v):
        return
    score.scale = first.prim.alpha * q_scale * k_scale
    _replace(graph, uses, softmax, second, score, (q, q_layout), k, (v, v_layout))


def _plain(prim) -> bool:
    return isinstance(prim, MatMul) and prim.epilogue is None and prim.accumulate is DType.FLOAT32


def _heads(t: Value, layout: str):
    return t.shape[1 if layout == "bhsd" else 2]


def _same_batch(*values: Value) -> bool:
    return all(v.shape[0] is values[0].shape[0] or v.shape[0] == values[0].shape[0]
               for v in values)


def _score(uses: Uses, x: Value) -> _Score | None:
    node = x.producer
    if node is None or not uses.once(x):
        return None
    if isinstance(node.prim, MatMul):
        return _Score(node, None, [])
    if not isinstance(node.prim, Region) or len(node.prim.results) != 1:
        return None
    for slot, v in enumerate(node.inputs):
        made = v.producer
        if (made is not None and isinstance(made.prim, MatMul) and uses.once(v)
                and tuple(v.shape) == tuple(node.prim.shape)
                and is_identity(node.prim.accesses[slot])):
            others = [k for k in range(len(node.inputs)) if k != slot]
            body = reorder(node.prim, [slot, *others], DType.FLOAT32)
            return _Score(made, body, [node.inputs[k] for k in others])
    return None


def _operand(v: Value) -> tuple[Value, str]:
    """v, seen through a heads transpose and through repeated key/value heads."""
    found = transposed(v)
    if found is not None and found[1] == _HEADS_FIRST:
        return found[0], "bshd"
    return _unrepeated(v), "bhsd"


def _unscaled(v: Value) -> tuple[Value, float]:
    """(x, number) when v is x times a number, as exporters that spread the scale write it."""
    node = v.producer
    if node is None or not isinstance(node.prim, Region) or node.prim.results != (2,):
        return v, 1.0
    ops = node.prim.ops
    op = ops[2]
    kinds = [ops[a].op for a in op.args]
    if op.op not in ("mul", "div") or sorted(kinds) != ["const", "load"] or (
            op.op == "div" and kinds[1] != "const"):
        return v, 1.0
    x, number = node.inputs[0], ops[op.args[kinds.index("const")]].imm
    if tuple(x.shape) != tuple(v.shape) or not is_identity(node.prim.accesses[0]) or not number:
        return v, 1.0
    return x, number if op.op == "mul" else 1.0 / number


def _key(b: Value, trans_b: bool) -> tuple[Value, str] | None:
    """The keys as [b, h, t, d] or [b, t, h, d]; the product reads them transposed."""
    if trans_b:
        return _operand(b)
    found = transposed(b)
    if found is None:
        return None
    source, perm = found
    if perm == (0, 2, 3, 1):
        return source, "bshd"
    return _operand(source) if perm == (0, 1, 3, 2) else None


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


def _replace(graph: Graph, uses: Uses, softmax: Node, second: Node, score: _Score,
             q, k, v) -> None:
    y = second.outputs[0]
    y_layout, last = "bhsd", second
    reader = uses.only_reader(y)
    moved = transposed(reader.outputs[0]) if reader is not None else None
    if moved is not None and moved[1] == _HEADS_FIRST and moved[0] is y:
        y_layout, last = "bshd", reader
    scale, region = _leading_scale(score.scale, score.region)
    prim = Attention(scale, False, 0, q[1], k[1], v[1], y_layout, region)
    origin = merged_origin(second.origin, softmax.origin)
    inputs = [q[0], k[0], v[0], *score.extras]
    place = graph.nodes.index(last)
    graph.nodes[place] = Node(prim, inputs, [last.outputs[0]],
                              merged_origin(origin, score.product.origin))


def _leading_scale(alpha: float, region: Region | None) -> tuple[float, Region | None]:
    """alpha with a first multiplication or division of the scores by a constant taken out."""
    if region is None:
        return alpha, None
    at = next(i for i, op in enumerate(region.ops) if op.op == "load" and op.args == (0,))
    users = [i for i, op in enumerate(region.ops)
             if op.op not in ("load", "index") and at in op.args]
    if len(users) == 1 and at not in region.results:
        op = region.ops[users[0]]
        other = [a for a in op.args if a != at]
        if len(other) == 1 and region.ops[other[0]].op == "const":
            number = region.ops[other[0]].imm
            if op.op == "mul" or (op.op == "div" and op.args[0] == at and number):
                factor = number if op.op == "mul" else 1.0 / number
                ops = list(region.ops)
                ops[users[0]] = RegionOp("load", DType.FLOAT32, (0,))
                region = replace(region, ops=tuple(ops))
                return alpha * factor, _or_none(region)
    return alpha, _or_none(region)


def _or_none(region: Region) -> Region | None:
    """None for a Region that only passes the score on."""
    result = region.ops[region.results[0]]
    return None if result.op == "load" and result.args == (0,) else region
