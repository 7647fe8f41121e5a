"""Sums by node at the sizes of graph networks: in index order, and the same in every run."""

import pytest

from tests.scatters import check_sums


@pytest.mark.parametrize("edges, nodes, features", [
    (3000, 300, 128), (3000, 1, 128), (3000, 32, 1), (100_000, 5000, 128), (200, 20, 1024)])
def test_sums_by_node(gpu, edges, nodes, features):
    row, _ = check_sums(gpu, edges, nodes, features)
    assert row["reason"].startswith("many updates: sorted by target")
