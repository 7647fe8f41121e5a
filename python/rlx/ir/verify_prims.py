"""What a single primitive must satisfy: operands, ranks, types, fields, Regions."""

from __future__ import annotations

from collections.abc import Callable

from rlx.ir.bodies import BODIES, MAX_RANK
from rlx.ir.expr import Expr
from rlx.ir.graph import Value
from rlx.ir.prims import (
    Attention, Conv, Cumulate, Fft, Gather, Map, MatMul, Move, MovePart, NonMaxSuppression, Norm,
    Pool, Random, Recurrent, Reduce, Region, Resize, Scatter, Softmax, Sort,
)
from rlx.ir.slots import Slots, slots
from rlx.ir.types import DType, TensorType
from rlx.ir.verify_product import check_matmul
from rlx.ir.verify_region import (
    may_equal, of_rank, require, same_shape, verify_fused, verify_region,
)

# The strings of closed sets; C++ twin: program/names.h.
KINDS: dict[type, dict[str, tuple[str, ...]]] = {
    Reduce: {"kind": ("sum", "mean", "max", "min", "prod", "l1", "l2", "sum_square", "log_sum",
                      "log_sum_exp", "argmax", "argmin")},
    Cumulate: {"kind": ("sum", "prod")},
    Pool: {"kind": ("max", "average", "lp")},
    Norm: {"kind": ("layer", "rms", "group")},
    Attention: {f"{x}_layout": ("bhsd", "bshd") for x in "qkvy"},
    Gather: {"kind": ("axis", "elements", "nd")},
    Scatter: {"kind": ("elements", "nd"), "reduction": ("none", "add", "mul", "max", "min")},
    Move: {"mode": ("none", "constant", "edge", "reflect", "wrap")},
    Sort: {"kind": ("topk", "nonzero", "compress", "unique")},
    Random: {"kind": ("uniform", "normal", "bernoulli", "multinomial")},
    Recurrent: {"kind": ("lstm", "gru", "rnn"),
                "direction": ("forward", "reverse", "bidirectional")},
}


def verify_prim(prim, inputs: list[Value | None], outputs: list[Value | None]) -> None:
    """Raises InternalError where a primitive does not fit its operands."""
    for field, kinds in KINDS.get(type(prim), {}).items():
        require(getattr(prim, field) in kinds, f"{field} is {getattr(prim, field)!r}")
    for v in (*inputs, *outputs):
        require(v is None or isinstance(v.type, TensorType), f"{v!r} is no tensor")
    require(not isinstance(prim, Map) or prim.body in BODIES, f"there is no body {prim!r}")
    places = slots(prim)
    inputs = _placed(inputs, places, places.inputs, "inputs")
    outputs = _placed(outputs, places, places.outputs, "outputs")
    for k, v in enumerate(inputs):
        require(v is not None or places.required <= k < places.fixed, f"input {k} is absent")
    require(not outputs or outputs[0] is not None, "output 0 is absent")
    _CHECKS[type(prim)](prim, inputs, outputs)


def _placed(values: list, places: Slots, count: int, what: str) -> list:
    require(len(values) <= count, f"expected at most {count} {what}, got {len(values)}")
    return [*values, *[None] * (count - len(values))]


def _axis(axis: int, rank: int) -> None:
    require(0 <= axis < rank, f"axis {axis} is not in a rank of {rank}")


# -- fused regions ---------------------------------------------------------------------------

def _prologue_shape(prim, inputs: list[Value]):
    if prim.prologue is None:
        return inputs[0].shape
    verify_fused(prim.prologue, inputs[0], inputs[1:])
    return prim.prologue.shape


# -- one check for each primitive --------------------------------------------------------------

def _check_region(p: Region, x, y) -> None:
    verify_region(p, x)
    for v, r in zip(y, p.results):
        if v is not None:
            same_shape(v, p.shape)
            require(v.dtype is p.ops[r].dtype, f"{v!r} is not of its result's type")


def _check_reduce(p: Reduce, x, y) -> None:
    shape = _prologue_shape(p, x)
    for axis in p.axes:
        _axis(axis, len(shape))
    require(list(p.axes) == sorted(set(p.axes)), "the axes are not sorted and distinct")
    kept = [1 if k in p.axes else d for k, d in enumerate(shape) if p.keepdims or k not in p.axes]
    same_shape(y[0], kept)
    if p.kind in ("argmax", "argmin"):
        require(len(p.axes) == 1 and y[0].dtype is DType.INT64, "argmax takes one axis to int64")


def _check_cumulate(p: Cumulate, x, y) -> None:
    _axis(p.axis, x[0].rank)
    same_shape(y[0], x[0].shape)


def _check_windows(p: Conv | Pool, x, y) -> None:
    spatial = x[0].rank - 2
    require(1 <= spatial <= 3, "windows have 1 to 3 spatial dims")
    for name in ("strides", "dilations", "pads_begin", "pads_end"):
        require(len(getattr(p, name)) == spatial, f"expected {spatial} {name}")
    require(all(n > 0 for n in (*p.strides, *p.dilations)), "strides or dilations not positive")
    of_rank(y[0], x[0].rank)


def _check_conv(p: Conv, x, y) -> None:
    _check_windows(p, x, y)
    of_rank(x[1], x[0].rank)
    require(p.groups > 0, "groups must be positive")
    channels = x[0].shape[-1 if p.channels_last else 1]
    wanted, groups = (x[1].shape[0], 1) if p.transposed else (x[1].shape[1], p.groups)
    if not isinstance(wanted, Expr):
        require(may_equal(channels, wanted * groups), f"{x[1]!r} does not fit {x[0]!r}")
    verify_fused(p.epilogue, None, x[4:])


def _check_pool(p: Pool, x, y) -> None:
    _check_windows(p, x, y)
    require(len(p.kernel) == len(p.strides), "expected a kernel size for each spatial dim")
    require(y[1] is None or y[1].dtype is DType.INT64, "the indices must be int64")


def _check_softmax(p: Softmax, x, y) -> None:
    shape = _prologue_shape(p, x)
    _axis(p.axis, len(shape))
    same_shape(y[0], shape)


def _check_norm(p: Norm, x, y) -> None:
    _axis(p.axis, x[0].rank)
    require(p.groups > 0, "groups must be positive")
    rest = verify_fused(p.prologue, x[0], x[3:])
    verify_fused(p.epilogue, None, rest)
    of_rank(y[0], x[0].rank)


def _check_attention(p: Attention, x, y) -> None:
    for v in (*x[:3], y[0]):
        of_rank(v, 4)
        require(v.dtype is x[0].dtype, f"{v!r} has another element type than the queries")
    verify_fused(p.score, None, x[3:])


def _check_gather(p: Gather, x, y) -> None:
    data, indices = x
    require(indices.dtype.is_integer, f"{indices!r} must be integers")
    require(y[0].dtype is data.dtype, f"{y[0]!r} must be of the data's type")
    if p.kind == "nd":
        require(0 <= p.batch_dims < min(data.rank, indices.rank), "batch_dims is out of range")
        return
    _axis(p.axis, data.rank)
    if p.kind == "elements":
        of_rank(indices, data.rank)
        same_shape(y[0], indices.shape)
    else:
        same_shape(y[0], (*data.shape[:p.axis], *indices.shape, *data.shape[p.axis + 1:]))


def _check_scatter(p: Scatter, x, y) -> None:
    data, indices, updates = x
    require(indices.dtype.is_integer, f"{indices!r} must be integers")
    require(updates.dtype is data.dtype is y[0].dtype, "updates and data differ in type")
    same_shape(y[0], data.shape)
    if p.kind == "elements":
        _axis(p.axis, data.rank)
        of_rank(indices, data.rank)
        same_shape(updates, indices.shape)


def _check_move(p: Move, x, y) -> None:
    rank = y[0].rank
    for part in p.parts:
        _check_part(part, x, rank)
    require(p.mode in ("none", "constant") or len(p.parts) == 1, f"{p.mode} takes one part")
    require(p.fill < 0 or p.mode == "constant", "only the constant mode has a fill")
    require(all(v.dtype is y[0].dtype for v in x), "an input has another element type")


def _check_part(part: MovePart, x, rank: int) -> None:
    require(part.input >= 0, "a part has no input")
    of_rank(x[part.input], rank)
    require(sorted(part.perm) == list(range(rank)), f"{part.perm} is no permutation")
    for name in ("starts", "steps", "extents", "offsets"):
        require(len(getattr(part, name)) == rank, f"expected {rank} {name}")


def _check_resize(p: Resize, x, y) -> None:
    for axis in p.axes:
        _axis(axis, x[0].rank)
    require(len(p.scales) == len(p.axes), "expected one scale for each axis")
    require(len(p.roi) in (0, 2 * len(p.axes)), "roi has the wrong length")
    of_rank(y[0], x[0].rank)


def _check_sort(p: Sort, x, y) -> None:
    flat = p.kind == "nonzero" or (p.kind != "topk" and p.axis == -1)
    if not flat:
        _axis(p.axis, x[0].rank)
    require(y[-1] is not None and y[-1].dtype is DType.INT64, "indices and count must be int64")
    if p.kind == "compress":
        require(x[1].dtype is DType.BOOL, f"{x[1]!r} must be bool")


def _check_nms(p: NonMaxSuppression, x, y) -> None:
    of_rank(x[0], 3)
    of_rank(x[1], 3)
    of_rank(y[0], 2)


def _check_random(p: Random, x, y) -> None:
    reads = p.kind in ("bernoulli", "multinomial")
    require(reads == (x[0] is not None), f"{p.kind} takes another input")


def _check_recurrent(p: Recurrent, x, y) -> None:
    for v in x[:3]:
        of_rank(v, 3)
    scales = x[8:]
    require(any(v is not None for v in scales) == (not x[1].dtype.is_float),
            "integer weights, and no others, have scales")
    require(p.hidden_size > 0, "hidden_size must be positive")


def _check_fft(p: Fft, x, y) -> None:
    of_rank(y[0], x[0].rank)
    _axis(p.axis, x[0].rank - 1)
    require(may_equal(y[0].shape[-1], 1 if p.inverse and p.onesided else 2), "wrong parts of y")


def _check_map(p: Map, x, y) -> None:
    for v in (*x, *y):
        require(v is None or v.rank <= MAX_RANK, f"{v!r} has too many axes for a Map")
    require(all(v is not None for v in y), "an output of a Map is absent")


_CHECKS: dict[type, Callable] = {
    Region: _check_region, Reduce: _check_reduce, Cumulate: _check_cumulate,
    MatMul: check_matmul, Conv: _check_conv, Pool: _check_pool, Softmax: _check_softmax,
    Norm: _check_norm, Attention: _check_attention, Gather: _check_gather,
    Scatter: _check_scatter, Move: _check_move, Resize: _check_resize, Sort: _check_sort,
    NonMaxSuppression: _check_nms, Random: _check_random, Recurrent: _check_recurrent,
    Fft: _check_fft, Map: _check_map,
}
