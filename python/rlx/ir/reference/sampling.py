"""References of Map's bodies that sample images: grids, regions of interest, crops."""

from __future__ import annotations

import itertools
import math

import numpy as np

from rlx.errors import InputError
from rlx.ir.prims import Map
from rlx.ir.reference.numeric import store, widen

ZEROS, BORDER, REFLECTION = range(3)


def grid_sample(prim: Map, inputs, types, value_of) -> list[np.ndarray]:
    """ONNX GridSample, linear or cubic, one corner of the neighbourhood at a time."""
    points, padding, align = (int(value_of(n)) for n in prim.ints)
    x, grid = widen(inputs[0], types[0].dtype), inputs[1].astype(np.float64)
    size = x.shape[2:]
    axes = []  # for each axis of the image: index and weight of each of its points
    for k, n in enumerate(size):
        at = _inside(_denormalised(grid[..., len(size) - 1 - k], n, align), n, padding, align)
        axes.append(_linear(at) if points == 2 else _cubic(at))
    y = np.zeros((x.shape[1], *grid.shape[:-1]))
    for corner in itertools.product(range(points), repeat=len(size)):
        places = [axes[k][0] + c for k, c in enumerate(corner)]
        weight = math.prod(axes[k][1][c] for k, c in enumerate(corner))
        y = y + _pixels(x, places, padding, align) * weight
    return [store(np.moveaxis(y, 0, 1), types[0].dtype)]


def grid_nearest(prim: Map, inputs, types, value_of) -> list[np.ndarray]:
    """ONNX GridSample, nearest: halves go to the even index."""
    padding, align = (int(value_of(n)) for n in prim.ints)
    x, grid = inputs
    coordinates = np.float64 if grid.dtype == np.float64 else np.float32
    grid, size = grid.astype(coordinates), x.shape[2:]
    places = []
    for k, n in enumerate(size):
        at = np.rint(_denormalised(grid[..., len(size) - 1 - k], n, align))
        places.append(_inside(at.astype(np.float64), n, padding, align))
    return [np.moveaxis(_pixels(x, places, padding, align), 0, 1)]


def _denormalised(x, n: int, align: int):
    return (x + 1) / 2 * (n - 1) if align else ((x + 1) * n - 1) / 2


def _reflected(x, low: float, high: float):
    """A triangle wave between low and high."""
    span = high - low
    if span <= 0:
        return np.full_like(x, low)
    return low + span - np.abs(np.mod(x - low, 2 * span) - span)


def _inside(x, n: int, padding: int, align: int):
    low = 0.0 if align else -0.5
    if padding == BORDER:
        return np.where((x < low) | (x > n - 1 - low), np.clip(x, 0, n - 1), x)
    return _reflected(x, low, n - 1 - low) if padding == REFLECTION else x


def _linear(at):
    base = np.floor(at)
    return base, [1 - (at - base), at - base]


def _cubic(at):
    base = np.floor(at)
    t, a = at - base, -0.75
    near = [((a + 2) * d - (a + 3)) * d * d + 1 for d in (t, 1 - t)]
    far = [((a * d - 5 * a) * d + 8 * a) * d - 4 * a for d in (1 + t, 2 - t)]
    return base - 1, [far[0], near[0], near[1], far[1]]


def _pixels(x, places, padding: int, align: int):
    """x [N, C, D...] at places [N, E...] for each axis -> [C, N, E...]."""
    seen, index = np.ones((), bool), []
    for i, n in zip(places, x.shape[2:]):
        if padding == ZEROS:
            seen = seen & (i >= 0) & (i <= n - 1)
        elif padding == REFLECTION:
            low = 0.0 if align else -0.5
            i = np.where((i < low) | (i > n - 1 - low), _reflected(i, low, n - 1 - low), i)
        index.append(np.clip(np.nan_to_num(i), 0, n - 1).astype(np.int64))
    batch = np.arange(x.shape[0]).reshape(-1, *(1,) * (places[0].ndim - 1))
    found = np.moveaxis(x, 1, 0)[(slice(None), batch, *index)]
    return np.where(seen, found, np.zeros((), x.dtype))


def _image(index, count: int) -> int:
    if not 0 <= index < count:
        raise InputError("a batch index is out of range", expected=f"in [0, {count - 1}]",
                         got=int(index))
    return int(index)


def roi_align(prim: Map, inputs, types, value_of) -> list[np.ndarray]:
    """ONNX RoiAlign: average (or largest weighted corner) of bilinear samples of each bin."""
    samples, maximum, half = (int(value_of(n)) for n in prim.ints)
    scale, shift = float(value_of(prim.floats[0])), 0.5 if half else 0.0
    x, rois = widen(inputs[0], types[0].dtype), inputs[1].astype(np.float64) * scale - shift
    y = np.zeros([int(value_of(d)) for d in types[0].shape])
    rows, columns = y.shape[2:]
    for r, (x1, y1, x2, y2) in enumerate(rois):
        image = x[_image(inputs[2][r], x.shape[0])]
        down = _bin_places(y1, y2, rows, samples, half)
        across = _bin_places(x1, x2, columns, samples, half)
        for i, j in itertools.product(range(rows), range(columns)):
            corners = [_corners(image, v, u) for v in down[i] for u in across[j]]
            if corners:
                found = np.array(corners)  # [samples, 4, C]
                y[r, :, i, j] = found.max((0, 1)) if maximum else found.sum(1).mean(0)
    return [store(y, types[0].dtype)]


def _bin_places(low: float, high: float, bins: int, samples: int, half: int) -> np.ndarray:
    length = high - low if half else max(high - low, 1.0)
    count = samples if samples > 0 else max(math.ceil(length / bins), 0)
    step = length / bins / max(count, 1)
    return low + (np.arange(bins)[:, None] * length / bins) + (np.arange(count) + 0.5) * step


def _corners(image, v: float, u: float) -> np.ndarray:
    """The four weighted pixels around (v, u); nothing beyond one pixel outside."""
    height, width = image.shape[1:]
    if v < -1 or v > height or u < -1 or u > width:
        return np.zeros((4, image.shape[0]))
    v, u = min(max(v, 0.0), height - 1.0), min(max(u, 0.0), width - 1.0)
    top, left = int(v), int(u)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    down, across = v - top, u - left
    return np.array([image[:, top, left] * (1 - down) * (1 - across),
                     image[:, top, right] * (1 - down) * across,
                     image[:, bottom, left] * down * (1 - across),
                     image[:, bottom, right] * down * across])


def max_roi_pool(prim: Map, inputs, types, value_of) -> list[np.ndarray]:
    """ONNX MaxRoiPool: the largest pixel of each bin, whose borders are whole pixels."""
    scale, x = float(value_of(prim.floats[0])), widen(inputs[0], types[0].dtype)
    y = np.zeros([int(value_of(d)) for d in types[0].shape])
    for r, (image, *box) in enumerate(inputs[1].astype(np.float64)):
        x1, y1, x2, y2 = (math.copysign(math.floor(abs(v * scale) + 0.5), v) for v in box)
        down = _pixel_bins(y1, y2, y.shape[2], x.shape[2])
        across = _pixel_bins(x1, x2, y.shape[3], x.shape[3])
        for (i, (a, b)), (j, (c, d)) in itertools.product(enumerate(down), enumerate(across)):
            if a < b and c < d:
                y[r, :, i, j] = x[_image(image, x.shape[0]), :, a:b, c:d].max((1, 2))
    return [store(y, types[0].dtype)]


def _pixel_bins(low: float, high: float, bins: int, n: int) -> list[tuple[int, int]]:
    size = max(high - low + 1, 1) / bins
    ends = [(math.floor(k * size) + low, math.ceil((k + 1) * size) + low) for k in range(bins)]
    return [(int(min(max(a, 0), n)), int(min(max(b, 0), n))) for a, b in ends]


def crop_and_resize(prim: Map, inputs, types, value_of) -> list[np.ndarray]:
    """CropAndResize of com.microsoft: bilinear or nearest places of crops given in [0, 1]."""
    nearest, outside = int(value_of(prim.ints[0])), float(value_of(prim.floats[0]))
    x = widen(inputs[0], types[0].dtype)
    y = np.full([int(value_of(d)) for d in types[0].shape], outside)
    height, width = x.shape[2:]
    for r, (y1, x1, y2, x2) in enumerate(inputs[1].astype(np.float64)):
        image = x[_image(inputs[2][r], x.shape[0])]
        for i, v in enumerate(_crop_places(y1, y2, y.shape[2], height)):
            for j, u in enumerate(_crop_places(x1, x2, y.shape[3], width)):
                if not (0 <= v <= height - 1 and 0 <= u <= width - 1):
                    continue
                y[r, :, i, j] = (image[:, math.floor(v + 0.5), math.floor(u + 0.5)] if nearest
                                 else _corners(image, v, u).sum(0))
    return [store(y, types[0].dtype)]


def _crop_places(low: float, high: float, count: int, n: int) -> np.ndarray:
    if count == 1:
        return np.array([0.5 * (low + high) * (n - 1)])
    return low * (n - 1) + np.arange(count) * (high - low) * (n - 1) / (count - 1)
