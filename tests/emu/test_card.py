"""What the host does for a GPU, with values: networks on the emulated card, which is as a real one
but for its speed (cpp/emu/card.h)."""

from concurrent.futures import ThreadPoolExecutor
import subprocess
import sys

import numpy as np
import pytest

import rlx
from tests.api.toys import F, I, arange, model, node, value
from tests.emu.case import emulated
from tests.gpu.test_networks import load, truth_of
from tests.models.test_builders import SIZES, inputs
from tests.tolerance import assert_network_output

CARD = "emu:card"
NAMES = pytest.mark.parametrize("name", [
    "resnet50", "mobilenet_v2", "bert-base", "gpt2", "vit-b16", "llama", "tagger",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("unet", "yolo"))])


@pytest.fixture(autouse=True)
def card():
    emulated(CARD)


@NAMES
@pytest.mark.parametrize("mode", ["graph", "multistream"])
def test_a_network_equals_float64_and_launching_bit_for_bit(name, mode):
    """At two sizes in turns: walked, recorded, replayed."""
    with load(CARD, name, mode=mode) as session, load(CARD, name, mode="stream") as stream:
        for seed, size in enumerate(SIZES[name] * 2):
            given = inputs(name, size, seed)
            truth, launched = truth_of(name, given), stream.run(given)
            for _ in range(3):
                for key, y in session.run(given).items():
                    np.testing.assert_array_equal(y, launched[key], err_msg=key)
                    assert_network_output(y, truth[key], "float32", key)
        assert session.counters()["recordings"] >= 2 > stream.counters()["recordings"] == 0


def test_threads_share_a_session():
    given = [inputs("bert-base", size, seed) for seed, size in enumerate(SIZES["bert-base"])]
    with load(CARD, "bert-base") as session, ThreadPoolExecutor(4) as threads:
        wanted = [session.run(feeds) for feeds in given]
        for k, found in enumerate(threads.map(session.run, given * 8)):
            for key, y in found.items():
                np.testing.assert_array_equal(y, wanted[k % 2][key])


def test_repeated_runs_allocate_nothing():
    given = inputs("bert-base", SIZES["bert-base"][0])
    with load(CARD, "bert-base") as session:
        for _ in range(3):
            session.run(given)
        before = session.counters()
        session.run(given)
        after = session.counters()
    assert after["dynamic_allocations"] == before["dynamic_allocations"]
    assert after["arena_bytes"] == before["arena_bytes"]


def test_what_is_prepared_waits_for_the_arrays_it_is_given():
    """A shape that another session has not finished computing."""
    with (rlx.load(model([node("Add", "a one", "s")], [value("a", I, [2])], [value("s")],
                         {"one": np.array(1)}), device=CARD) as first,
          rlx.load(model([node("Reshape", "x s", "y")], [value("x", F, ["n"]), value("s", I, [2])],
                         [value("y")]), device=CARD) as second):
        for shape in ((3, 4), (2, 6), (12, 1)):
            s = first.run({"a": np.array(shape) - 2}, outputs="device")["s"]
            s = first.run({"a": s}, outputs="device")["s"]  # is not waited for
            second.prepare({"x": arange(12), "s": s})
            before = second.counters()["plans"]
            y = second.run({"x": arange(12), "s": s})["y"]
            np.testing.assert_array_equal(y, arange(12).reshape(shape))
            assert second.counters()["plans"] == before


def test_the_host_cannot_read_what_lies_on_the_card():
    """Else the other tests here would see nothing."""
    done = subprocess.run([sys.executable, "-c", """
import ctypes, numpy as np, rlx
from tests.api.toys import add, arange
with rlx.load(add(), device="emu:card") as session:
    y = session.run({"a": arange(3, 4), "b": arange(3, 4)}, outputs="device")["y"]
    assert (y.numpy() == 2 * arange(3, 4)).all()
    print("read", flush=True)
    ctypes.string_at(y.__cuda_array_interface__["data"][0], 4)
"""], capture_output=True, text=True)
    assert done.stdout.split() == ["read"] and done.returncode < 0
