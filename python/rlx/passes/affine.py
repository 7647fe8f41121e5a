"""Folds the affine start of an epilogue (y * s + t by channel) into constant weights and a bias."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlx.ir.graph import Node, Value
from rlx.ir.prims import AxisMap, Conv, Region, RegionOp
from rlx.ir.slots import slots
from rlx.ir.types import DType, TensorType


def fold_scale(node: Node, channel: int) -> None:
    """Rewrites node when its epilogue starts by scaling and its weights are constant float32."""
    weights = node.inputs[1]
    if not weights.is_const or weights.dtype is not DType.FLOAT32:
        return
    if not isinstance(node.prim, Conv) and weights.rank != 2:
        return
    prefix = _prefix(node, channel)
    if prefix is None:
        return
    scale, offset, end = prefix
    if np.all(scale == 1.0):
        return
    node.inputs[1] = _scaled(node, weights, scale)
    _replace_prefix(node, channel, offset, end)


def _prefix(node: Node, channel: int):
    """(scale, offset, op index) of the longest affine chain on load 0, as float64 arrays."""
    region = node.prim.epilogue
    users: dict[int, list[int]] = {}
    for i, op in enumerate(region.ops):
        if op.op not in ("load", "index", "const", "dim"):
            for a in op.args:
                users.setdefault(a, []).append(i)
    at = next(i for i, op in enumerate(region.ops) if op.op == "load" and op.args == (0,))
    scale, offset, found = np.float64(1.0), np.float64(0.0), False
    while len(users.get(at, ())) == 1 and at not in region.results:
        i = users[at][0]
        op = region.ops[i]
        if op.op not in ("add", "sub", "mul", "div") or op.dtype is not DType.FLOAT32:
            break
        left = op.args[0] == at
        constant = _constant(node, op.args[1] if left else op.args[0], channel)
        if constant is None or (op.op == "div" and not left):
            break
        if op.op == "add":
            offset = offset + constant
        elif op.op == "sub":
            sign = 1.0 if left else -1.0
            scale, offset = scale * sign, sign * (offset - constant)
        else:
            factor = constant if op.op == "mul" else 1.0 / constant
            scale, offset = scale * factor, offset * factor
        at, found = i, True
    return (scale, offset, at) if found else None


def _constant(node: Node, index: int, channel: int) -> np.ndarray | None:
    """An op's value when it is one constant, or one for each channel."""
    op = node.prim.epilogue.ops[index]
    if op.op == "const":
        return np.float64(op.imm)
    if op.op != "load" or op.args[0] == 0:
        return None
    v = node.inputs[slots(node.prim).fixed - 1 + op.args[0]]
    if not v.is_const or v.dtype is not DType.FLOAT32:
        return None
    access = node.prim.epilogue.accesses[op.args[0]]
    wide = [m.axis for m, d in zip(access, v.shape) if m.axis >= 0 and d != 1]
    if wide not in ([], [channel]):
        return None
    return v.const.astype(np.float64).reshape(-1) if wide else np.float64(v.const.reshape(()))


def _scaled(node: Node, weights: Value, scale: np.ndarray) -> Value:
    w = weights.const.astype(np.float64)
    prim = node.prim
    if not isinstance(prim, Conv):
        w = w * (np.reshape(scale, (-1, 1)) if prim.trans_b and scale.ndim else scale)
    elif prim.transposed:
        by_group = np.broadcast_to(scale, (w.shape[1] * prim.groups,))
        by_group = by_group.reshape(prim.groups, 1, w.shape[1], *(1,) * (w.ndim - 2))
        parts = w.reshape(prim.groups, -1, *w.shape[1:])
        w = (parts * by_group).reshape(w.shape)
    else:
        w = w * np.reshape(scale, (-1, *(1,) * (w.ndim - 1))) if scale.ndim else w * scale
    return Value(weights.type, weights.name, const=w.astype(np.float32))


def _replace_prefix(node: Node, channel: int, offset: np.ndarray, end: int) -> None:
    """Ops up to `end` become load 0 plus one constant offset."""
    region = node.prim.epilogue
    rank = len(region.shape)
    start = next(i for i, op in enumerate(region.ops) if op.op == "load" and op.args == (0,))
    accesses, ops = list(region.accesses), list(region.ops)
    if np.any(offset != 0.0):
        bias = np.asarray(offset, np.float32)
        bias = bias.reshape((-1, *(1,) * (rank - 1 - channel)) if bias.ndim else ())
        node.inputs.append(Value(TensorType(DType.FLOAT32, bias.shape), const=bias))
        accesses.append(tuple(AxisMap(channel + k if bias.shape[k] != 1 else -1)
                              for k in range(bias.ndim)))
        # The chain's last op becomes load 0 + load(bias); earlier ones die below.
        ops[end] = RegionOp("add", DType.FLOAT32, (start, len(ops)))
        ops.append(RegionOp("load", DType.FLOAT32, (len(accesses) - 1,)))
        results, ops = _sorted(ops, region.results)
    else:
        ops[end] = ops[start]
        results = region.results
    node.prim = replace(node.prim, epilogue=Region(region.shape, tuple(accesses), tuple(ops),
                                                   tuple(results)))
    drop_unused(node)


def _sorted(ops: list[RegionOp], results):
    """SSA order again after an operand was appended: the appended op comes first."""
    last = len(ops) - 1
    moved = {old: old + 1 for old in range(last)} | {last: 0}
    order = [ops[last], *ops[:last]]
    fixed = [op if op.op in ("load", "index") else
             replace(op, args=tuple(moved[a] for a in op.args)) for op in order]
    return [moved[r] for r in results], fixed


def drop_unused(node: Node) -> None:
    """Removes dead ops of a node's epilogue and the extras that nothing loads any more."""
    region = node.prim.epilogue
    live, stack = set(), list(region.results)
    while stack:
        i = stack.pop()
        if i not in live:
            live.add(i)
            op = region.ops[i]
            stack.extend(() if op.op in ("load", "index") else op.args)
    used = [0] + sorted({region.ops[i].args[0] for i in live if region.ops[i].op == "load"} - {0})
    renumber = {old: new for new, old in enumerate(sorted(live))}
    ops = []
    for i in sorted(live):
        op = region.ops[i]
        if op.op == "load":
            args = (used.index(op.args[0]),)
        else:
            args = op.args if op.op == "index" else tuple(renumber[a] for a in op.args)
        ops.append(replace(op, args=args))
    fixed = slots(node.prim).fixed
    node.inputs = [*node.inputs[:fixed], *(node.inputs[fixed - 1 + s] for s in used[1:])]
    node.prim = replace(node.prim, epilogue=Region(
        region.shape, tuple(region.accesses[s] for s in used), tuple(ops),
        tuple(renumber[r] for r in region.results)))
