"""How many operands a primitive takes and gives by position, and the numbers inside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace

from rlx.ir.bodies import BODIES
from rlx.ir.expr import Expr, Number
from rlx.ir.prims import (
    Attention, Conv, Cumulate, Fft, Gather, Map, MatMul, Move, NonMaxSuppression, Norm, Pool,
    Random, Recurrent, Reduce, Region, Resize, Scatter, Softmax, Sort, regions_of,
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
    Cumulate: Slots(1, 1, 1), MatMul: Slots(2, 4, 1), Conv: Slots(2, 4, 1), Pool: Slots(1, 1, 2),
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


_PLAIN = frozenset((int, float, bool, str, type(None)))


def numbers_of(prim) -> Iterator[Expr]:
    """Every symbolic number in a primitive's fields, however deep; stage nodes have none."""
    stack = [prim]
    while stack:
        x = stack.pop()
        kind = type(x)
        if kind in _PLAIN:  # by far the most: looked at first, since every pass comes through here
            continue
        if kind is tuple:
            stack.extend(x)
        elif isinstance(x, Expr):
            yield x
        elif kind.__module__ == Region.__module__:
            stack.extend([getattr(x, name) for name in x.__dataclass_fields__])


def with_numbers(x, change: Callable[[Expr], Number]):
    """A primitive, or a part of one, with every symbolic number in it changed."""
    if isinstance(x, Expr):
        return change(x)
    if isinstance(x, tuple):
        return tuple(with_numbers(part, change) for part in x)
    if type(x).__module__ == Region.__module__ and any(True for _ in numbers_of(x)):
        return replace(x, **{name: with_numbers(getattr(x, name), change)
                             for name in (f.name for f in fields(x))})
    return x
