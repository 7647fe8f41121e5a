"""The arena of a device: planned to the byte, limited at plan time."""

import pytest

from tests.emu.case import emulated
from tests.memory import check_plan


@pytest.mark.parametrize("name", ["bert-base", "resnet50"])
def test_the_plan_is_what_is_allocated(name):
    emulated("emu")
    check_plan("emu", name)
