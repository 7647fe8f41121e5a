"""The kernels' cases of tests/emu, on a real GPU."""

import pytest

from rlx import _core
from tests.emu import test_kernels as emulated, test_tf32 as rounded


@pytest.fixture(scope="module")
def device(gpu):
    return _core.make_device(gpu, False)


@pytest.mark.parametrize("case", emulated.CASES, ids=lambda c: f"{c.kernels[0]}: {c.name}")
def test_against_the_reference(case, device):
    emulated.test_against_the_reference(case, device)


@pytest.mark.parametrize("case", rounded.CASES, ids=lambda c: c.name)
def test_with_tf32(case, gpu):
    rounded.test_against_the_reference(case, _core.make_device(gpu, True))
