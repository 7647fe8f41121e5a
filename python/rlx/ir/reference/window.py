"""References of Conv and Pool: one tap of the window at a time, over any number of axes."""

from __future__ import annotations

import itertools

import numpy as np

from rlx.ir.prims import Conv, Pool
from rlx.ir.reference.product import exact, finish


def conv(prim: Conv, inputs, types, value_of) -> list[np.ndarray]:
    """Grouped convolution or its transpose, then the epilogue in y's own layout."""
    x, w, x_zero, w_zero, *extra = (*inputs, None, None)[:max(4, len(inputs))]
    x, w = exact(x), exact(w)
    if prim.channels_last:
        x = np.moveaxis(x, -1, 1)
    if x_zero is not None:
        x = x - exact(x_zero).reshape(())
    if w_zero is not None:
        w = w - exact(w_zero).reshape((-1,) + (1,) * (w.ndim - 1) if w_zero.size > 1 else ())
    spatial = _spatial(types[0].shape, prim.channels_last, value_of)
    begin = [int(value_of(p)) for p in prim.pads_begin]
    y = (_transposed if prim.transposed else _forward)(prim, x, w, begin, spatial)
    if prim.channels_last:
        y = np.moveaxis(y, 1, -1)
    return [finish(prim, y, extra, types[0], value_of)]


def _spatial(shape, channels_last: bool, value_of) -> list[int]:
    return [int(value_of(d)) for d in (shape[1:-1] if channels_last else shape[2:])]


def _forward(prim: Conv, x, w, begin, spatial) -> np.ndarray:
    n, c, *size = x.shape
    g = prim.groups
    y = np.zeros((n, g, w.shape[0] // g, int(np.prod(spatial))), x.dtype)
    for tap in itertools.product(*map(range, w.shape[2:])):
        at = [_positions(*a) for a in zip(spatial, prim.strides, prim.dilations, tap, begin)]
        seen, inside = _take(x, at, size)
        seen = np.where(inside, seen, np.zeros((), x.dtype)).reshape(n, g, c // g, -1)
        y += w[(..., *tap)].reshape(g, w.shape[0] // g, c // g) @ seen
    return y.reshape(n, w.shape[0], *spatial)


def _positions(count: int, stride: int, dilation: int, tap: int, begin: int) -> np.ndarray:
    return np.arange(count) * stride + tap * dilation - begin


def _take(x: np.ndarray, at, size):
    """x at the given spatial positions (clipped), and where they lie inside."""
    if 0 in size:
        shape = tuple(len(a) for a in at)
        return np.zeros((*x.shape[:2], *shape), x.dtype), np.zeros(shape, bool)
    inside = np.ones((), bool)
    for k, (a, d) in enumerate(zip(at, size)):
        x = np.take(x, np.clip(a, 0, d - 1), axis=2 + k)
        inside = inside[..., None] & (a >= 0) & (a < d)
    return x, inside


def _transposed(prim: Conv, x, w, begin, spatial) -> np.ndarray:
    n, c, *size = x.shape
    g, m = prim.groups, w.shape[1]
    y = np.zeros((n, g * m, *spatial), x.dtype)
    for tap in itertools.product(*map(range, w.shape[2:])):
        at = [_positions(*a) for a in zip(size, prim.strides, prim.dilations, tap, begin)]
        kernel = w[(..., *tap)].reshape(g, c // g, m)
        part = np.swapaxes(kernel, 1, 2) @ x.reshape(n, g, c // g, int(np.prod(size)))
        part = part.reshape(n, g * m, *size)
        for k, (a, d) in enumerate(zip(at, spatial)):
            keep = np.flatnonzero((a >= 0) & (a < d))
            part, at[k] = np.take(part, keep, axis=2 + k), a[keep]
        y[np.ix_(range(n), range(g * m), *at)] += part
    return y


def pool(prim: Pool, inputs, types, value_of) -> list[np.ndarray | None]:
    """Max (with indices), average or lp windows."""
    x = inputs[0] if inputs[0].dtype.kind in "iub" else inputs[0].astype(np.float64)
    if prim.channels_last:
        x = np.moveaxis(x, -1, 1)
    spatial = _spatial(types[0].shape, prim.channels_last, value_of)
    begin, end = ([int(value_of(p)) for p in pads] for pads in (prim.pads_begin, prim.pads_end))
    indices = None
    if prim.kind == "max":
        y, indices = _max(prim, x, begin, spatial)
    else:
        y = _sums(prim, x, begin, end, spatial)
    found = [y.astype(types[0].dtype.numpy), indices if len(types) > 1 and types[1] else None]
    if prim.channels_last:
        found = [v if v is None else np.moveaxis(v, 1, -1) for v in found]
    return found


def _max(prim: Pool, x: np.ndarray, begin, spatial):
    size = x.shape[2:]
    low = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf
    y = np.full((*x.shape[:2], *spatial), low, x.dtype)
    found = np.zeros(y.shape, bool)
    indices = np.zeros(y.shape, np.int64)
    plane = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *(1,) * len(spatial))
    for tap in itertools.product(*map(range, prim.kernel)):
        at = [_positions(*a) for a in zip(spatial, prim.strides, prim.dilations, tap, begin)]
        seen, inside = _take(x, at, size)
        better = inside & (~found | (seen > y) | ((seen != seen) & (y == y)))
        flat = np.zeros((), np.int64)
        order = range(len(size)) if prim.storage_order == 0 else reversed(range(len(size)))
        for k in order:
            place = [1] * len(size)
            place[k] = -1
            flat = flat * size[k] + at[k].reshape(place)
        y = np.where(better, seen, y)
        indices = np.where(better, plane * int(np.prod(size)) + flat, indices)
        found |= better
    return y, indices


def _sums(prim: Pool, x: np.ndarray, begin, end, spatial) -> np.ndarray:
    size = x.shape[2:]
    total = np.zeros((*x.shape[:2], *spatial))
    count = np.zeros(tuple(spatial), np.int64)
    for tap in itertools.product(*map(range, prim.kernel)):
        at = [_positions(*a) for a in zip(spatial, prim.strides, prim.dilations, tap, begin)]
        seen, inside = _take(x, at, size)
        seen = seen if prim.kind == "average" else np.abs(seen) ** prim.p
        total += np.where(inside, seen, 0.0)
        counted = np.ones((), bool)
        for a, d, b, e in zip(at, size, begin, end):
            low, high = (-b, d + e) if prim.count_include_pad else (0, d)
            counted = counted[..., None] & (a >= low) & (a < high)
        count += counted
    if prim.kind == "lp":
        return total ** (1.0 / prim.p)
    return total / np.maximum(count, 1)
