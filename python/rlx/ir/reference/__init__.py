"""NumPy references of the primitives: float64 inside, exact integers, one file a family."""

from __future__ import annotations

from typing import Callable

from rlx.ir import prims
from rlx.ir.reference import movement, product, reduction, region

# primitive class -> f(prim, inputs, types, value_of) -> list of arrays, one for each output.
# inputs are arrays or None; types TensorTypes or None; value_of(Number) gives the number
# behind a Dim. A primitive that is not here is never folded.
REFERENCES: dict[type, Callable] = {
    prims.Region: region.region,
    prims.Move: movement.move,
    prims.Gather: movement.gather,
    prims.Scatter: movement.scatter,
    prims.Reduce: reduction.reduce,
    prims.Cumulate: reduction.cumulate,
    prims.MatMul: product.matmul,
}
