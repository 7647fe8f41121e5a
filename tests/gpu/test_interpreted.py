"""On a card too the interpreting kernel computes bit for bit what the generated ones do."""

import pytest

from tests.emu import test_interpreted as emulated


@pytest.mark.parametrize("same", [
    emulated.test_every_function_of_floats, emulated.test_truth_values_choices_and_casts,
    emulated.test_strides_maps_and_powers,
])
def test_the_interpreter_agrees(same):
    same("cuda")
