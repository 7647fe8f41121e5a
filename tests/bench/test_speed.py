"""Times the cases with pytest-benchmark, and holds their ratios to onnxruntime's to a table.

`pytest tests/bench/test_speed.py -m bench --benchmark-group-by=param:case` prints both engines side
by side. baseline.json keeps the ratio rlx / onnxruntime of each case; a change that makes one
better stores it by `python -m tests.bench [CASE ...]` on a quiet machine.
"""

import pytest

from tests.bench.baseline import CASES, SLACK, measure, stored

pytestmark = pytest.mark.bench
SMALL = [pytest.param(name, id=name) for name, case in CASES.items() if not case.large]
LARGE = [pytest.param(name, id=name, marks=pytest.mark.slow)
         for name, case in CASES.items() if case.large]


@pytest.mark.parametrize("engine", ["rlx", "onnxruntime"])
@pytest.mark.parametrize("case", SMALL + LARGE)
def test_time(benchmark, case, engine):
    pair = CASES[case].make()
    pair.check()
    benchmark(getattr(pair, engine))


@pytest.mark.parametrize("case", SMALL + LARGE)
def test_ratio_keeps_to_the_baseline(case):
    pair = CASES[case].make()
    pair.check()
    assert measure(case, pair) <= stored()[case] * SLACK


def test_every_case_has_a_baseline():
    assert stored().keys() == CASES.keys()
