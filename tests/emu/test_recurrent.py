"""Recurrent kernels given lengths that no row can have."""

from dataclasses import replace

import numpy as np
import pytest

from rlx.errors import InputError
from tests.emu.case import F32, emulated
from tests.emu.cases_products import layer, lstm_of_bytes

LENGTHS = 4  # among the inputs
CASES = [layer("lstm", 4, F32), lstm_of_bytes(False),
         layer("gru", 3, F32, False, "recurrent_step", 3, 67, 152),
         lstm_of_bytes(False, "recurrent_step", 3, 35, 202)]


@pytest.fixture(scope="module", params=["emu", "emu:descending"])
def device(request):
    return emulated(request.param)


@pytest.mark.parametrize("length", [-1, 5])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_a_bad_length_is_reported(case, length, device):
    inputs = list(case.inputs)
    inputs[LENGTHS] = np.array([4, 2, length], np.int32)
    with pytest.raises(InputError, match="outside"):
        replace(case, inputs=inputs).run(device)
    case.run(device)
