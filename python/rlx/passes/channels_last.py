"""Which nodes can run channels last, and what each of them then looks like."""

from __future__ import annotations

from dataclasses import replace

from rlx.ir.graph import Alias, Node, Value
from rlx.ir.prims import (
    Access, Conv, Cumulate, Move, MovePart, Norm, Pool, Reduce, Region, Resize, Softmax,
)
from rlx.ir.types import DType, TensorType


def last_perm(rank: int) -> tuple[int, ...]:
    """The transpose from [N, C, spatial...] to [N, spatial..., C]."""
    return (0, *range(2, rank), 1)


def first_perm(rank: int) -> tuple[int, ...]:
    return (0, rank - 1, *range(1, rank - 1))


def is_image(v: Value | None) -> bool:
    return v is not None and isinstance(v.type, TensorType) and v.rank >= 3 and (
        v.dtype is not DType.STRING)


def last_type(type: TensorType) -> TensorType:
    return TensorType(type.dtype, tuple(type.shape[p] for p in last_perm(type.rank)))


def can_move(node: Node) -> bool:
    """Whether the node has a channels-last form whose outputs are channels last too, or have
    lost an axis without disorder (keeps_layout tells which)."""
    rule = _RULES.get(type(node.prim))
    if rule is None or not all(v is None or is_image(v) or isinstance(node.prim, Reduce)
                               for v in node.outputs):
        return False
    return rule(node)


def keeps_layout(node: Node) -> bool:
    """Whether the outputs of the channels-last form are channels last."""
    return not isinstance(node.prim, Reduce) or node.prim.keepdims


def image_inputs(node: Node) -> list[int]:
    """The inputs that a channels-last form reads channels last; the others stay as they are."""
    prim, inputs = node.prim, node.inputs
    if isinstance(prim, Alias):
        return [0]
    if isinstance(prim, Move):
        return [k for k in range(len(inputs)) if k != prim.fill]
    if isinstance(prim, (Conv, Norm)):
        extras = 4 if isinstance(prim, Conv) else 3
        own = [0, *range(extras, len(inputs))]
    else:
        own = range(len(inputs))
    rank = image_rank(node)
    return [k for k in own if is_image(inputs[k]) and inputs[k].rank == rank]


def image_rank(node: Node) -> int:
    prim = node.prim
    if isinstance(prim, Region):
        return len(prim.shape)
    if isinstance(prim, (Reduce, Softmax)) and prim.prologue is not None:
        return len(prim.prologue.shape)
    return node.inputs[0].rank


# -- what can move -------------------------------------------------------------------------------

def _region(node: Node) -> bool:
    return len(node.prim.shape) >= 3


def _reduce(node: Node) -> bool:
    prim, rank = node.prim, image_rank(node)
    if rank < 3:
        return False
    kept = [a for a in last_perm(rank) if a not in prim.axes]
    return prim.keepdims or kept == sorted(kept)


def _plain(node: Node) -> bool:
    return image_rank(node) >= 3


def _norm(node: Node) -> bool:
    return node.prim.kind == "group" and node.prim.prologue is None and not any(node.outputs[1:])


def _move(node: Node) -> bool:
    return all(p.perm == tuple(range(len(p.perm))) for p in node.prim.parts)


def _alias(node: Node) -> bool:
    """Spatial axes merged or split: batch and channels stay what they are."""
    x, y = node.inputs[0], node.outputs[0]
    return is_image(x) and all(a is b or a == b for a, b in zip(x.shape[:2], y.shape[:2]))


_RULES = {
    Region: _region, Reduce: _reduce, Softmax: _plain, Cumulate: _plain, Conv: _plain,
    Pool: _plain, Resize: _plain, Norm: _norm, Move: _move, Alias: _alias,
}


# -- the channels-last forms ---------------------------------------------------------------------

def last_form(node: Node):
    """The primitive over channels-last images."""
    prim = node.prim
    if isinstance(prim, Alias):
        return prim
    rank = image_rank(node)
    perm = last_perm(rank)
    place = {axis: k for k, axis in enumerate(perm)}
    moved = set(image_inputs(node))
    if isinstance(prim, Region):
        return _last_region(prim, perm, [k in moved for k in range(len(node.inputs))])
    if isinstance(prim, (Reduce, Softmax)):
        if prim.prologue is not None:
            flags = [k in moved for k in range(len(node.inputs))]
            prim = replace(prim, prologue=_last_region(prim.prologue, perm, flags))
        if isinstance(prim, Softmax):
            return replace(prim, axis=place[prim.axis])
        return replace(prim, axes=tuple(sorted(place[a] for a in prim.axes)))
    if isinstance(prim, (Conv, Norm)):
        extras = 4 if isinstance(prim, Conv) else 3
        if prim.epilogue is not None:
            flags = [True, *(k in moved for k in range(extras, len(node.inputs)))]
            prim = replace(prim, epilogue=_last_region(prim.epilogue, perm, flags))
        return replace(prim, channels_last=True)
    if isinstance(prim, Pool):
        return replace(prim, channels_last=True)
    if isinstance(prim, Cumulate):
        return replace(prim, axis=place[prim.axis])
    if isinstance(prim, Resize):
        return replace(prim, axes=tuple(place[a] for a in prim.axes))
    return replace(prim, parts=tuple(_last_part(p, perm) for p in prim.parts))


def _last_region(region: Region, perm: tuple[int, ...], moved: list[bool]) -> Region:
    place = {axis: k for k, axis in enumerate(perm)}

    def access_of(access: Access, is_moved: bool) -> Access:
        maps = tuple(m if m.axis < 0 else replace(m, axis=place[m.axis]) for m in access)
        return tuple(maps[p] for p in perm) if is_moved else maps

    ops = tuple(replace(op, args=(place[op.args[0]],)) if op.op == "index" else op
                for op in region.ops)
    accesses = tuple(map(access_of, region.accesses, moved))
    return Region(tuple(region.shape[p] for p in perm), accesses, ops, region.results)


def _last_part(part: MovePart, perm: tuple[int, ...]) -> MovePart:
    fields = (part.starts, part.steps, part.extents, part.offsets)
    return MovePart(part.input, part.perm, *(tuple(f[p] for p in perm) for f in fields))
