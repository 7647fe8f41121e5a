"""References of Sort (topk, nonzero, compress, unique) and NonMaxSuppression."""

from __future__ import annotations

import numpy as np

from rlx.ir.prims import NonMaxSuppression, Sort


def sort(prim: Sort, inputs, types, value_of) -> list[np.ndarray]:
    """Order and compaction by kind; a count comes last where it depends on the data."""
    if prim.kind == "topk":
        return _topk(prim, inputs[0], int(value_of(prim.k)))
    if prim.kind == "nonzero":
        x = inputs[0]
        places = np.array(np.nonzero(x), np.int64) if x.ndim else np.zeros((0, int(x != 0)))
        return [places.astype(np.int64), _count(places.shape[1])]
    if prim.kind == "compress":
        return _compress(prim, *inputs)
    return _unique(prim, inputs[0])


def _count(n: int) -> np.ndarray:
    return np.array([n], np.int64)


def _ordered(x: np.ndarray) -> np.ndarray:
    """x in a type that NumPy sorts as ONNX does, NaN behind everything."""
    return x if x.dtype.kind in "iubO" else x.astype(np.float64)


def _topk(prim: Sort, x: np.ndarray, k: int) -> list[np.ndarray]:
    keys = _ordered(x)
    if prim.largest:  # sorting the reversed axis and reversing again keeps the lower index first
        n = x.shape[prim.axis]
        order = n - 1 - np.argsort(np.flip(keys, prim.axis), prim.axis, kind="stable")
        order = np.flip(order, prim.axis)
    else:
        order = np.argsort(keys, prim.axis, kind="stable")
    order = np.take(order, np.arange(k), prim.axis)
    return [np.take_along_axis(x, order, prim.axis), order.astype(np.int64)]


def _compress(prim: Sort, x: np.ndarray, condition: np.ndarray) -> list[np.ndarray]:
    axis = prim.axis
    if axis == -1:
        x, axis = x.reshape(-1), 0
    keep = np.flatnonzero(condition[:x.shape[axis]])
    return [np.take(x, keep, axis), _count(len(keep))]


def _unique(prim: Sort, x: np.ndarray) -> list[np.ndarray]:
    axis = prim.axis
    if axis == -1:
        x, axis = x.reshape(-1), 0
    keys = _ordered(x)
    rows = np.moveaxis(keys, axis, 0).reshape(x.shape[axis], -1)
    found: dict = {}
    members = [found.setdefault(tuple(row), len(found)) for row in rows.tolist()]
    names = list(found)
    order = sorted(range(len(names)), key=names.__getitem__) if prim.sorted else range(len(names))
    rank = np.empty(len(names), np.int64)
    rank[list(order)] = np.arange(len(names))
    inverse = rank[np.array(members, np.int64)] if members else np.zeros(0, np.int64)
    first = np.full(len(names), len(members), np.int64)
    np.minimum.at(first, inverse, np.arange(len(members)))
    counts = np.bincount(inverse, minlength=len(names)).astype(np.int64)
    return [np.take(x, first, axis), first, inverse, counts, _count(len(names))]


def non_max_suppression(prim: NonMaxSuppression, inputs, types, value_of) -> list[np.ndarray]:
    """ONNX NonMaxSuppression: [batch, class, box] in order of selection."""
    boxes, scores, most, iou, low = (*inputs, None, None, None)[:5]
    limit = 0 if most is None else int(most.reshape(()))
    overlap = 0.0 if iou is None else float(iou.reshape(()))
    corners = _corners(boxes.astype(np.float64), prim.center_point_box)
    picked = []
    for batch in range(scores.shape[0]):
        for kind in range(scores.shape[1]):
            s = scores[batch, kind].astype(np.float64)
            order = [i for i in np.argsort(-s, kind="stable")
                     if low is None or s[i] > float(low.reshape(()))]
            chosen: list[int] = []
            for i in order:
                if len(chosen) >= limit:
                    break
                if all(_iou(corners[batch, i], corners[batch, j]) <= overlap for j in chosen):
                    chosen.append(int(i))
            picked += [(batch, kind, i) for i in chosen]
    return [np.array(picked, np.int64).reshape(-1, 3), _count(len(picked))]


def _corners(boxes: np.ndarray, center: bool) -> np.ndarray:
    """[y low, x low, y high, x high], whichever corners were given."""
    if center:
        x, y, w, h = np.moveaxis(boxes, -1, 0)
        return np.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2], -1)
    a, b = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(a, b), np.maximum(a, b)], -1)


def _iou(a: np.ndarray, b: np.ndarray) -> float:
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    shared = float(np.prod(np.maximum(sides, 0.0)))
    union = float(np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2])) - shared
    return shared / union if union > 0 else 0.0
