"""Which rung a convolution takes where two are fast and one is faster."""

import numpy as np
import pytest

import rlx
from tests.passes.equivalence import model_of, node


@pytest.mark.parametrize("kernel, image", [([5], [508]), ([5, 1], [508, 1]), ([1, 5], [1, 508])])
def test_a_long_row_of_wide_channels_is_a_product_however_it_is_written(kernel, image):
    weights = np.zeros((512, 256, *kernel), np.float32)
    model = model_of([node("Conv", "x w", "y")], {"x": [1, 256, *image]}, ["y"], {"w": weights})
    with rlx.load(model, device="cpu") as session:
        session.run({"x": np.zeros((1, 256, *image), np.float32)})
        assert [d["rung"] for d in session.explain() if d["prim"] == "Conv"][0].startswith("gemm")
