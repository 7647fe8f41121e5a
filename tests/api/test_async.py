"""Session.run_async gives Futures: results, errors, awaiting, cancelling, after a fork."""

import asyncio
from concurrent import futures
import os
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import rlx
from rlx import background
from tests.ort.material import sums

X = np.ones((2, 3), np.float32)


@pytest.fixture
def session():
    with rlx.Session(sums(), device="cpu") as opened:
        yield opened


def test_a_future_has_the_result(session):
    many = [session.run_async({"x": X * k}) for k in range(32)]
    assert all(isinstance(future, futures.Future) for future in many)
    for k, future in enumerate(many):
        np.testing.assert_array_equal(future.result(60)["y"], session.run({"x": X * k})["y"])
    assert futures.wait(many).not_done == set()


def test_a_future_has_the_error(session):
    future = session.run_async({"x": X.astype(np.float64)})
    with pytest.raises(rlx.InputError, match="'x'"):
        future.result(60)


def test_a_future_can_be_awaited(session):
    async def both():
        first, second = await asyncio.gather(session.run_async({"x": X}),
                                             session.run_async({"x": 2 * X}))
        with pytest.raises(rlx.InputError):
            await session.run_async({})
        return first["y"], (await session.run_async({"x": X}))["y"], second["y"]

    first, again, second = asyncio.run(both())
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(second - first, X)


def test_out_is_filled(session):
    out = {"y": np.zeros((2, 3), np.float32)}
    assert session.run_async({"x": X}, out).result(60)["y"] is out["y"]
    np.testing.assert_array_equal(out["y"], session.run({"x": X})["y"])


def test_what_has_not_begun_can_be_cancelled():
    gate = threading.Event()
    busy = [background.submit(gate.wait) for _ in range(len(os.sched_getaffinity(0)))]
    waiting = background.submit(lambda: "never")
    assert waiting.cancel() and waiting.cancelled()
    gate.set()
    assert all(future.result(60) for future in busy)
    with pytest.raises(futures.CancelledError):
        waiting.result(60)


def test_where_outputs_stay_is_passed_on(session):
    assert session.run_async({"x": X}, outputs="host").result(60)["y"].shape == (2, 3)
    for where in ("device", "nowhere"):
        with pytest.raises(rlx.InputError) as told:
            session.run({"x": X}, outputs=where)
        future = session.run_async({"x": X}, outputs=where)
        with pytest.raises(rlx.InputError, match=str(told.value)):
            future.result(60)


def test_the_stream_is_passed_on(session, monkeypatch):
    """As its handle, taken before the call returns: the stream may be another's soon."""
    seen = []
    monkeypatch.setattr(rlx.Session, "device", "cuda:0")
    monkeypatch.setattr(session, "run", lambda *_, **given: seen.append(given["stream"]))
    stream = SimpleNamespace(cuda_stream=7)
    session.run_async({"x": X}, stream=stream).result(60)
    session.run_async({"x": X}).result(60)
    assert seen == [7, None]
    with pytest.raises(rlx.InputError, match="stream is no stream"):
        session.run_async({"x": X}, stream="s")


def test_a_stream_needs_a_gpu(session):
    for run in (session.run, session.run_async):
        with pytest.raises(rlx.InputError, match="a stream is for runs on a GPU"):
            run({"x": X}, stream=7)


def test_a_closed_session_says_so(session):
    session.close()
    with pytest.raises(rlx.InputError, match="closed"):
        session.run_async({"x": X})


def test_a_forked_child_has_threads_of_its_own(fresh_python):
    shown = fresh_python("""
import os
from rlx import background
assert background.submit(lambda: 1).result(60) == 1
child = os.fork()
if child == 0:
    os._exit(background.submit(lambda: 7).result(60))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""").stdout
    assert shown == "7\n"
