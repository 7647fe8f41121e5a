"""Every kernel on the emulated device, in two orders of its threads, against the references."""

from pathlib import Path

import numpy as np
import pytest

from rlx.ir.reference import REFERENCES
from tests.emu import (
    cases_convs, cases_cores, cases_elementwise, cases_products, cases_quantised,
    cases_scatter,
)
from tests.emu.case import emulated
from tests.emu.test_counts import KERNELS as COUNTED
from tests.emu.test_interpreted import KERNELS as COMPARED
from tests.tolerance import tolerance

CASES = [*cases_elementwise.cases(), *cases_products.cases(), *cases_cores.cases(),
         *cases_convs.cases(), *cases_quantised.cases(), *cases_scatter.cases()]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", params=["emu", "emu:descending"])
def device(request):
    return emulated(request.param)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.kernels[0]}: {c.name}")
def test_against_the_reference(case, device):
    want = REFERENCES[type(case.prim)](case.prim, case.inputs, case.outputs, lambda dim: dim)
    got = case.run(device)
    wanted = [(w, t) for w, t in zip(want, case.outputs) if t is not None]
    for found, (true, type_) in zip(got, wanted, strict=True):
        if case.what == "exact" or not type_.dtype.is_float:
            np.testing.assert_array_equal(found, true)
            continue
        np.testing.assert_allclose(found.astype(float), np.asarray(true).astype(float),
                                   **tolerance(case.what, type_.dtype.name.lower()))


def test_every_kernel_has_a_case():
    files = {path.stem for path in (ROOT / "kernels").glob("*.cu")}
    covered = {name for case in CASES for name in case.kernels} | COUNTED | COMPARED
    assert files == covered
