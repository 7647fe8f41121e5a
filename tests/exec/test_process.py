"""An Executable in its process: threads, forks, allocations."""

from concurrent.futures import ThreadPoolExecutor
from itertools import count
import os
from pathlib import Path
import signal
import threading
import time

import numpy as np
import pytest

from rlx.ir.types import DType
from tests.exec.programs import add, executable, tensor
from tests.tolerance import tolerance

F32 = DType.FLOAT32


def layers(**options):
    """Matrix products and element steps over a dynamic batch."""
    weights = [np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)] * 3

    def build(b):
        x = tensor(b.graph, "x", F32, "n", 64)
        for w in weights:
            x = b.softmax(b.matmul(x, b.const(w)), -1)
        return {"y": x}

    return executable(build, **options)


def expected_layers(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    w = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64).astype(np.float64)
    for _ in range(3):
        x = x @ w
        e = np.exp(x - x.max(-1, keepdims=True))
        x = e / e.sum(-1, keepdims=True)
    return x


def batch(n: int) -> np.ndarray:
    return np.sin(np.arange(n * 64)).reshape(n, 64).astype(np.float32)


def test_threads_that_run_first_at_once_do_not_wait_for_each_other(fresh_python):
    """What the first run looks up is Python's, where another thread may go on: here it surely does.
    """
    assert fresh_python("""
import faulthandler, threading, time
faulthandler.dump_traceback_later(30, exit=True)
import numpy as np
from rlx.ir.types import DType
from tests.exec.test_process import batch, layers
executables = [layers(), layers()]
plain = DType.numpy
DType.numpy = property(lambda self: time.sleep(0.002) or plain.fget(self))
results = []
def work(exe): results.append(exe.run({"x": batch(3)})["y"])
threads = [threading.Thread(target=work, args=(exe,)) for exe in executables]
for t in threads: t.start()
for t in threads: t.join()
print(np.array_equal(*results))
""").stdout == "True\n"


def test_threads_share_an_executable():
    exe = layers()
    batches = [batch(n) for n in (1, 3, 8, 33)]
    expected = [expected_layers(x) for x in batches]

    def work(k: int) -> None:
        for r in range(20):
            i = (k + r) % len(batches)
            y = exe.run({"x": batches[i]})["y"]
            np.testing.assert_allclose(y, expected[i], **tolerance("rounded", "float32"))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [None] * 8
    assert exe.counters()["runs"] == 160


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_forked_child_runs():
    exe = layers()
    x = batch(33)
    y = exe.run({"x": x})["y"]
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        same = np.array_equal(exe.run({"x": x})["y"], y)
        os._exit(0 if same and exe.counters()["plans"] == 2 else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert np.array_equal(exe.run({"x": x})["y"], y) and exe.counters()["plans"] == 1


def await_team(tasks: Path = Path("/proc/self/task")) -> None:
    """Until all other threads sleep: one that has not begun yet will allocate when it does."""
    own, end = str(threading.get_native_id()), time.monotonic() + 10
    def states():
        return {state_of(task) for task in tasks.iterdir() if task.name != own}
    while awake := states() - {"S", None}:
        assert time.monotonic() < end, f"threads that do not sleep: {awake}"
        time.sleep(0.01)


def state_of(task: Path) -> str | None:
    """R, S, D ... of a thread, None of one that is gone."""
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # the latter between opening and reading
        return None


def test_awaiting_the_team_takes_no_notice_of_threads_that_are_gone(tmp_path):
    (tmp_path / "11").mkdir()                       # listed, and gone before it is read
    (tmp_path / "12").mkdir()
    (tmp_path / "12" / "stat").write_text("12 (a) b) S 1 2")
    await_team(tmp_path)


def test_awaiting_the_team_ends(tmp_path, monkeypatch):
    (tmp_path / "12").mkdir()
    (tmp_path / "12" / "stat").write_text("12 (busy) R 1 2")
    clock = count(0, 4)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    with pytest.raises(AssertionError, match="do not sleep: {'R'}"):
        await_team(tmp_path)


COUNT = """
import ctypes, numpy as np
from tests.exec.test_process import await_team, {make}
exe, feeds = {make}()
count = ctypes.CDLL(None)
out = exe.run(feeds)
for _ in range(50):
    exe.run(feeds, out)
await_team()
count.count_malloc_start()
for _ in range(10):
    exe.run(feeds, out)
print(count.count_malloc_stop())
"""


def tiny_case():
    x = np.ones(4, np.float32)
    return add(4), {"a": x, "b": x}


def layers_case():
    return layers(), {"x": batch(33)}


def chain_case():
    def build(b):
        x = tensor(b.graph, "x", F32, "n")
        return {"y": b.reduce("sum", b.softmax(b.scalar("neg", x), 0), (0,))}

    return executable(build), {"x": np.ones(1 << 16, np.float32)}


@pytest.mark.parametrize("case", ["tiny_case", "layers_case", "chain_case"])
def test_repeated_run_allocates_nothing(case, count_mallocs):
    assert int(count_mallocs(COUNT.format(make=case))) == 0


ENDING = """
import threading, time
from tests.exec.test_process import batch, layers
run = layers().run
def work():
    while True:
        run({"x": batch(200)})
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
print("end", flush=True)
"""


def test_the_process_ends_while_threads_run(fresh_python):
    for _ in range(3):
        assert fresh_python(ENDING).stdout == "end\n"
