"""References of the primitives that move data: Move, Gather, Scatter."""

from __future__ import annotations

import numpy as np

from rlx.errors import InputError
from rlx.ir.prims import Gather, Move, MovePart, Scatter
from rlx.ir.reference.numeric import store, widen


def move(prim: Move, inputs, types, value_of) -> list[np.ndarray]:
    """Strided blocks of one output."""
    shape = tuple(int(value_of(d)) for d in types[0].shape)
    if prim.mode not in ("none", "constant"):
        return [_extend(prim, inputs, shape, value_of)]
    y = np.zeros(shape, inputs[prim.parts[0].input].dtype if prim.parts else types[0].dtype.numpy)
    if prim.fill >= 0:
        y[...] = inputs[prim.fill].reshape(())
    for part in prim.parts:
        block, offsets = _block(part, inputs, value_of)
        y[tuple(slice(o, o + n) for o, n in zip(offsets, block.shape))] = block
    return [y]


def _block(part: MovePart, inputs, value_of):
    numbers = [[int(value_of(n)) for n in f]
               for f in (part.starts, part.steps, part.extents, part.offsets)]
    starts, steps, extents, offsets = numbers
    x = inputs[part.input].transpose(part.perm)
    index = [s + t * np.arange(n) for s, t, n in zip(starts, steps, extents)]
    return (x[np.ix_(*index)] if index else x), offsets


def _extend(prim: Move, inputs, shape, value_of) -> np.ndarray:
    """Pads beyond the block by repeating its edge, reflecting it or wrapping around."""
    block, offsets = _block(prim.parts[0], inputs, value_of)
    index = []
    for n, o, d in zip(block.shape, offsets, shape):
        i = np.arange(d) - o
        if prim.mode == "edge":
            i = np.clip(i, 0, n - 1)
        elif prim.mode == "wrap":
            i = i % n
        elif n == 1:
            i = np.zeros_like(i)
        else:
            i = np.abs((i + n - 1) % (2 * (n - 1)) - (n - 1))
        index.append(i)
    return block[np.ix_(*index)] if index else block


def gather(prim: Gather, inputs, types, value_of) -> list[np.ndarray]:
    """ONNX Gather, GatherElements and GatherND; negative indices count from the end."""
    data, indices = inputs[0], inputs[1].astype(np.int64)
    if prim.kind == "nd":
        return [_gather_nd(data, _places_nd(indices, data.shape[prim.batch_dims:]),
                           prim.batch_dims)]
    indices = _places(indices, data.shape[prim.axis])
    if prim.kind == "axis":
        return [np.take(data, indices, axis=prim.axis)]
    return [_elements(data, indices, prim.axis)]


def _places(indices: np.ndarray, size: int) -> np.ndarray:
    """Indices counted from the start; InputError for one that is out of range."""
    wrong = indices[(indices < -size) | (indices >= size)]
    if wrong.size:
        raise InputError("an index is out of range", expected=f"in [{-size}, {size - 1}]",
                         got=int(wrong.reshape(-1)[0]))
    return np.where(indices < 0, indices + size, indices)


def _places_nd(indices: np.ndarray, sizes) -> np.ndarray:
    columns = [_places(indices[..., k], sizes[k]) for k in range(indices.shape[-1])]
    return np.stack(columns, -1) if columns else indices


def _elements(data: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    index = list(np.ogrid[tuple(slice(d) for d in indices.shape)])
    index[axis] = indices
    return data[tuple(index)]


def _gather_nd(data: np.ndarray, indices: np.ndarray, batch_dims: int) -> np.ndarray:
    depth = indices.shape[-1]
    lead = np.ogrid[tuple(slice(d) for d in indices.shape[:batch_dims])] if batch_dims else []
    rest = indices.ndim - 1 - batch_dims
    index = [i.reshape(i.shape + (1,) * rest) for i in lead]
    index += [indices[..., k] for k in range(depth)]
    return data[tuple(index)] if index else np.broadcast_to(data, indices.shape[:-1] + data.shape)


def scatter(prim: Scatter, inputs, types, value_of) -> list[np.ndarray]:
    """ONNX ScatterElements and ScatterND with reductions, duplicates in index order."""
    data, indices, updates = inputs[0].copy(), inputs[1].astype(np.int64), inputs[2]
    if prim.kind == "elements":
        index = list(np.ogrid[tuple(slice(d) for d in indices.shape)])
        index[prim.axis] = _places(indices, data.shape[prim.axis])
        where = tuple(index)
    else:
        indices = _places_nd(indices, data.shape)
        where = tuple(indices[..., k] for k in range(indices.shape[-1]))
    if prim.reduction == "none":
        data[where] = updates
        return [data]
    combine = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
    wide = widen(data, types[0].dtype).copy()
    combine[prim.reduction].at(wide, where, widen(updates, types[0].dtype))
    return [store(wide, types[0].dtype)]
