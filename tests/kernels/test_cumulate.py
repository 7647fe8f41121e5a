"""Running sums and products along every axis, exclusive and reversed."""

import numpy as np
import pytest

from rlx.ir.prims import Cumulate
from rlx.ir.reference.reduction import cumulate as reference
from rlx.ir.types import DType, TensorType
from tests.kernels.run_prim import run_prim
from tests.kernels.samples import FLOATS, INTEGERS
from tests.tolerance import tolerance


@pytest.mark.parametrize("kind", ["sum", "prod"])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=lambda d: d.name)
@pytest.mark.parametrize(("shape", "axis"), [((9,), 0), ((3, 2500), 1), ((40, 30), 0),
                                             ((2, 17, 1100), 1), ((4, 5, 6), 0), ((3, 0), 1)],
                         ids=str)
def test_against_the_reference(kind, dtype, shape, axis):
    rng = np.random.default_rng(1)
    if dtype.is_integer:
        x = rng.integers(0 if dtype.name.startswith("U") else -5, 6, shape).astype(dtype.numpy)
    else:
        x = rng.standard_normal(shape) * (0.01 if kind == "prod" else 1) + (kind == "prod")
        x = x.astype(dtype.numpy)
    out = TensorType(dtype, shape)
    for exclusive in (False, True):
        for reverse in (False, True):
            prim = Cumulate(kind, axis, exclusive, reverse)
            want = reference(prim, [x], [out], lambda dim: dim)[0]
            got, = run_prim(prim, [x], [out], threads=int(rng.choice([1, 2, 5])))
            if dtype.is_float:
                wide = (a.astype(np.float64) for a in (got, want))
                np.testing.assert_allclose(*wide, **tolerance("sum", dtype.name.lower()))
            else:
                np.testing.assert_array_equal(got, want)
