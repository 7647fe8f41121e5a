"""The kernels' cases of tests/emu, on a real GPU."""

import pytest

from rlx import _core
from tests.emu import test_kernels as emulated, test_tf32 as rounded
from tests.emu.test_long import (  # noqa: F401  (collected here too)
    test_a_bad_index_among_many_is_reported,
    test_a_bad_index_in_one_of_many_lines_is_reported,
    test_a_transform_of_a_length_with_a_large_prime,
    test_long_lines_without_a_reduction,
    test_many_lines_of_updates_are_taken_in_order,
    test_many_rows_of_updates,
    test_many_updates_are_taken_in_order,
)


@pytest.fixture(scope="module")
def device(gpu):
    return _core.make_device(gpu, False)


@pytest.mark.parametrize("case", emulated.CASES, ids=lambda c: f"{c.kernels[0]}: {c.name}")
def test_against_the_reference(case, device):
    emulated.test_against_the_reference(case, device)


@pytest.mark.parametrize("case", rounded.CASES, ids=lambda c: c.name)
def test_with_tf32(case, gpu):
    rounded.test_against_the_reference(case, _core.make_device(gpu, True))
