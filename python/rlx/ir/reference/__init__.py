"""NumPy references of the primitives: float64 inside, exact integers, one file a family."""

from __future__ import annotations

from typing import Callable

from rlx.ir import prims
from rlx.ir.reference import (
    fourier, mapping, movement, normalise, order, product, recurrent, reduction, region, resize,
    window,
)

# primitive class -> f(prim, inputs, types, value_of) -> list of arrays, one for each output.
# inputs are arrays or None; types TensorTypes or None; value_of(Number) gives the number
# behind a Dim. A primitive that is not here (Random) is never folded.
REFERENCES: dict[type, Callable] = {
    prims.Region: region.region,
    prims.Move: movement.move,
    prims.Gather: movement.gather,
    prims.Scatter: movement.scatter,
    prims.Reduce: reduction.reduce,
    prims.Cumulate: reduction.cumulate,
    prims.MatMul: product.matmul,
    prims.Conv: window.conv,
    prims.Pool: window.pool,
    prims.Softmax: normalise.softmax,
    prims.Norm: normalise.norm,
    prims.Attention: normalise.attention,
    prims.Resize: resize.resize,
    prims.Sort: order.sort,
    prims.NonMaxSuppression: order.non_max_suppression,
    prims.Recurrent: recurrent.recurrent,
    prims.Fft: fourier.fft,
    prims.Map: mapping.map_body,
}
