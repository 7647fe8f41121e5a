"""Elementwise builder methods: scalar ops with broadcasting, cast, select, index fills."""

from __future__ import annotations

from rlx.errors import MemoryLimitError, ModelError, UnsupportedError
from rlx.ir.builders.core import TRACKED_LIMIT, TRACKED_TYPES, CoreBuilder
from rlx.ir.expr import Number, apply, as_int, product
from rlx.ir.graph import Value
from rlx.ir.prims import Access, AxisMap, Region, RegionOp
from rlx.ir.scalars import SCALAR_OPS
from rlx.ir.types import DType, TensorType

# Scalar op -> its meaning on numbers; integer and float division differ.
_ON_NUMBERS = {
    **{op: op for op in ("add", "sub", "mul", "min", "max", "eq", "ne", "lt", "le", "and", "or",
                         "not", "select")},
    "floor": "floor", "ceil": "ceil", "round": "round", "sqrt": "sqrt", "mod": "mod",
}


_ON_STRINGS = frozenset({"eq", "select"})  # strings are ids: equal or not, in no order
ADDRESS_SPACE = 1 << 47  # bytes that a process can name
_ROUND_MODES = {"up": 0, "down": 2, "nearest": 4}  # bits of a cast's imm


class ElementwiseBuilder(CoreBuilder):
    """Regions of one op; the regions pass merges them."""

    def access(self, shape, rank: int, *, offset: int | None = None) -> Access:
        """The broadcast access of an input of `shape` in an iteration space of `rank` axes."""
        offset = rank - len(shape) if offset is None else offset
        return tuple(AxisMap(-1 if as_int(d) == 1 else offset + k) for k, d in enumerate(shape))

    def scalar(self, op: str, *xs: Value, dtype: DType | None = None) -> Value:
        """A scalar op (ir/scalars.py) over broadcast inputs; dtype defaults to the op's rule."""
        if dtype is None:
            dtype = SCALAR_OPS[op].result_dtype(xs[-1].dtype)
        self._same_dtype(op, xs[1:] if op == "select" else xs)
        if xs[-1].dtype is DType.STRING and op not in _ON_STRINGS:
            raise ModelError(f"{op} is not defined for strings")
        found = self._on_numbers(op, xs, dtype)
        if found is not None:
            return self.tracked(*found, lambda: self._region(op, xs, dtype))
        return self._region(op, xs, dtype)

    def _same_dtype(self, op: str, xs: tuple[Value, ...]) -> None:
        for x in xs[1:]:
            if x.dtype is not xs[0].dtype:
                raise ModelError(f"the operands of {op} differ in element type",
                                 expected=xs[0].dtype.name.lower(), got=x.dtype.name.lower())

    def _region(self, op: str, xs: tuple[Value, ...], dtype: DType) -> Value:
        shape = self.broadcast(*(x.shape for x in xs))
        loads = tuple(RegionOp("load", x.dtype, (i,)) for i, x in enumerate(xs))
        ops = (*loads, RegionOp(op, dtype, tuple(range(len(xs)))))
        accesses = tuple(self.access(x.shape, len(shape)) for x in xs)
        prim = Region(shape, accesses, ops, (len(ops) - 1,))
        return self.node(prim, xs, [TensorType(dtype, shape)])[0]

    def cast(self, x: Value, dtype: DType, *, saturate: bool = True,
             round_mode: str = "up") -> Value:
        """ONNX Cast to dtype; saturate matters to float8 only, round_mode to float8e8m0."""
        if x.dtype is dtype:
            return x
        if round_mode not in _ROUND_MODES:
            raise ModelError("unknown round_mode of Cast", expected=list(_ROUND_MODES),
                             got=round_mode)
        if DType.STRING in (x.dtype, dtype):
            raise UnsupportedError("Cast between strings and other types is not supported",
                                   got=f"{x.dtype.name} to {dtype.name}")
        numbers = self.numbers_or_none(x)
        if numbers is not None and dtype in TRACKED_TYPES:
            return self.tracked((_cast_number(n, x.dtype, dtype) for n in numbers), dtype,
                                x.type.static_shape(),
                                lambda: self._cast(x, dtype, saturate, round_mode))
        return self._cast(x, dtype, saturate, round_mode)

    def _cast(self, x: Value, dtype: DType, saturate: bool, round_mode: str) -> Value:
        mode = int(saturate) + _ROUND_MODES[round_mode]
        ops = (RegionOp("load", x.dtype, (0,)), RegionOp("cast", dtype, (0,), mode))
        prim = Region(x.shape, (self.access(x.shape, x.rank),), ops, (1,))
        return self.node(prim, [x], [TensorType(dtype, x.shape)])[0]

    def expand(self, x: Value, shape: tuple[Number, ...]) -> Value:
        """x broadcast to `shape` (already the broadcast result) as a tensor of its own."""
        if tuple(shape) == tuple(x.shape):
            return x
        return self.read(x, shape, self.access(x.shape, len(shape)))

    def read(self, x: Value, shape: tuple[Number, ...], access: Access) -> Value:
        """y[i] = x[access(i)]: expand, tile, repeat and blocked reads."""
        prim = Region(tuple(shape), (access,), (RegionOp("load", x.dtype, (0,)),), (0,))
        return self.node(prim, [x], [TensorType(x.dtype, tuple(shape))])[0]

    def fill(self, shape: tuple[Number, ...], value, dtype: DType) -> Value:
        """A tensor of `shape` full of one number."""
        for d in shape:
            self.guard(apply("le", 0, d), f"a dim of a constant tensor is negative: {d}")
        static = tuple(as_int(d) for d in shape)
        if None not in static and product(static) <= TRACKED_LIMIT and dtype in TRACKED_TYPES:
            return self.from_numbers([value] * product(static), dtype, static)
        if None not in static and product(static) * dtype.itemsize > ADDRESS_SPACE:
            raise MemoryLimitError("a tensor is larger than the address space", got=list(static),
                                   remedy="correct its shape")
        prim = Region(tuple(shape), (), (RegionOp("const", dtype, imm=value),), (0,))
        return self.node(prim, [], [TensorType(dtype, tuple(shape))])[0]

    def number_tensor(self, n: Number, dtype: DType, shape: tuple[int, ...] = ()) -> Value:
        """One number as a tensor of one element."""
        return self.from_numbers([n], dtype, shape)

    def iota(self, shape: tuple[Number, ...], axis: int) -> Value:
        """The int64 coordinate along `axis` at every place of `shape`."""
        prim = Region(tuple(shape), (), (RegionOp("index", DType.INT64, (axis,)),), (0,))
        return self.node(prim, [], [TensorType(DType.INT64, tuple(shape))])[0]

    def like(self, number, x: Value) -> Value:
        """A scalar constant of x's element type."""
        return self.const(number, x.dtype)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """a where condition else b."""
        return self.scalar("select", condition, a, b, dtype=a.dtype)

    def _on_numbers(self, op: str, xs: tuple[Value, ...],
                    dtype: DType) -> tuple[list[Number], DType, tuple[int, ...]] | None:
        if dtype not in TRACKED_TYPES or any(not isinstance(x.type, TensorType) for x in xs):
            return None
        found = [self.numbers_or_none(x) for x in xs]
        if any(f is None for f in found) or all(x.is_const for x in xs):
            return None
        shape = self.broadcast(*(x.type.static_shape() for x in xs))
        count = product(shape)
        if count > TRACKED_LIMIT or any(len(f) not in (1, count) for f in found):
            return None
        results = []
        for i in range(count):
            result = _number_op(op, [f[i if len(f) > 1 else 0] for f in found], xs[-1].dtype)
            if result is None:
                return None
            results.append(apply("to_f32", result) if dtype is DType.FLOAT32 else result)
        return results, dtype, shape


def _number_op(op: str, args: list[Number], dtype: DType) -> Number | None:
    """A scalar op on numbers of type dtype, or None when expressions do not have it."""
    if op in _ON_NUMBERS and (op != "mod" or not dtype.is_float):
        return apply(_ON_NUMBERS[op], *args)
    if op in ("gt", "ge"):
        return apply("lt" if op == "gt" else "le", args[1], args[0])
    if op == "div":
        return apply("div" if dtype.is_float else "truncdiv", *args)
    if op == "neg":
        return apply("sub", 0.0 if dtype.is_float else 0, args[0])
    if op == "abs":
        return apply("max", args[0], apply("sub", 0, args[0]))
    return None


def _cast_number(n: Number, source: DType, target: DType) -> Number:
    if target is DType.BOOL:
        return apply("ne", n, 0)
    if target.is_float:
        return apply("to_f32" if target is DType.FLOAT32 else "to_float", n)
    return apply("to_int", n) if source.is_float else n
