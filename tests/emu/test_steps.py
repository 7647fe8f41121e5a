"""How many kernels a layer of a network takes on the device: what one layer more adds.

Fewer is better: a count here may fall, and then the table is changed, but not rise.
"""

import numpy as np
import pytest

import models
import rlx
from tests.emu.case import emulated
from tests.models.test_builders import SIZES, inputs

# network -> steps of a layer: product for q, k, v; attention; product; norm; two products; norm
LAYER = {"bert-base": 7, "gpt2": 7, "vit-b16": 7}


def steps(name, layers, dtype):
    builder = models.BUILDERS[name]
    model = builder.build(0, dtype, **{**builder.NARROW, "layers": layers})
    with rlx.load(model, device="emu") as session:
        session.run(inputs(name, SIZES[name][0], dtype=dtype))
        return sum(len(row["steps"]) for row in session.explain())


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", LAYER)
def test_a_layer_takes_no_more_kernels(name, dtype):
    emulated("emu")
    assert steps(name, 3, np.dtype(dtype)) - steps(name, 2, np.dtype(dtype)) <= LAYER[name]
