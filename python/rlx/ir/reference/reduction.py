"""References of Reduce and Cumulate."""

from __future__ import annotations

import numpy as np

from rlx.ir.prims import Cumulate, Reduce
from rlx.ir.reference.numeric import store, widen
from rlx.ir.reference.region import region_values


def reduce(prim: Reduce, inputs, types, value_of) -> list[np.ndarray]:
    """Every kind over prim.axes; sums of small integers wrap in their own type."""
    if prim.prologue is not None:
        x = region_values(prim.prologue, inputs, value_of)[0]
    else:
        x = inputs[0] if inputs[0].dtype.kind not in "fcV" else _wide(inputs[0])
    if prim.kind in ("argmax", "argmin"):
        return [_arg(prim, x)]
    with np.errstate(all="ignore"):
        y = _KINDS[prim.kind](x, prim.axes, prim.keepdims)
    return [store(y, types[0].dtype)]


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _sum(x, axes, keep):
    return np.sum(x, axis=axes, keepdims=keep, dtype=x.dtype)


def _mean(x, axes, keep):
    if x.dtype.kind in "iu":  # integers: the truncated quotient
        count = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
        total = np.sum(x, axis=axes, keepdims=keep, dtype=np.int64)
        return (np.abs(total) // max(count, 1) * np.sign(total)).astype(x.dtype)
    return np.mean(x, axis=axes, keepdims=keep) if axes else x


def _extreme(function, low: bool):
    def reduce_kind(x, axes, keep):
        if x.dtype.kind == "b":
            initial = low
        elif x.dtype.kind in "iu":
            initial = np.iinfo(x.dtype).max if low else np.iinfo(x.dtype).min
        else:
            initial = np.inf if low else -np.inf
        return function(x, axis=axes, keepdims=keep, initial=initial)
    return reduce_kind


def _log_sum_exp(x, axes, keep):
    x = np.asarray(x, np.float64)
    top = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0.0)
    y = np.log(np.sum(np.exp(x - top), axis=axes, keepdims=True)) + top
    return y if keep else np.squeeze(y, axis=axes)


_KINDS = {
    "sum": _sum,
    "mean": _mean,
    "max": _extreme(np.max, False),
    "min": _extreme(np.min, True),
    "prod": lambda x, axes, keep: np.prod(x, axis=axes, keepdims=keep, dtype=x.dtype),
    "l1": lambda x, axes, keep: _sum(np.abs(x), axes, keep),
    "l2": lambda x, axes, keep: np.sqrt(_sum(x * x, axes, keep)),
    "sum_square": lambda x, axes, keep: _sum(x * x, axes, keep),
    "log_sum": lambda x, axes, keep: np.log(_sum(x, axes, keep)),
    "log_sum_exp": _log_sum_exp,
}


def _arg(prim: Reduce, x: np.ndarray) -> np.ndarray:
    (axis,) = prim.axes
    pick = np.argmax if prim.kind == "argmax" else np.argmin
    if prim.select_last_index:
        y = x.shape[axis] - 1 - pick(np.flip(x, axis), axis=axis)
    else:
        y = pick(x, axis=axis)
    return np.expand_dims(y, axis).astype(np.int64) if prim.keepdims else y.astype(np.int64)


def cumulate(prim: Cumulate, inputs, types, value_of) -> list[np.ndarray]:
    """Running sum or product, exclusive and reversed as asked."""
    x = widen(inputs[0], types[0].dtype)
    if prim.reverse:
        x = np.flip(x, prim.axis)
    function = np.cumsum if prim.kind == "sum" else np.cumprod
    y = function(x, axis=prim.axis, dtype=x.dtype)
    if prim.exclusive and x.shape[prim.axis]:
        first = np.full_like(np.take(y, [0], prim.axis), 0 if prim.kind == "sum" else 1)
        rest = np.take(y, range(x.shape[prim.axis] - 1), prim.axis)
        y = np.concatenate([first, rest], prim.axis)
    if prim.reverse:
        y = np.flip(y, prim.axis)
    return [store(y, types[0].dtype)]
