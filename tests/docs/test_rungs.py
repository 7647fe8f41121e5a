"""The rungs that the guide to devices lists are those that each device takes."""

from pathlib import Path
import re

import pytest

from rlx import _core
from tests.emu.case import emulated

GUIDE = Path(__file__).resolve().parents[2] / "docs/guides/devices.md"


# The emulated device takes what a GPU does.
@pytest.mark.parametrize("listed, device", [("cpu", "cpu"), ("cuda", "emu")])
def test_the_guide_lists_what_a_device_takes(listed, device):
    made = _core.make_device("cpu") if device == "cpu" else emulated(device)
    item = re.search(rf"^- `{listed}`: ((?:.+\n)(?:  .+\n)*)", GUIDE.read_text(), re.MULTILINE)[1]
    assert re.findall(r"`([^`]+)`", item) == made.rungs
