"""Reference of MatMul: float64 or exact integers, epilogue included."""

from __future__ import annotations

import numpy as np

from rlx.ir.prims import MatMul
from rlx.ir.reference.numeric import store, widen
from rlx.ir.reference.region import region_values


def matmul(prim: MatMul, inputs, types, value_of) -> list[np.ndarray]:
    """alpha * op(a - a_zero) op(b - b_zero), then the epilogue."""
    a, b, a_zero, b_zero, *extra = (*inputs, None, None)[:max(4, len(inputs))]
    y = _operand(a, a_zero, prim, row=True) @ _operand(b, b_zero, prim, row=False)
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
