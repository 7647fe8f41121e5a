"""Movement builder methods: reshape as alias, transpose, slice, concat, pad."""

from __future__ import annotations

from rlx.errors import ModelError
from rlx.ir.builders.core import CoreBuilder
from rlx.ir.expr import Number, apply, as_int, product
from rlx.ir.graph import Alias, Node, Value
from rlx.ir.prims import Move, MovePart
from rlx.ir.types import TensorType


class MovementBuilder(CoreBuilder):
    """Strided moves and aliases."""

    def reshape(self, x: Value, shape) -> Value:
        """The same elements under another shape; the counts must agree (guarded)."""
        shape = tuple(shape)
        if shape == tuple(x.shape):
            return x
        self.guard(apply("eq", product(x.shape), product(shape)),
                   f"cannot reshape {list(x.shape)} to {list(shape)}: the element counts differ")
        if x.is_const:
            static = tuple(as_int(d) for d in shape)
            if None not in static:
                y = Value(TensorType(x.dtype, static), const=x.const.reshape(static))
                y.weight = x.weight
                return y
        y = Value(TensorType(x.dtype, shape), exprs=x.exprs)
        if x.exprs is not None and x.producer is None and x not in self.graph.inputs:
            return y  # tracked only: materialised under its own shape if a kernel reads it
        return self._alias(x, y)

    def identity(self, x: Value) -> Value:
        """Another name for x."""
        return x

    def _alias(self, x: Value, y: Value) -> Value:
        self.graph.nodes.append(Node(Alias(), [x], [y], self.origin))
        return y

    def flatten2d(self, x: Value, axis: int) -> Value:
        """x as a matrix: axes before `axis` by the rest."""
        return self.reshape(x, (product(x.shape[:axis]), product(x.shape[axis:])))

    def unsqueeze(self, x: Value, axes) -> Value:
        """x with dims of 1 inserted at `axes` of the result."""
        rank = x.rank + len(axes)
        axes = self.axes(axes, rank)
        rest = iter(x.shape)
        return self.reshape(x, tuple(1 if k in axes else next(rest) for k in range(rank)))

    def squeeze(self, x: Value, axes) -> Value:
        """x without the dims of 1 at `axes`."""
        axes = self.axes(axes, x.rank)
        for a in axes:
            self.guard(apply("eq", x.shape[a], 1), f"axis {a} of {list(x.shape)} is not 1")
        return self.reshape(x, tuple(d for k, d in enumerate(x.shape) if k not in axes))

    def transpose(self, x: Value, perm) -> Value:
        """y[i] = x[i permuted]: axis k of y is axis perm[k] of x."""
        perm = tuple(perm)
        if perm == tuple(range(x.rank)):
            return x
        shape = tuple(x.shape[p] for p in perm)
        moved = [p for p in perm if as_int(x.shape[p]) != 1]
        if moved == sorted(moved):
            return self.reshape(x, shape)  # only dims of 1 change places
        zeros, ones = (0,) * x.rank, (1,) * x.rank
        part = MovePart(0, perm, zeros, ones, shape, zeros)
        return self.node(Move((part,)), [x], [TensorType(x.dtype, shape)])[0]

    def slice(self, x: Value, starts, steps, extents) -> Value:
        """y[i] = x[starts + steps * i] for i < extents, all of x's rank, already clamped."""
        starts, steps, extents = tuple(starts), tuple(steps), tuple(extents)
        whole = all(as_int(s) == 0 for s in starts) and all(as_int(s) == 1 for s in steps)
        if whole and extents == tuple(x.shape):
            return x
        numbers = self.numbers_or_none(x) if x.rank == 1 else None
        if numbers is not None:
            s, t, n = as_int(starts[0]), as_int(steps[0]), as_int(extents[0])
            if None not in (s, t, n):
                return self.tracked([numbers[s + t * i] for i in range(n)], x.dtype, (n,),
                                    lambda: self._slice(x, starts, steps, extents))
        return self._slice(x, starts, steps, extents)

    def _slice(self, x: Value, starts: tuple, steps: tuple, extents: tuple) -> Value:
        identity = tuple(range(x.rank))
        part = MovePart(0, identity, starts, steps, extents, (0,) * x.rank)
        return self.node(Move((part,)), [x], [TensorType(x.dtype, extents)])[0]

    def narrow(self, x: Value, axis: int, start: Number, extent: Number) -> Value:
        """A contiguous range along one axis."""
        starts = tuple(start if k == axis else 0 for k in range(x.rank))
        extents = tuple(extent if k == axis else d for k, d in enumerate(x.shape))
        return self.slice(x, starts, (1,) * x.rank, extents)

    def concat(self, xs: list[Value], axis: int) -> Value:
        """xs joined along axis; their other dims must agree (guarded)."""
        if len(xs) == 1:
            return xs[0]
        rank = xs[0].rank
        axis = self.axis(axis, rank)
        for x in xs[1:]:
            self.has_rank(x, rank, "an input of Concat")
            if x.dtype is not xs[0].dtype:
                raise ModelError("the inputs of Concat differ in element type",
                                 expected=str(xs[0].type), got=str(x.type))
        found = [self.numbers_or_none(x) for x in xs] if rank == 1 else [None]
        if all(f is not None for f in found) and not all(x.is_const for x in xs):
            numbers = sum((tuple(f) for f in found), ())
            return self.tracked(numbers, xs[0].dtype, (len(numbers),),
                                lambda: self._concat(xs, axis))
        return self._concat(xs, axis)

    def _concat(self, xs: list[Value], axis: int) -> Value:
        rank, shape = xs[0].rank, list(xs[0].shape)
        for x in xs[1:]:
            for k in range(rank):
                if k != axis:
                    shape[k] = self.same_dim(shape[k], x.shape[k], f"Concat, axis {k}")
        parts, offset = [], 0
        for i, x in enumerate(xs):
            offsets = tuple(offset if k == axis else 0 for k in range(rank))
            zeros, ones = (0,) * rank, (1,) * rank
            parts.append(MovePart(i, tuple(range(rank)), zeros, ones, tuple(x.shape), offsets))
            offset = apply("add", offset, x.shape[axis])
        shape[axis] = offset
        return self.node(Move(tuple(parts)), xs, [TensorType(xs[0].dtype, tuple(shape))])[0]

    def pad(self, x: Value, begins, ends, mode: str = "constant",
            fill: Value | None = None) -> Value:
        """x with begins/ends places added (negative: removed) around each axis."""
        begins, ends = tuple(begins), tuple(ends)
        if all(as_int(p) == 0 for p in begins + ends):
            return x
        shape = tuple(apply("add", apply("add", d, b), e) for d, b, e in zip(x.shape, begins, ends))
        for k, d in enumerate(shape):
            self.guard(apply("le", 0, d), f"pads leave axis {k} of {list(x.shape)} negative")
        crop = [apply("max", 0, apply("sub", 0, b)) for b in begins]
        cut = [apply("max", 0, apply("sub", 0, e)) for e in ends]
        extents = tuple(apply("max", 0, apply("sub", apply("sub", d, c), e))
                        for d, c, e in zip(x.shape, crop, cut))
        offsets = tuple(apply("max", 0, b) for b in begins)
        part = MovePart(0, tuple(range(x.rank)), tuple(crop), (1,) * x.rank, extents, offsets)
        inputs, at = ([x], -1) if fill is None else ([x, fill], 1)
        return self.node(Move((part,), mode, at), inputs, [TensorType(x.dtype, shape)])[0]

    def split(self, x: Value, axis: int, lengths) -> list[Value]:
        """x cut along axis into parts of the given lengths, which must add up (guarded)."""
        axis, start, parts = self.axis(axis, x.rank), 0, []
        total: Number = 0
        for n in lengths:
            total = apply("add", total, n)
        self.guard(apply("eq", total, x.shape[axis]),
                   f"split lengths {list(lengths)} do not add up to {x.shape[axis]}")
        for n in lengths:
            parts.append(self.narrow(x, axis, start, n))
            start = apply("add", start, n)
        return parts
