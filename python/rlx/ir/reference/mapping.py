"""References of Map's bodies: the table, and those that do not sample images."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from rlx.ir.prims import Map
from rlx.ir.reference import sampling, trees
from rlx.ir.reference.numeric import store, widen


def map_body(prim: Map, inputs, types, value_of) -> list[np.ndarray]:
    """The reference of the body that prim names."""
    return BODY_REFERENCES[prim.body](prim, inputs, types, value_of)


def bit_cast(prim: Map, inputs, types, value_of) -> list[np.ndarray]:
    """The same bytes; a small type takes those of its value, of which the low bits count."""
    return [np.ascontiguousarray(inputs[0]).view(types[0].dtype.numpy).reshape(inputs[0].shape)]


def col2im(prim: Map, inputs, types, value_of) -> list[np.ndarray]:
    """Adds every element of the blocks to its place in a padded image."""
    n, c, *size = (int(value_of(d)) for d in types[0].shape)
    ints = np.array([int(value_of(i)) for i in prim.ints], np.int64).reshape(-1, 5)
    x = widen(inputs[0], types[0].dtype)
    block, counts = ints[:, 0].tolist(), ints[:, 1].tolist()
    x = x.reshape(n, c, *block, *counts)
    y = np.zeros((n, c, *size), x.dtype)
    for tap in itertools.product(*map(range, block)):
        for at in itertools.product(*map(range, counts)):
            place = [b * s + t * d - p for b, t, (_, _, s, d, p) in zip(at, tap, ints.tolist())]
            if all(0 <= v < e for v, e in zip(place, size)):
                y[(..., *place)] += x[(slice(None), slice(None), *tap, *at)]
    return [store(y, types[0].dtype)]


def deform_columns(prim: Map, inputs, types, value_of) -> list[np.ndarray]:
    """The taps of a deformable convolution, sampled linearly with zeros around the image."""
    x, offset = (v.astype(np.float64) for v in inputs[:2])
    groups = int(value_of(prim.ints[0]))
    axes = np.array([int(value_of(i)) for i in prim.ints[1:]], np.int64).reshape(-1, 4)
    (n, c, *size), out = x.shape, offset.shape[2:]
    taps = list(itertools.product(*(range(k) for k in axes[:, 0])))
    offset = offset.reshape(n, groups, len(taps), len(size), *out)
    mask = np.ones((n, groups, len(taps), *out)) if len(inputs) < 3 or inputs[2] is None else (
        inputs[2].astype(np.float64).reshape(n, groups, len(taps), *out))
    y = np.zeros((n, c, len(taps), *out))
    base = np.indices(out)
    share = c // groups
    for b, g, t in itertools.product(range(n), range(groups), range(len(taps))):
        at = [base[k] * s + taps[t][k] * d - p + offset[b, g, t, k]
              for k, (_, s, d, p) in enumerate(axes.tolist())]
        channels = slice(g * share, (g + 1) * share)
        y[b, channels, t] = _linear_samples(x[b, channels], at) * mask[b, g, t]
    return [store(y, types[0].dtype)]


def _linear_samples(x, at):
    """x [C, D...] at fractional places [E...] for each axis -> [C, E...]."""
    y = np.zeros((x.shape[0], *at[0].shape))
    for corner in itertools.product((0, 1), repeat=len(at)):
        weight, seen, index = 1.0, np.ones((), bool), []
        for place, up, n in zip(at, corner, x.shape[1:]):
            low = np.floor(place)
            weight = weight * (place - low if up else 1 - (place - low))
            seen = seen & (low + up >= 0) & (low + up < n)
            index.append(np.clip(low + up, 0, n - 1).astype(np.int64))
        y = y + np.where(seen, x[(slice(None), *index)], 0.0) * weight
    return y


def frames(prim: Map, inputs, types, value_of) -> list[np.ndarray]:
    """Pieces of a signal, each `step` behind the one before."""
    _, count, size, _ = (int(value_of(d)) for d in types[0].shape)
    starts = np.arange(count)[:, None] * int(value_of(prim.ints[0]))
    return [inputs[0][:, starts + np.arange(size)]]


def det(prim: Map, inputs, types, value_of) -> list[np.ndarray]:
    """NumPy's determinant; the second output is the kernel's own room."""
    x = inputs[0].astype(np.float64)
    return [store(np.linalg.det(x), types[0].dtype), x]


def inverse(prim: Map, inputs, types, value_of) -> list[np.ndarray]:
    """NumPy's inverse; of a singular matrix NaN."""
    x = inputs[0].astype(np.float64)
    flat = x.reshape(-1, *x.shape[-2:])
    made = np.full_like(flat, np.nan)
    for k, matrix in enumerate(flat):
        if np.linalg.det(matrix) != 0:
            made[k] = np.linalg.inv(matrix)
    return [store(made.reshape(x.shape), types[0].dtype), np.concatenate([x, x], -1)]


BODY_REFERENCES: dict[str, Callable] = {
    "bit_cast": bit_cast,
    "col2im": col2im,
    "crop_and_resize": sampling.crop_and_resize,
    "deform_columns": deform_columns,
    "det": det,
    "frames": frames,
    "grid_nearest": sampling.grid_nearest,
    "grid_sample": sampling.grid_sample,
    "inverse": inverse,
    "max_roi_pool": sampling.max_roi_pool,
    "pairwise_coupling": trees.pairwise_coupling,
    "roi_align": sampling.roi_align,
    "tree_ensemble": trees.tree_ensemble,
}
