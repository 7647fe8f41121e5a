"""Reads of a Region's reference: every element by the formula of its access."""

import itertools

import numpy as np
import pytest

from rlx.ir.prims import AxisMap
from rlx.ir.reference.region import read

SHAPE = (2, 3, 4)
CASES = {
    "identity": ((2, 3, 4), (AxisMap(0), AxisMap(1), AxisMap(2))),
    "some axes": ((2, 4), (AxisMap(0), AxisMap(2))),
    "permuted": ((4, 2), (AxisMap(2), AxisMap(0))),
    "diagonal": ((3, 3), (AxisMap(1), AxisMap(1))),
    "spread": ((1, 4), (AxisMap(1), AxisMap(2))),
    "first only": ((5, 4), (AxisMap(-1), AxisMap(2))),
    "longer than the space": ((2, 7), (AxisMap(0), AxisMap(1))),
    "repeated": ((2, 2), (AxisMap(0), AxisMap(2, 2))),
    "tiled": ((2, 3), (AxisMap(0), AxisMap(2, 1, 3))),
    "scalar": ((), ()),
}


@pytest.mark.parametrize("name", CASES)
def test_each_element_by_its_access(name):
    extents, access = CASES[name]
    x = np.random.default_rng(0).normal(size=extents)
    got = np.broadcast_to(read(x, access, SHAPE, int), SHAPE)
    for i in itertools.product(*map(range, SHAPE)):
        at = []
        for extent, m in zip(extents, access):
            k = 0 if m.axis < 0 or extent == 1 else i[m.axis] // m.div
            at.append(k % m.mod if m.mod else k)
        assert got[i] == x[tuple(at)], (i, at)


def test_an_empty_space_reads_nothing():
    got = read(np.zeros((2, 0)), (AxisMap(0), AxisMap(1)), (2, 0), int)
    assert got.shape == (2, 0)


def test_a_plain_read_copies_nothing():
    """Masks and weights are folded by it, a quarter of a gigabyte at times."""
    x = np.zeros((2, 4))
    assert np.shares_memory(read(x, (AxisMap(0), AxisMap(2)), SHAPE, int), x)
