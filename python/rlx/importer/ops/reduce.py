"""Reductions and scans along axes: Reduce*, ArgMax, ArgMin, CumSum, CumProd."""

from __future__ import annotations

from rlx.importer.registry import Ints, op
from rlx.ir.build import DType, Value, apply

_KINDS = {
    "ReduceSum": "sum", "ReduceMean": "mean", "ReduceMax": "max", "ReduceMin": "min",
    "ReduceProd": "prod", "ReduceL1": "l1", "ReduceL2": "l2", "ReduceSumSquare": "sum_square",
    "ReduceLogSum": "log_sum", "ReduceLogSumExp": "log_sum_exp",
}


def _reduce(b, kind: str, x: Value, axes, keepdims: int, noop: int = 0) -> Value:
    if not axes:
        if noop:
            return b.reduce(kind, x, (), True) if kind in _ELEMENT_MAPS else x
        axes = tuple(range(x.rank))
    if x.dtype is DType.BOOL:  # max and min of bools: the same over bytes
        return b.cast(b.reduce(kind, b.cast(x, DType.UINT8), axes, bool(keepdims)), DType.BOOL)
    return b.reduce(kind, x, axes, bool(keepdims))


# Kinds that change single elements, so that reducing nothing is no identity.
_ELEMENT_MAPS = frozenset({"l1", "l2", "sum_square", "log_sum", "log_sum_exp"})


def _by_input(kind: str):
    def function(b, x, axes=None, *, keepdims: int = 1, noop_with_empty_axes: int = 0):
        at = None if axes is None else b.structural(axes, "axes decide what is reduced")
        return _reduce(b, kind, x, at, keepdims, noop_with_empty_axes)
    return function


def _by_attribute(kind: str):
    def function(b, x, *, axes: Ints = None, keepdims: int = 1):
        return _reduce(b, kind, x, axes, keepdims)
    return function


for _name, _kind in _KINDS.items():
    op(_name, since=1)(_by_attribute(_kind))
    op(_name, since=13 if _name == "ReduceSum" else 18)(_by_input(_kind))


def _arg(kind: str):
    def function(b, x, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0):
        if x.rank == 0:  # a scalar counts as one element
            x, keepdims = b.reshape(x, (1,)), 0
        dim = x.shape[b.axis(axis, x.rank)]
        b.guard(apply("lt", 0, dim), f"an axis of extent {dim} has no {kind}")
        return b.reduce(kind, x, (axis,), bool(keepdims), select_last_index=select_last_index)
    return function


op("ArgMax", since=1)(_arg("argmax"))
op("ArgMin", since=1)(_arg("argmin"))


def _cumulate(kind: str):
    def function(b, x, axis, *, exclusive: int = 0, reverse: int = 0):
        at = b.structural_one(axis, "the axis decides how the scan runs")
        return b.cumulate(kind, x, at, exclusive, reverse)
    return function


op("CumSum", since=11)(_cumulate("sum"))
op("CumProd", since=26)(_cumulate("prod"))
