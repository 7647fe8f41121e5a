"""Every model takes as many steps, stages, calls of Python and bytes as counts.json says.

Fewer: run `python -m tests.counts MODEL` and commit. More: only with its reason in RAISED.
"""

import pytest

from tests.counts.measure import cases, measure, stored

# model -> why its row was raised when it last was.
RAISED: dict[str, str] = {}


@pytest.mark.parametrize("name", sorted(cases()))
def test_counts(name):
    expected = stored().get(name)
    assert expected is not None, f"no row: python -m tests.counts {name}"
    assert measure(cases()[name]) == expected


def test_the_table_has_no_row_without_a_model():
    from tests.counts.measure import REAL
    assert stored().keys() <= cases().keys() | set(REAL)


def test_repeated_runs_stay_in_the_core():
    for name, row in stored().items():
        assert row["reentries"] == row["replans"] == 0, name
