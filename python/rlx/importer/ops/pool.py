"""Pooling: MaxPool, AveragePool, LpPool and their global forms."""

from __future__ import annotations

import math

from rlx.errors import ModelError
from rlx.importer.ops.checks import in_range, rank_at_least, window
from rlx.importer.ops.conv import window_pads
from rlx.importer.registry import AutoPad, Ints, op
from rlx.ir.build import Value, apply, window_out


def _pool(b, kind: str, x: Value, kernel, auto_pad, ceil_mode, dilations, pads, strides, **more):
    strides, dilations = window(x, strides, dilations, kernel)
    begin, end = window_pads(x.shape[2:], kernel, strides, dilations, pads, auto_pad)
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        out = [apply("floordiv", apply("add", d, s - 1), s) for d, s in zip(x.shape[2:], strides)]
    else:
        ceil = bool(ceil_mode) and auto_pad != "VALID"  # whose formula has no ceil_mode
        out = [window_out(d, k, s, r, p, q, ceil) for d, k, s, r, p, q in
               zip(x.shape[2:], kernel, strides, dilations, begin, end)]
    return b.pool(kind, x, kernel=kernel, strides=strides, dilations=dilations, pads_begin=begin,
                  pads_end=end, spatial_out=out, **more)


@op("MaxPool", since=1)
def max_pool(b, x, *, kernel_shape: Ints, auto_pad: AutoPad = "NOTSET", ceil_mode: int = 0,
             dilations: Ints = None, pads: Ints = None, storage_order: int = 0,
             strides: Ints = None):
    indices = len(b.wanted) > 1 and b.wanted[1]
    return _pool(b, "max", x, kernel_shape, auto_pad, ceil_mode, dilations, pads, strides,
                 storage_order=storage_order, indices=indices)


@op("AveragePool", since=1)
def average_pool(b, x, *, kernel_shape: Ints, auto_pad: AutoPad = "NOTSET", ceil_mode: int = 0,
                 count_include_pad: int = 0, dilations: Ints = None, pads: Ints = None,
                 strides: Ints = None):
    return _pool(b, "average", x, kernel_shape, auto_pad, ceil_mode, dilations, pads, strides,
                 count_include_pad=count_include_pad)[0]


@op("LpPool", since=2)
def lp_pool(b, x, *, kernel_shape: Ints, auto_pad: AutoPad = "NOTSET", ceil_mode: int = 0,
            dilations: Ints = None, p: int = 2, pads: Ints = None, strides: Ints = None):
    in_range("p", p, 1)
    return _pool(b, "lp", x, kernel_shape, auto_pad, ceil_mode, dilations, pads, strides, p=p)[0]


@op("LpPool", since=1)
def lp_pool_1(b, x, *, kernel_shape: Ints, auto_pad: AutoPad = "NOTSET", p: float = 2.0,
              pads: Ints = None, strides: Ints = None):
    _norm_order(p)
    if p.is_integer():
        return lp_pool(b, x, kernel_shape=kernel_shape, auto_pad=auto_pad, p=int(p), pads=pads,
                       strides=strides)
    sums = lp_pool(b, _powers(b, x, p), kernel_shape=kernel_shape, auto_pad=auto_pad, p=1,
                   pads=pads, strides=strides)
    return b.scalar("pow", sums, b.like(1.0 / p, x))


def _norm_order(p: float) -> None:
    if not 0.0 < p < math.inf:
        raise ModelError("p is out of range", expected="a finite number above 0", got=str(p))


def _powers(b, x: Value, p: float) -> Value:
    return b.scalar("pow", b.scalar("abs", x), b.like(p, x))


def _spatial(x: Value) -> tuple[int, ...]:
    rank_at_least(x, 3)
    return tuple(range(2, x.rank))


@op("GlobalAveragePool", since=1)
def global_average_pool(b, x):
    return b.reduce("mean", x, _spatial(x))


@op("GlobalMaxPool", since=1)
def global_max_pool(b, x):
    return b.reduce("max", x, _spatial(x))


@op("GlobalLpPool", since=2)
def global_lp_pool(b, x, *, p: int = 2):
    return global_lp_pool_1(b, x, p=p)


@op("GlobalLpPool", since=1)
def global_lp_pool_1(b, x, *, p: float = 2.0):
    _norm_order(p)
    if p in (1, 2):
        return b.reduce(f"l{int(p)}", x, _spatial(x))
    return b.scalar("pow", b.reduce("sum", _powers(b, x, p), _spatial(x)), b.like(1.0 / p, x))
