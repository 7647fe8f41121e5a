"""A repeated run takes memory for the arrays that it returns and for nothing else."""

import pytest

CODE = """
import ctypes, models, rlx
module = models.BUILDERS[{name!r}]
session, feeds = rlx.load(module.build()), module.inputs()
count = ctypes.CDLL(None)
out = session.run(feeds)
def counted(out):
    for _ in range(3):
        session.run(feeds, out)
    count.count_malloc_start()
    for _ in range(3):
        session.run(feeds, out)
    return count.count_malloc_stop()
print(counted(out), counted(None), 3 * len(out))
"""


@pytest.mark.parametrize("name", ["resnet50", "bert-base", "gpt2"])
def test_a_repeated_run_allocates_its_results_only(name, count_mallocs):
    """libdnnl and libgomp are counted too: every malloc of the process is."""
    with_out, without, returned = map(int, count_mallocs(CODE.format(name=name)).split())
    assert with_out == 0
    assert without <= returned


PROFILED = """
import ctypes, models, rlx
module = models.BUILDERS["resnet50"]
session, feeds = rlx.load(module.build(**module.NARROW)), module.inputs(**module.NARROW)
executable = session._settle(feeds)[1]
count = ctypes.CDLL(None)
def counted(runs):
    count.count_malloc_start()
    executable.profile(feeds, runs)
    return count.count_malloc_stop()
counted(50)  # until the team's threads have come: a thread allocates when it begins
print(counted(12) - counted(2), 10 * len(session.outputs))
"""


def test_a_profiled_run_allocates_no_more(count_mallocs):
    """Ten runs more take what their results take; rows of the report grow with no run."""
    more, returned = map(int, count_mallocs(PROFILED).split())
    assert more <= returned
