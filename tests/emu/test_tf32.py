"""Kernels that may round float32 to TF32, on emulated devices that allow it."""

import numpy as np
import pytest

from rlx.ir.prims import Attention, AxisMap, RegionOp
from rlx.ir.reference import REFERENCES
from tests.emu import cases_convs, cases_cores
from tests.emu.case import BOOL, F32, Case, emulated, identity, region, typed, values
from tests.tolerance import tolerance


def _cases():
    causal = {"causal": True, "causal_offset": 3}
    for name, q, kv, options in [
        ("plain", (2, 3, 20, 40), (2, 3, 35, 40), {}),
        ("rows", (1, 2, 70, 64), (1, 2, 150, 64), {}),
        ("causal groups", (1, 4, 17, 24), (1, 2, 20, 24), causal),
        ("wide heads", (1, 2, 17, 128), (1, 2, 70, 128), {}),
        ("many heads", (2, 6, 20, 64), (2, 6, 150, 64), {"causal": True, "causal_offset": 130}),
        ("causal rows", (1, 1, 150, 64), (1, 1, 150, 64), {"causal": True}),
        ("odd dims", (1, 2, 19, 15), (1, 2, 20, 15), {}),
    ]:
        yield Case(name, ("attention_mma",), Attention(q[3] ** -0.5, **options),
                   [values(q), values(kv, seed=1), values(kv, seed=2)], [typed(F32, *q)], "tf32")
    score = region((1, 2, 18, 20), [identity(4), (AxisMap(0), AxisMap(-1), AxisMap(-1),
                                                  AxisMap(3))],
                   [RegionOp("load", F32, (0,)), RegionOp("load", F32, (1,)),
                    RegionOp("add", F32, (0, 1))])
    yield Case("masked", ("attention_mma",),
               Attention(0.25, q_layout="bshd", k_layout="bshd", y_layout="bshd", score=score),
               [values((1, 18, 2, 16)), values((1, 20, 2, 16), seed=1),
                values((1, 2, 20, 16), seed=2),
                np.where(values((1, 1, 1, 20), BOOL, 3), 0, -1e9).astype(np.float32)],
               [typed(F32, 1, 18, 2, 16)], "tf32")


CASES = [*_cases(), *cases_cores.rounded_cases(), *cases_convs.rounded_cases()]


@pytest.fixture(scope="module", params=["emu:tf32", "emu:tf32:descending"])
def device(request):
    return emulated(request.param)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_against_the_reference(case, device):
    (want,) = REFERENCES[type(case.prim)](case.prim, case.inputs, case.outputs, lambda dim: dim)
    (got,) = case.run(device)
    np.testing.assert_allclose(got, want, **tolerance(case.what, "float32"))
    assert np.abs(got - want).max() > 1e-6  # it is rounded: the tensor cores' kernel did it
