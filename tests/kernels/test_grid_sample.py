"""GridSample over more places than share their taps."""

import numpy as np
import pytest

from rlx.ir.prims import Map
from rlx.ir.reference.mapping import BODY_REFERENCES
from rlx.ir.types import DType, TensorType
from tests.kernels.run_prim import run_prim
from tests.tolerance import tolerance


@pytest.mark.parametrize("points", [2, 4])
@pytest.mark.parametrize("spread", [0.5, 1.2], ids=["inside", "border"])
@pytest.mark.parametrize("size", [(30, 20), (9, 8, 7)], ids=str)
def test_many_places(size, spread, points):
    """What no sample reads may be infinite."""
    rng = np.random.default_rng(8)
    x = (rng.standard_normal((2, 33, *size)) * 0.3).astype(np.float32)
    x[0, 0, 0] = np.inf
    places = (41, 70) if len(size) == 2 else (6, 41, 11)
    # Coarse steps: coordinates are exact.
    steps = int(64 * spread)
    grid = (rng.integers(-steps, steps + 1, (2, *places, len(size))) / 64).astype(np.float32)
    prim = Map("grid_sample", 2 * 3 * int(np.prod(places)), (points, 0, 0))
    shape = (2, 33, *places)
    found, = run_prim(prim, [x, grid], [TensorType(DType.FLOAT32, shape)], threads=2)
    with np.errstate(invalid="ignore"):
        expected = BODY_REFERENCES["grid_sample"](
            prim, [x.astype(np.float64), grid.astype(np.float64)],
            [TensorType(DType.FLOAT64, shape)], lambda n: n)[0]
    np.testing.assert_allclose(found, expected, **tolerance("norm", "float32"))
