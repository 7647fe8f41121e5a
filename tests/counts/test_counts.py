"""No model takes more steps, stages, calls of Python or bytes than counts.json says.

After a change that takes fewer: `python -m tests.counts MODEL`, and commit the table. A row may
only be raised together with its reason in RAISED.
"""

import pytest

from tests.counts.measure import REAL, cases, instruction_set, measure, stored

# model -> why its row was raised when it last was.
RAISED: dict[str, str] = {}


@pytest.mark.parametrize("name", sorted(cases()))
def test_counts(name):
    row = stored().get(name)
    assert row is not None, f"no row: python -m tests.counts {name}"
    found = measure(cases()[name])
    if row["isa"] != instruction_set():
        print("arena bytes were measured with", row["isa"])
        del found["arena_bytes"]
    more = {key: (row[key], n) for key, n in found.items() if n > row[key]}
    assert not more, f"(stored, found): {more}"


def test_the_table_fits_the_models():
    assert stored().keys() <= cases().keys() | REAL.keys() and RAISED.keys() <= stored().keys()


def test_repeated_runs_stay_in_the_core():
    for name, row in stored().items():
        assert row["reentries"] == row["replans"] == 0, name
