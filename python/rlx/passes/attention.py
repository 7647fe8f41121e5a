"""Makes MatMul -> score Region -> Softmax -> MatMul one Attention; transposes become layouts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from rlx.ir.expr import as_int
from rlx.ir.graph import Graph, Node, Value
from rlx.ir.prims import Attention, MatMul, Region, RegionOp, Softmax
from rlx.ir.types import DType
from rlx.passes.attention_operands import HEADS_FIRST, key, operand, unscaled
from rlx.passes.children import for_each_graph
from rlx.passes.epilogues import reorder
from rlx.passes.match import Uses, transposed
from rlx.passes.regions import is_identity, merged_origin

# What exporters add to hide a key, or less: no score of the type makes up for it.
_LOWEST = {DType.FLOAT32: -1e30, DType.BFLOAT16: -1e30, DType.FLOAT16: -65504.0}


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
    made: list[Node] = field(default_factory=list)  # nodes to put before the attention


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
    made: list[Node] = []
    k0, k_scale = unscaled(first.inputs[1], uses.once(first.inputs[1]), made)
    q0, q_scale = unscaled(first.inputs[0], uses.once(first.inputs[0]), made)
    k = key(k0, first.prim.trans_b, made)
    q, q_layout = operand(q0)
    v, v_layout = operand(second.inputs[1])
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
    score.made = made
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


def _replace(graph: Graph, uses: Uses, softmax: Node, second: Node, score: _Score,
             q, k, v) -> None:
    y = second.outputs[0]
    y_layout, last = "bhsd", second
    reader = uses.only_reader(y)
    moved = transposed(reader.outputs[0]) if reader is not None else None
    if moved is not None and moved[1] == HEADS_FIRST and moved[0] is y:
        y_layout, last = "bshd", reader
    scale, region = _leading_scale(score.scale, score.region)
    offset = _causal_offset(region, score.extras)
    if offset is not None:
        region, score.extras = None, []
    prim = Attention(scale, offset is not None, offset or 0, q[1], k[1], v[1], y_layout, region)
    origin = merged_origin(second.origin, softmax.origin)
    inputs = [q[0], k[0], v[0], *score.extras]
    place = graph.nodes.index(last)
    graph.nodes[place:place + 1] = [*score.made, Node(
        prim, inputs, [last.outputs[0]], merged_origin(origin, score.product.origin))]


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


def _causal_offset(region: Region | None, extras: list[Value]) -> int | None:
    """n when all that happens to the scores is that a constant hides key j of row i, j > i + n."""
    if region is None or len(extras) != 1 or not extras[0].is_const:
        return None
    ops = region.ops
    last = ops[region.results[0]]
    loads = sorted(ops[a].args for a in last.args if ops[a].op == "load")
    mask, plane = extras[0].const, tuple(as_int(d) for d in region.shape[2:])
    if last.op != "add" or loads != [(0,), (1,)] or mask.shape[-2:] != plane:
        return None
    if mask.size != plane[0] * plane[1] or not mask.size or extras[0].dtype not in _LOWEST:
        return None
    if any(m.axis != 2 + k or as_int(m.div) != 1 or as_int(m.mod) != 0
           for k, m in enumerate(region.accesses[1][-2:]) if plane[k] != 1):
        return None
    added = mask.reshape(plane).astype(np.float32)
    hidden = added <= _LOWEST[extras[0].dtype]
    offset = int((~hidden[0]).sum()) - 1
    beyond = np.arange(plane[1]) > np.arange(plane[0])[:, None] + offset
    fits = offset >= 0 and (hidden == beyond).all() and not added[~hidden].any()
    return offset if fits else None


def _or_none(region: Region) -> Region | None:
    """None for a Region that only passes the score on."""
    result = region.ops[region.results[0]]
    return None if result.op == "load" and result.args == (0,) else region
