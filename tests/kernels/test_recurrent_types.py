"""Recurrent layers in every float type: 16-bit ones compute in float32 and round their results."""

import numpy as np
import pytest

from rlx.ir.prims import Recurrent
from rlx.ir.reference.recurrent import recurrent
from rlx.ir.types import DType, TensorType
from tests.kernels.run_prim import run_prim
from tests.tolerance import tolerance

GATES = {"lstm": 4, "gru": 3, "rnn": 1}


@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("dtype", [DType.FLOAT64, DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16],
                         ids=lambda d: d.name.lower())
def test_layers(dtype, kind, direction):
    steps, batch, size, hidden = 6, 3, 5, 7
    rng = np.random.default_rng(0)
    d, all = 2 if direction == "bidirectional" else 1, GATES[kind] * hidden

    def normal(*shape):
        return (rng.normal(size=shape) / 2).astype(dtype.numpy)

    state = (d, batch, hidden)
    inputs = [normal(steps, batch, size), normal(d, all, size), normal(d, all, hidden),
              normal(d, 2 * all), np.array([6, 2, 4], np.int32), normal(*state),
              normal(*state) if kind == "lstm" else None,
              normal(d, 3 * hidden) if kind == "lstm" else None]
    prim = Recurrent(kind, hidden, direction)
    outputs = [TensorType(dtype, (steps, d, batch, hidden)), TensorType(dtype, state),
               TensorType(dtype, state) if kind == "lstm" else None]
    expected = recurrent(prim, inputs, [t and TensorType(DType.FLOAT64, t.shape)
                                        for t in outputs], None)
    found = run_prim(prim, inputs, outputs, threads=2)
    for y, want in zip(found, [v for v in expected if v is not None], strict=True):
        assert y.dtype == dtype.numpy
        np.testing.assert_allclose(y.astype(np.float64), want,
                                   **tolerance("norm", dtype.name.lower()))
