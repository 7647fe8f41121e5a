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


def linear_attention(prim: Map, inputs, types, value_of) -> list[np.ndarray]:
    """The recurrence of ONNX LinearAttention, token by token."""
    q, k, v, past, decay, beta = (None if x is None else x.astype(np.float64)
                                  for x in (*inputs, None, None, None)[:6])
    query_heads, heads = (int(value_of(n)) for n in prim.ints)
    batch, length = q.shape[:2]
    q, k, v = (x.reshape(batch, length, n, -1)
               for x, n in ((q, query_heads), (k, heads), (v, heads)))
    state = np.zeros((batch, heads, k.shape[3], v.shape[3])) if past is None else past
    y = np.zeros((batch, length, query_heads, v.shape[3]))
    for t in range(length):
        if decay is not None:
            state = state * np.exp(decay[:, t].reshape(batch, heads, -1, 1))
        added = v[:, t]
        if beta is not None:
            known = np.einsum("bhd,bhdc->bhc", k[:, t], state)
            added = beta[:, t, :, None] * (added - known)
        state = state + k[:, t, :, :, None] * added[:, :, None]
        wide = np.repeat(state, query_heads // heads, 1)
        y[:, t] = np.einsum("bhd,bhdc->bhc", q[:, t], wide) * float(value_of(prim.floats[0]))
    return [store(y.reshape(batch, length, -1), types[0].dtype), state.astype(np.float32)]


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
    "linear_attention": linear_attention,
    "max_roi_pool": sampling.max_roi_pool,
    "pairwise_coupling": trees.pairwise_coupling,
    "roi_align": sampling.roi_align,
    "tree_ensemble": trees.tree_ensemble,
}
