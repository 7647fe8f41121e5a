"""How many operands a primitive takes and gives by position, and the numbers inside it."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace

from rlx.ir import prims
from rlx.ir.bodies import BODIES
from rlx.ir.expr import Expr, Number
from rlx.ir.prims import (
    Attention, AxisMap, Conv, Cumulate, Fft, Gather, Map, MatMul, Move, NonMaxSuppression, Norm,
    Pool, Random, Recurrent, Reduce, Region, Resize, Scatter, Softmax, Sort, regions_of,
)


@dataclass(frozen=True, slots=True)
class Slots:
    """The first `required` inputs must be given, as must the extras that follow the `fixed` ones.

    The first output must be given; the others may be absent where the primitive says so.
    """

    required: int
    fixed: int
    outputs: int
    extras: int = 0

    @property
    def inputs(self) -> int:
        return self.fixed + self.extras


_FIXED = {
    Cumulate: Slots(1, 1, 1), MatMul: Slots(2, 6, 1), Conv: Slots(2, 4, 1), Pool: Slots(1, 1, 2),
    Norm: Slots(1, 3, 4), Attention: Slots(3, 3, 1), Gather: Slots(2, 2, 1),
    Scatter: Slots(3, 3, 1), Resize: Slots(1, 1, 1), NonMaxSuppression: Slots(2, 5, 2),
    Random: Slots(0, 1, 1), Recurrent: Slots(3, 12, 3), Fft: Slots(1, 1, 1),
}
_SORT = {"topk": Slots(1, 1, 2), "nonzero": Slots(1, 1, 2), "compress": Slots(2, 2, 2),
         "unique": Slots(1, 1, 5)}


def slots(prim) -> Slots:
    """The operand positions of a primitive."""
    if isinstance(prim, Map):
        body = BODIES[prim.body]
        return Slots(body.required, body.inputs, body.outputs)
    if isinstance(prim, Region):
        return Slots(len(prim.accesses), len(prim.accesses), len(prim.results))
    if isinstance(prim, Move):
        count = 1 + max((prim.fill, *(part.input for part in prim.parts)))
        return Slots(count, count, 1)
    if isinstance(prim, (Reduce, Softmax)):
        count = 1 if prim.prologue is None else len(prim.prologue.accesses)
        return Slots(count, count, 1)
    fixed = _SORT[prim.kind] if isinstance(prim, Sort) else _FIXED[type(prim)]
    # Load 0 of a fused Region is the primitive's own operand or result.
    extras = sum(len(region.accesses) - 1 for _, region in regions_of(prim))
    return Slots(fixed.required, fixed.fixed, fixed.outputs, extras)


def _symbolic_fields() -> dict[type, tuple[str, ...]]:
    """For each class of ir/prims.py the fields that may hold numbers, however deep."""
    classes = {c.__name__: c for c in vars(prims).values()
               if isinstance(c, type) and c.__module__ == prims.__name__}
    told = re.compile(r"\b(Dim|Access|" + "|".join(classes) + r")\b")
    return {c: tuple(f.name for f in fields(c) if told.search(f.type)) for c in classes.values()}


_SYMBOLIC = _symbolic_fields()


def numbers_of(prim) -> list[Expr]:
    """Every symbolic number in a primitive's fields, however deep; stage nodes have none."""
    found: list[Expr] = []
    stack = [prim]
    while stack:
        x = stack.pop()
        kind = type(x)
        if kind is int:  # by far the most: looked at first, since every pass comes through here
            continue
        if kind is tuple:
            stack += x
        elif kind is Expr:
            found.append(x)
        elif kind is AxisMap:
            stack += (x.div, x.mod)
        else:
            stack += [getattr(x, name) for name in _SYMBOLIC.get(kind, ())]
    return found


def with_numbers(x, change: Callable[[Expr], Number]):
    """A primitive, or a part of one, with every symbolic number in it changed."""
    kind = type(x)
    if kind is Expr:
        return change(x)
    if kind is tuple:
        parts = [with_numbers(part, change) for part in x]
        return x if all(map(operator.is_, parts, x)) else tuple(parts)
    changed = {}
    for name in _SYMBOLIC.get(kind, ()):
        old = getattr(x, name)
        new = with_numbers(old, change)
        if new is not old:
            changed[name] = new
    return replace(x, **changed) if changed else x
