"""Reference of Region: loads through access maps, scalar ops in float64 or exact integers."""

from __future__ import annotations

import numpy as np

from rlx.ir.prims import Access, Region, RegionOp
from rlx.ir.reference.numeric import cast, store, widen
from rlx.ir.scalars import SCALAR_OPS
from rlx.ir.types import DType


def region(prim: Region, inputs, types, value_of) -> list[np.ndarray]:
    """Every result of a Region, rounded to its type."""
    results = region_values(prim, inputs, value_of)
    return [store(r, t.dtype) for r, t in zip(results, types)]


def region_values(prim: Region, inputs, value_of, dtypes=None) -> list[np.ndarray]:
    """The results of a Region as wide arrays of its whole shape.

    dtypes overrides the types that inputs are read as: a wide array stays as it is.
    """
    shape = tuple(int(value_of(d)) for d in prim.shape)
    values: list[np.ndarray] = []
    for op in prim.ops:
        values.append(_value(op, prim, inputs, values, shape, value_of))
    return [np.broadcast_to(values[r], shape) for r in prim.results]


def _value(op: RegionOp, prim: Region, inputs, values, shape, value_of) -> np.ndarray:
    if op.op == "load":
        x = read(np.asarray(inputs[op.args[0]]), prim.accesses[op.args[0]], shape, value_of)
        return widen(x, op.dtype) if x.dtype == op.dtype.numpy else x
    if op.op == "const":
        return widen(np.asarray(op.imm).astype(op.dtype.numpy), op.dtype)
    if op.op == "dim":
        return widen(np.asarray(value_of(op.imm)).astype(op.dtype.numpy), op.dtype)
    if op.op == "index":
        axis = op.args[0]
        place = [1] * len(shape)
        place[axis] = shape[axis]
        return np.arange(shape[axis], dtype=np.int64).reshape(place)
    args = [values[a] for a in op.args]
    if op.op == "cast":
        return cast(args[0], prim.ops[op.args[0]].dtype, op.dtype, int(op.imm))
    result = SCALAR_OPS[op.op].reference(*args)
    if op.dtype.is_integer and result.dtype != op.dtype.compute.numpy:
        result = result.astype(op.dtype.compute.numpy)
    return result.astype(np.bool_) if op.dtype is DType.BOOL else result


def read(x: np.ndarray, access: Access, shape: tuple[int, ...], value_of) -> np.ndarray:
    """x seen from an iteration space of `shape`, with ones on the axes it does not depend on."""
    if not access:
        return x
    rank = len(shape)
    if 0 not in shape and all(m.div == 1 and m.mod == 0 and m.axis >= 0 for m in access):
        axes = [m.axis for m in access]
        if list(x.shape) == [shape[a] for a in axes] and axes == sorted(set(axes)):
            return x.reshape([shape[a] if a in axes else 1 for a in range(rank)])  # no copy
    index = []
    for k, m in enumerate(access):
        if m.axis < 0 or x.shape[k] == 1:
            index.append(np.zeros((1,) * rank, np.int64))
            continue
        i = np.arange(shape[m.axis], dtype=np.int64) // int(value_of(m.div))
        mod = int(value_of(m.mod))
        place = [1] * rank
        place[m.axis] = shape[m.axis]
        index.append((i % mod if mod else i).reshape(place))
    if 0 in shape:
        return np.zeros(shape, x.dtype)
    return x[tuple(index)]
