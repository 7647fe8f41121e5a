"""rlx.run and Sessions over time: the LRU, threads, forks, counters, reports."""

from concurrent.futures import ThreadPoolExecutor
import os
import threading

import numpy as np
import onnx
import pytest

import rlx
from rlx import api
from tests.api.toys import F, add, arange, model, node, value


def scaled(by: float) -> onnx.ModelProto:
    return model([node("Mul", "x s", "y")], [value("x", F, ["n"])], [value("y")],
                 {"s": np.float32(by)})


def test_models_come_in_every_form(tmp_path):
    proto = scaled(2)
    path = tmp_path / "m.onnx"
    onnx.save(proto, path)
    x = arange(3)
    with open(path, "rb") as file:
        for given in (proto, proto.SerializeToString(), str(path), path, file):
            np.testing.assert_array_equal(rlx.run(given, x)["y"], x * 2)


def test_run_keeps_sessions(tmp_path, monkeypatch):
    """A path is loaded once, and again when the file has changed; options are part of the key."""
    made = []

    class Counting(rlx.Session):
        def __init__(self, *args, **options):
            made.append(options)
            super().__init__(*args, **options)

    monkeypatch.setattr(api, "Session", Counting)
    path = tmp_path / "m.onnx"
    onnx.save(scaled(2), path)
    for _ in range(3):
        assert rlx.run(path, arange(3))["y"][2] == 4
    assert len(made) == 1
    rlx.run(path, arange(3), threads=1)
    assert len(made) == 2
    other = tmp_path / "other.onnx"
    onnx.save(scaled(3), other)
    os.replace(other, path)
    assert rlx.run(path, arange(3))["y"][2] == 6
    assert len(made) == 3
    serialized = scaled(5).SerializeToString()
    for _ in range(2):
        assert rlx.run(serialized, arange(3))["y"][2] == 10
    assert len(made) == 4


def test_run_sees_that_external_data_changed(tmp_path):
    """The model's own file stays as it is; data that changes in place has another time."""
    path, data = tmp_path / "m.onnx", tmp_path / "w.bin"
    made = model([node("Mul", "x w", "y")], [value("x", F, [4])], [value("y")],
                 {"w": np.full(4, 2, np.float32)})
    onnx.save(made, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    assert rlx.run(path, arange(4))["y"][3] == 6
    kept = api._session(api._identity(path), path, {})
    assert api._session(api._identity(path), path, {}) is kept
    before = os.stat(data)
    np.full(4, 3, np.float32).tofile(tmp_path / "new.bin")
    os.replace(tmp_path / "new.bin", data)
    os.utime(data, ns=(before.st_atime_ns, before.st_mtime_ns + 1000))
    assert rlx.run(path, arange(4))["y"][3] == 9
    assert api._session(api._identity(path), path, {}) is not kept
    os.remove(data)
    with pytest.raises(rlx.ModelError, match="w.bin"):
        rlx.run(path, arange(4))


def test_eight_threads_on_one_session():
    chain = model([node("MatMul", "x w", "a"), node("Relu", "a", "b"), node("MatMul", "b w", "c"),
                   node("Softmax", "c", "y")], [value("x", F, ["n", 16])], [value("y")],
                  {"w": np.random.default_rng(0).standard_normal((16, 16), np.float32)})
    session = rlx.load(chain)
    inputs = [np.random.default_rng(k).standard_normal((k % 5 + 1, 16), np.float32)
              for k in range(8)]
    expected = [session.run(x)["y"] for x in inputs]
    barrier = threading.Barrier(8)

    def work(k):
        barrier.wait(timeout=60)
        for step in range(20):
            at = (k + step) % 8
            np.testing.assert_array_equal(session.run(inputs[at])["y"], expected[at])

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, k) for k in range(8)]:
            done.result(timeout=120)


def test_first_runs_in_eight_threads():
    """Nobody has compiled or bound anything yet when all begin."""
    session = rlx.load(add((None, None)))
    barrier = threading.Barrier(8)

    def work(k):
        a = arange(k % 3 + 1, 4)
        barrier.wait(timeout=60)
        np.testing.assert_array_equal(session.run([a, a])["y"], a * 2)

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, k) for k in range(8)]:
            done.result(timeout=120)


FORK = """
import multiprocessing, numpy as np, rlx, sys
from tests.api.toys import *
big = model([node("MatMul", "x w", "a"), node("Relu", "a", "y")], [value("x", F, ["n", 256])],
            [value("y")], {"w": np.ones((256, 256), np.float32)})
session = rlx.load(big)
x = np.ones((64, 256), np.float32)
def check():
    y = session.run(x)["y"]
    assert (y == 256).all(), y
    assert (session.run(x[:3])["y"] == 256).all()
check()
child = multiprocessing.get_context("fork").Process(target=check)
child.start()
child.join(60)
assert child.exitcode == 0, child.exitcode
check()
"""


def test_a_forked_child_runs_what_its_parent_ran(fresh_python, source):
    fresh_python(FORK, PYTHONPATH=os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")]))


UPDATE = """
import numpy as np, os, rlx, signal, threading, time
from tests.api.toys import *
made = model([node("MatMul", "x w", "y")], [value("x", F, ["n", 1024])], [value("y")],
             {"w": np.ones((1024, 1024), np.float32)})
session = rlx.load(made)
x = np.ones((1024, 1024), np.float32)
def runs():
    while True:
        session.run(x)
threading.Thread(target=runs, daemon=True).start()
time.sleep(0.3)
pid = os.fork()
if pid == 0:
    signal.alarm(30)
    session.update_weights({"w": np.full((1024, 1024), 2, np.float32)})
    os._exit(0 if (session.run(x)["y"] == 2048).all() else 1)
assert os.waitpid(pid, 0)[1] == 0
os._exit(0)
"""


def test_a_forked_child_updates_weights_while_its_parent_runs(fresh_python, source):
    """An update waits for runs, but not for those of threads that the child lacks."""
    fresh_python(UPDATE, PYTHONPATH=os.pathsep.join([str(source),
                                                     os.environ.get("PYTHONPATH", "")]))


def test_counters_tell_what_was_done():
    with rlx.load(add()) as session:
        for n in (2, 3, 2, 2):
            session.run([arange(n, 4), arange(n, 4)])
        found = session.counters()
    assert found["imports"] == 1 and found["runs"] == 4 and found["plans"] == 2


def test_a_run_that_is_refused_is_not_counted():
    with rlx.load(add()) as session:
        session.run([arange(2, 4), arange(2, 4)])
        with pytest.raises(rlx.InputError):
            session.run([arange(2, 4), arange(2, 5)])
        assert session.counters()["runs"] == 1


def test_reports_after_a_run():
    chain = model([node("MatMul", "x w", "a"), node("Relu", "a", "y")], [value("x", F, ["n", 4])],
                  [value("y")], {"w": np.ones((4, 4), np.float32)})
    with rlx.load(chain) as session:
        session.run(arange(2, 4))
        rows = session.explain()
        assert any(row["prim"] == "MatMul" and row["rung"] for row in rows)
        assert all(block["bytes"] >= 0 for block in session.memory_plan())


def test_passes_can_be_switched_off():
    chain = model([node("MatMul", "x w", "a"), node("Relu", "a", "y")], [value("x", F, ["n", 4])],
                  [value("y")], {"w": np.ones((4, 4), np.float32)})
    rows = []
    for disable in ((), ("epilogues",)):
        with rlx.load(chain, disable=disable) as session:
            session.run(arange(2, 4))
            rows.append(len(session.explain()))
    assert rows[0] < rows[1]


def test_memory_limit():
    nodes = [node("MatMul", "x w", "a"), node("Softmax", "a", "b"), node("MatMul", "b w", "y")]
    weights = {"w": np.ones((64, 64), np.float32)}
    wide = model(nodes, [value("x", F, ["n", 64])], [value("y")], weights)
    with rlx.load(wide, memory_limit=1 << 16) as session:
        session.run(arange(4, 64))
        with pytest.raises(rlx.MemoryLimitError):
            session.run(arange(4096, 64))
        session.run(arange(4, 64))
