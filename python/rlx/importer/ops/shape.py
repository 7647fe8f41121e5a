"""Shapes and their bookkeeping: Shape, Size, Constant, Reshape, Squeeze, Range, fills."""

from __future__ import annotations

import numpy as np

from rlx.errors import ModelError
from rlx.importer.ops.checks import rank_at_least
from rlx.importer.registry import Floats, Ints, Texts, op
from rlx.ir.build import AxisMap, DType, Expr, Value, apply, product, symbols_of


@op("Constant", since=1)
def constant(
    b, *, value: Value = None, sparse_value: Value = None, value_float: float = None,
    value_floats: Floats = None, value_int: int = None, value_ints: Ints = None,
    value_string: str = None, value_strings: Texts = None,
):
    if value is not None or sparse_value is not None:
        return value if value is not None else sparse_value
    for given, dtype in (
        (value_float, DType.FLOAT32), (value_floats, DType.FLOAT32), (value_int, DType.INT64),
        (value_ints, DType.INT64), (value_string, DType.STRING), (value_strings, DType.STRING),
    ):
        if given is not None:
            return b.const(np.array(given, dtype.numpy), dtype)
    raise ModelError("Constant has no value")


@op("ConstantOfShape", since=9)
def constant_of_shape(b, shape, *, value: Value = None):
    value = value if value is not None else b.const(0.0, DType.FLOAT32)
    return b.fill(b.numbers(shape), value.const.reshape(-1)[0].item(), value.dtype)


@op("Shape", since=1)
def shape(b, x, *, start: int = 0, end: int | None = None):
    return b.from_numbers(x.shape[slice(start, end)], DType.INT64)


@op("Size", since=1)
def size(b, x):
    return b.from_numbers([product(x.shape)], DType.INT64, ())


@op("Reshape", since=5)
def reshape(b, x, shape, *, allowzero: int = 0):
    return b.reshape(x, _target(b, x, b.numbers(shape), bool(allowzero)))


@op("Reshape", since=1)
def reshape_1(b, x, *, shape: Ints, consumed_inputs: Ints = None):
    return b.reshape(x, _target(b, x, shape, False))


def _target(b, x, wanted, allow_zero: bool) -> tuple:
    """The dims that Reshape means: 0 copies, -1 takes the rest; symbolic entries are guarded."""
    dims, rest = [], None
    for k, d in enumerate(wanted):
        if isinstance(d, Expr):
            d = _symbolic_entry(b, x, k, d, allow_zero)
        if not isinstance(d, Expr) and d == 0 and not allow_zero:
            if k >= x.rank:
                raise ModelError(f"entry {k} of shape copies a dim that the input does not have")
            d = x.shape[k]
        if not isinstance(d, Expr) and d == -1:
            if rest is not None:
                raise ModelError("shape has more than one -1", got=list(wanted))
            rest = k
        if not isinstance(d, Expr) and d < -1:
            raise ModelError(f"entry {k} of shape is negative", expected="-1 or more", got=d)
        dims.append(d)
    if rest is not None:
        known = product(dims[:rest] + dims[rest + 1:])
        if allow_zero:
            b.guard(apply("ne", known, 0), "with allowzero, shape cannot have both 0 and -1")
        dims[rest] = apply("floordiv", product(x.shape), known)
    return tuple(dims)


def _symbolic_entry(b, x, k: int, d: Expr, allow_zero: bool):
    """An entry known at run time: mostly a plain extent, which is assumed and guarded."""
    if d in x.shape or all(s.kind == "dim" for s in symbols_of(d)):
        return d
    if b.assume(apply("lt", 0, d), f"reshape:{b.origin.name}:{k}", f"entry {k} of shape"):
        return d
    zero = 0 if allow_zero or k >= x.rank else x.shape[k]
    others = f"reshape-rest:{b.origin.name}:{k}"
    if not b.assume(apply("le", 0, d), others, f"entry {k} of shape is -1"):
        b.guard(apply("eq", d, -1), f"entry {k} of shape is negative and not -1")
        return -1
    return apply("select", apply("eq", d, 0), zero, d)


@op("Flatten", since=1)
def flatten(b, x, *, axis: int = 1):
    return b.flatten2d(x, x.rank if axis == x.rank else b.axis(axis, x.rank) if x.rank else 0)


@op("Squeeze", since=13)
def squeeze(b, x, axes=None):
    if axes is None:
        return squeeze_1(b, x)
    return b.squeeze(x, b.structural(axes, "axes decide the rank"))


@op("Squeeze", since=1)
def squeeze_1(b, x, *, axes: Ints = None):
    if axes is not None:
        return b.squeeze(x, axes)
    ones = []
    for k, d in enumerate(x.shape):
        if isinstance(d, Expr):
            # Without axes the rank depends on which dims are 1; a symbolic one is taken not to be.
            name = f"squeeze:{b.origin.name}:{k}"
            if b.assume(apply("ne", d, 1), name, f"dim {k} is not 1"):
                continue
        elif d != 1:
            continue
        ones.append(k)
    return b.squeeze(x, ones)


@op("Unsqueeze", since=13)
def unsqueeze(b, x, axes):
    return b.unsqueeze(x, b.structural(axes, "axes decide the rank"))


@op("Unsqueeze", since=1)
def unsqueeze_1(b, x, *, axes: Ints):
    return b.unsqueeze(x, axes)


@op("Range", since=11)
def range_(b, start, limit, delta, *, stash_type: int = 1):
    (s,), (e,), (d,) = (b.numbers(v) for v in (start, limit, delta))
    b.guard(apply("ne", d, 0), "delta of Range is 0")
    if start.dtype.is_float:
        steps = apply("div", apply("sub", e, s), d)
        b.guard(apply("lt", steps, float(1 << 62)), "the length of Range is not finite")
        count = apply("to_int", apply("ceil", steps))
    else:  # ceil((limit - start) / delta) in integers
        count = apply("sub", 0, apply("floordiv", apply("sub", s, e), d))
    count = apply("max", 0, count)
    i = b.iota((count,), 0)
    if start.dtype.is_float:
        i = b.cast(i, start.dtype)
        return b.scalar("add", b.scalar("mul", i, delta), start)
    y = b.scalar("add", b.scalar("mul", i, b.cast(delta, DType.INT64)), b.cast(start, DType.INT64))
    return b.cast(y, start.dtype)


@op("EyeLike", since=9)
def eye_like(b, x, *, dtype: int | None = None, k: int = 0):
    if x.rank != 2:
        raise ModelError("EyeLike takes a matrix", got=str(x.type))
    target = x.dtype if dtype is None else DType(dtype)
    row, column = b.iota(x.shape, 0), b.iota(x.shape, 1)
    return b.cast(b.scalar("eq", column, b.scalar("add", row, b.like(k, row))), target)


@op("Trilu", since=14)
def trilu(b, x, k=None, *, upper: int = 1):
    rank_at_least(x, 2)
    row, column = b.iota(x.shape, x.rank - 2), b.iota(x.shape, x.rank - 1)
    k = b.const(0, DType.INT64) if k is None else b.reshape(k, ())
    # k is not added to row: it may be as large as int64 goes.
    keep = b.scalar("ge" if upper else "le", b.scalar("sub", column, row), k)
    zero = b.const(False if x.dtype is DType.BOOL else 0, x.dtype)
    return b.select(keep, x, zero)


@op("Expand", since=8)
def expand(b, x, shape):
    return b.expand(x, b.broadcast(x.shape, b.numbers(shape)))


@op("Tile", since=6)
def tile(b, x, repeats):
    times = b.numbers(repeats)
    if len(times) != x.rank:
        raise ModelError("repeats has one entry for each axis", expected=x.rank, got=len(times))
    for n in times:
        b.guard(apply("le", 0, n), f"an entry of repeats is negative: {n}")
    shape = tuple(apply("mul", d, n) for d, n in zip(x.shape, times))
    access = tuple(AxisMap(k, 1, 0 if n == 1 else d)
                   for k, (d, n) in enumerate(zip(x.shape, times)))
    return b.read(x, shape, access)


@op("Tile", since=1)
def tile_1(b, x, tiles, axis):
    """tiles and axis have the type of x."""
    at = b.structural_one(axis, "the axis that Tile repeats")
    times = [1] * x.rank
    times[b.axis(at, x.rank)] = b.number(b.cast(tiles, DType.INT64))
    return tile(b, x, b.from_numbers(times, DType.INT64))


@op("OneHot", since=9)
def one_hot(b, indices, depth, values, *, axis: int = -1):
    n = b.number(depth)
    n = apply("to_int", n)
    b.guard(apply("le", 0, n), f"depth is negative: {n}")
    if values.rank != 1:
        raise ModelError("values holds the off- and the on-value", got=str(values.type))
    b.same_dim(values.shape[0], 2, "the values of OneHot")
    axis = b.axis(axis, indices.rank + 1)
    shape = (*indices.shape[:axis], n, *indices.shape[axis:])
    place = b.iota(shape, axis)
    i = b.unsqueeze(b.cast(indices, DType.INT64), (axis,))
    depth64 = b.from_numbers([n], DType.INT64, ())
    # Negative indices count from the end; others out of range give a row of off-values.
    i = b.select(b.scalar("lt", i, b.like(0, i)), b.scalar("add", i, depth64), i)
    off, on = b.narrow(values, 0, 0, 1), b.narrow(values, 0, 1, 1)
    return b.select(b.scalar("eq", i, place), b.reshape(on, ()), b.reshape(off, ()))
