"""When sums by node are sorted on the device, in how many parts, and what memory that takes."""

import pytest

from tests.emu.case import emulated
from tests.scatters import check_sums

SORTED = "many updates: sorted by target"


@pytest.mark.parametrize("edges, features, reason", [
    (63, 4, ""), (64, 4, SORTED), (64, 1024, SORTED), (64, 1025, ""), (2100, 1, SORTED),
    (3000, 130, SORTED + ", 128 of 130 lines at a time: the keys of all would take 9 MiB")])
def test_sums_by_node(edges, features, reason):
    device = "emu:descending"  # where targets have two threads, the later updates go first
    emulated(device)
    row, arena = check_sums(device, edges, 300, features)
    assert row["reason"] == reason
    indices = edges * features * 8
    assert arena < (8 << 20) + indices + (1 << 20)
