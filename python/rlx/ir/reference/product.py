"""Reference of MatMul: float64 or exact integers, epilogue included."""

from __future__ import annotations

import numpy as np

from rlx.ir.packing import is_narrow, unpack_rows
from rlx.ir.prims import MatMul
from rlx.ir.reference.numeric import store, widen
from rlx.ir.reference.region import region_values


def matmul(prim: MatMul, inputs, types, value_of) -> list[np.ndarray]:
    """alpha * op(a - a_zero) op(b - b_zero), then the epilogue."""
    a, b, a_zero, b_zero, b_scale, groups, *extra = (*inputs, *[None] * 4)[:max(6, len(inputs))]
    left = _operand(a, a_zero, prim, row=True)
    if prim.b_type is None:
        right = _operand(b, b_zero, prim, row=False)
    else:
        depth = left.shape[-1]
        right = np.swapaxes(dequantised(prim, b, b_zero, b_scale)[..., :depth], -1, -2)
    if groups is None:
        y = left @ right
    else:
        y = np.zeros((left.shape[0], right.shape[-1]), np.result_type(left, right))
        for g in np.unique(groups):
            y[groups == g] = left[groups == g] @ right[g]
    y = y * prim.alpha if y.dtype.kind in "fc" else y
    return [finish(prim, y, extra, types[0], value_of)]


def _operand(x: np.ndarray, zero, prim: MatMul, row: bool) -> np.ndarray:
    wide = exact(x)
    if zero is not None:
        z = exact(zero)
        if z.ndim == 1 and z.size > 1:
            z = z[:, None] if row else z[None, :]
        elif z.size == 1:
            z = z.reshape(())
        wide = wide - z
    return np.swapaxes(wide, -1, -2) if (prim.trans_a if row else prim.trans_b) else wide


def dequantised(prim: MatMul, b: np.ndarray, zero, scale: np.ndarray) -> np.ndarray:
    """The float64 values [.., N, C] that a quantised b stands for."""
    values = unpack_rows(b, prim.b_type) if is_narrow(prim.b_type) else b
    values = values.astype(np.float64)
    rows, columns = values.shape[-2:]

    def spread(x: np.ndarray) -> np.ndarray:
        if x.size == 1:
            return x.astype(np.float64).reshape(())
        wide = x.astype(np.float64).repeat(prim.block_n, -2).repeat(prim.block_k, -1)
        lacking = max(0, columns - wide.shape[-1])  # of what pads the last byte
        return np.pad(wide, [(0, 0)] * (x.ndim - 1) + [(0, lacking)])[..., :rows, :columns]

    values = values if zero is None else values - spread(zero)
    return values * spread(scale)


def exact(x: np.ndarray) -> np.ndarray:
    """Wide enough that products and sums are exact (integers wrap as int64 does)."""
    if x.dtype.kind in "iu":
        return x.astype(np.int64)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def finish(prim, y: np.ndarray, extra, type, value_of) -> np.ndarray:
    """The epilogue over a wide product, rounded to the output type."""
    if prim.epilogue is not None:
        product = y if y.dtype.kind in "fc" else y.astype(prim.accumulate.numpy)
        y = region_values(prim.epilogue, [product, *extra], value_of)[0]
    return store(widen(y, type.dtype) if y.dtype == type.dtype.numpy else y, type.dtype)
