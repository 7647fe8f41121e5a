"""Moving data: Transpose, Concat, Split, Slice, Pad, DepthToSpace, ReverseSequence."""

from __future__ import annotations

from typing import Literal

from rlx.errors import ModelError
from rlx.importer.ops.checks import in_range, rank_at_least
from rlx.importer.registry import Ints, op
from rlx.ir.build import DType, Expr, apply

PadMode = Literal["constant", "reflect", "edge", "wrap"]
_TO_THE_END = 2**31 - 1  # an end this large is the dim's own, as the operator's text suggests
_LONGEST_STEP = 1 << 40  # longer than any axis; index arithmetic with it does not overflow


@op("Transpose", since=1)
def transpose(b, x, *, perm: Ints = None):
    perm = tuple(reversed(range(x.rank))) if perm is None else perm
    if sorted(perm) != list(range(x.rank)):
        raise ModelError("perm is no permutation of the axes", expected=f"of {x.rank} axes",
                         got=list(perm))
    return b.transpose(x, perm)


@op("Concat", since=4)
def concat(b, *xs, axis: int):
    if not xs:
        raise ModelError("Concat has no inputs")
    return b.concat(list(xs), axis)


@op("Concat", since=1)
def concat_1(b, *xs, axis: int = 1):
    return b.concat(list(xs), axis)


@op("Split", since=13)
def split(b, x, lengths=None, *, axis: int = 0, num_outputs: int | None = None):
    if lengths is not None:
        return _split(b, x, axis, b.numbers(lengths))
    if num_outputs is not None and num_outputs != len(b.wanted):
        raise ModelError("num_outputs is not the number of the node's outputs",
                         expected=len(b.wanted), got=num_outputs)
    return _even_split(b, x, axis, len(b.wanted))


@op("Split", since=2)
def split_2(b, x, *, axis: int = 0, split: Ints = None):
    return _split(b, x, axis, split) if split else _even_split(b, x, axis, len(b.wanted))


@op("Split", since=1)
def split_1(b, x, lengths=None, *, axis: int = 0, split: Ints = None):
    if lengths is not None:
        return _split(b, x, axis, b.numbers(b.cast(lengths, DType.INT64)))
    return split_2(b, x, axis=axis, split=split)


def _split(b, x, axis: int, lengths):
    if len(lengths) != len(b.wanted):
        raise ModelError("split has one length for each output", expected=len(b.wanted),
                         got=len(lengths))
    for n in lengths:
        b.guard(apply("le", 0, n), f"a length of split is negative: {n}")
    return b.split(x, axis, lengths)


def _even_split(b, x, axis: int, count: int):
    """Equal parts, the last one smaller when the dim does not divide (opset 18)."""
    dim = x.shape[b.axis(axis, x.rank)]
    part = apply("floordiv", apply("add", dim, count - 1), count)
    last = apply("sub", dim, apply("mul", part, count - 1))
    b.guard(apply("le", 0, last), f"cannot split a dim of {dim} into {count} parts")
    return b.split(x, axis, [part] * (count - 1) + [last])


@op("Slice", since=10)
def slice_(b, x, starts, ends, axes=None, steps=None):
    at = None if axes is None else b.structural(axes, "axes decide which dims are cut")
    return _slice(b, x, b.numbers(starts), b.numbers(ends), at,
                  None if steps is None else b.numbers(steps))


@op("Slice", since=1)
def slice_1(b, x, *, starts: Ints, ends: Ints, axes: Ints = None):
    return _slice(b, x, starts, ends, axes, None)


def _slice(b, x, starts, ends, axes, steps):
    axes = tuple(range(len(starts))) if axes is None else axes
    steps = (1,) * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise ModelError("starts, ends, axes and steps differ in length",
                         got=[len(starts), len(ends), len(axes), len(steps)])
    if len({b.axis(a, x.rank) for a in axes}) != len(axes):
        raise ModelError("axes repeat", got=list(axes))
    begin, stride, extent = [0] * x.rank, [1] * x.rank, list(x.shape)
    for start, end, axis, step in zip(starts, ends, axes, steps):
        k = b.axis(axis, x.rank)
        b.guard(apply("ne", step, 0), f"step {step} of axis {k} is 0")
        step = _clamp_step(step)
        begin[k], extent[k] = _range(x.shape[k], start, end, step)
        stride[k] = step
    return b.slice(x, begin, stride, extent)


def _range(dim, start, end, step):
    """First index and count of a Python-like slice of a dim (ONNX Slice)."""
    if not isinstance(step, Expr):
        return _directed(dim, start, end, step, step > 0)
    forward, backward = (_directed(dim, start, end, step, up) for up in (True, False))
    up = apply("lt", 0, step)
    return tuple(apply("select", up, f, r) for f, r in zip(forward, backward))


def _directed(dim, start, end, step, forward: bool):
    low, high = (0, dim) if forward else (-1, apply("sub", dim, 1))
    first = _clamp(_from_end(start, dim), 0 if forward else low, high)
    last = _clamp(_from_end(end, dim), low, high)
    span = apply("sub", last, first) if forward else apply("sub", first, last)
    size = step if forward else apply("sub", 0, step)
    count = apply("floordiv", apply("add", span, apply("sub", size, 1)), size)
    return first, apply("max", 0, count)


def _from_end(index, dim):
    if isinstance(index, Expr):
        return apply("select", apply("lt", index, 0), apply("add", index, dim), index)
    return apply("add", index, dim) if index < 0 else index


def _clamp(index, low, high):
    if not isinstance(index, Expr) and index >= _TO_THE_END:
        return high
    if index is high:
        return high
    return apply("min", apply("max", index, low), high)


def _clamp_step(step):
    return apply("min", apply("max", step, -_LONGEST_STEP), _LONGEST_STEP)


@op("Pad", since=11)
def pad(b, x, pads, value=None, axes=None, *, mode: PadMode = "constant"):
    rank = x.rank
    at = range(rank) if axes is None else b.structural(axes, "axes decide which dims are padded")
    at = [b.axis(a, rank) for a in at]
    if len(set(at)) != len(at):
        raise ModelError("axes repeat", got=at)
    numbers = b.numbers(pads)
    if len(numbers) != 2 * len(at):
        raise ModelError("pads has two entries for each axis", expected=2 * len(at),
                         got=len(numbers))
    begins, ends = [0] * rank, [0] * rank
    for i, k in enumerate(at):
        begins[k], ends[k] = numbers[i], numbers[len(at) + i]
    fill = None if value is None or mode != "constant" else b.reshape(value, ())
    return b.pad(x, begins, ends, mode, fill)


@op("Pad", since=2)
def pad_2(b, x, *, pads: Ints, mode: PadMode = "constant", value: float = 0.0):
    n = x.rank
    if len(pads) != 2 * n:
        raise ModelError("pads has two entries for each axis", expected=2 * n, got=len(pads))
    return b.pad(x, pads[:n], pads[n:], mode, b.like(value, x) if value else None)


@op("Pad", since=1)
def pad_1(b, x, *, paddings: Ints, mode: PadMode = "constant", value: float = 0.0):
    return pad_2(b, x, pads=paddings, mode=mode, value=value)


@op("DepthToSpace", since=1)
def depth_to_space(b, x, *, blocksize: int, mode: Literal["DCR", "CRD"] = "DCR"):
    n, c, spatial, k, s = _blocks(x, blocksize)
    b.guard(apply("eq", apply("mod", c, s**k), 0), f"{c} channels are no multiple of {s**k}")
    depth = apply("floordiv", c, s**k)
    blocks = (s,) * k
    if mode == "DCR":  # depth is the innermost of the split channels
        y = b.reshape(x, (n, *blocks, depth, *spatial))
        perm = [0, k + 1]
        for i in range(k):
            perm += [k + 2 + i, 1 + i]
    else:
        y = b.reshape(x, (n, depth, *blocks, *spatial))
        perm = [0, 1]
        for i in range(k):
            perm += [k + 2 + i, 2 + i]
    y = b.transpose(y, perm)
    return b.reshape(y, (n, depth, *(apply("mul", d, s) for d in spatial)))


def _blocks(x, size: int):
    """(batch, channels, spatial dims, their number, block size), checked."""
    rank_at_least(x, 3)
    n, c, *spatial = x.shape
    in_range("blocksize", size, 1)
    in_range("blocksize to the number of spatial axes", size ** len(spatial), 1)
    return n, c, spatial, len(spatial), size


@op("SpaceToDepth", since=1)
def space_to_depth(b, x, *, blocksize: int, mode: Literal["DCR", "CRD"] = "DCR"):
    n, c, spatial, k, s = _blocks(x, blocksize)
    parts = []
    for d in spatial:
        b.guard(apply("eq", apply("mod", d, s), 0), f"{d} is no multiple of blocksize {s}")
        parts += [apply("floordiv", d, s), s]
    y = b.reshape(x, (n, c, *parts))
    blocks, cells = [3 + 2 * i for i in range(k)], [2 + 2 * i for i in range(k)]
    order = [*blocks, 1] if mode == "DCR" else [1, *blocks]
    y = b.transpose(y, (0, *order, *cells))
    return b.reshape(y, (n, apply("mul", c, s**k), *parts[::2]))


@op("ReverseSequence", since=10)
def reverse_sequence(b, x, lengths, *, batch_axis: int = 1, time_axis: int = 0):
    """y takes x at length - 1 - t inside each batch row's length, at t behind it."""
    time_axis, batch_axis = b.axis(time_axis, x.rank), b.axis(batch_axis, x.rank)
    if time_axis == batch_axis:
        raise ModelError("time_axis and batch_axis are the same", got=time_axis)
    time = b.iota(x.shape, time_axis)
    wide = tuple(1 if k != batch_axis else d for k, d in enumerate(x.shape))
    n = b.reshape(b.cast(lengths, DType.INT64), wide)
    mirrored = b.scalar("sub", b.scalar("sub", n, b.like(1, n)), time)
    index = b.select(b.scalar("lt", time, n), mirrored, time)
    return b.gather_elements(x, index, time_axis)


@op("CenterCropPad", since=18)
def center_crop_pad(b, x, shape, *, axes: Ints = None):
    at = range(x.rank) if axes is None else [b.axis(a, x.rank) for a in axes]
    targets = b.numbers(shape)
    if len(targets) != len(at):
        raise ModelError("shape has one entry for each axis", expected=len(at), got=len(targets))
    for k, target in zip(at, targets):
        b.guard(apply("le", 0, target), f"an entry of shape is negative: {target}")
        dim = x.shape[k]
        excess = apply("max", 0, apply("sub", dim, target))
        x = b.narrow(x, k, apply("floordiv", excess, 2), apply("min", dim, target))
        lack = apply("max", 0, apply("sub", target, dim))
        before = apply("floordiv", lack, 2)
        begins = [before if i == k else 0 for i in range(x.rank)]
        ends = [apply("sub", lack, before) if i == k else 0 for i in range(x.rank)]
        x = b.pad(x, begins, ends)
    return x


