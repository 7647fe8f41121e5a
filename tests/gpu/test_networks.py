"""Networks on a GPU: against float64, in each mode, from threads, without allocations."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import models
from rlx.importer.importer import import_model
from rlx.importer.reader import read
from rlx.ir.evaluate import evaluate_graph
import rlx
from tests.models.test_builders import SIZES, inputs, narrow
from tests.tolerance import assert_network_output

NAMES = pytest.mark.parametrize("name", models.BUILDERS)


def load(gpu, name, dtype=np.float32, **options):
    return rlx.load(narrow(name, dtype=np.dtype(dtype)), device=gpu, **options)


def truth_of(name, given):
    return evaluate_graph(import_model(read(narrow(name))), given, double=True)


@NAMES
def test_float32_without_tf32_equals_float64_at_two_sizes(gpu, name):
    with load(gpu, name, tf32=False) as session:
        for seed, size in enumerate(SIZES[name]):
            given = inputs(name, size, seed)
            for _ in range(3):  # walked, recorded, replayed
                for key, y in session.run(given).items():
                    assert_network_output(y, truth_of(name, given)[key], "float32", key)


@NAMES
def test_replay_equals_launching_bit_for_bit(gpu, name):
    given = inputs(name, SIZES[name][0])
    with (load(gpu, name) as graph, load(gpu, name, mode="stream") as stream,
          load(gpu, name, mode="multistream", streams=4) as several):
        runs = [session.run(given) for session in (graph, stream, several) for _ in range(3)]
        assert graph.counters()["recordings"] > 0 == stream.counters()["recordings"]
    for run in runs[1:]:
        for key, y in run.items():
            np.testing.assert_array_equal(y, runs[0][key], err_msg=key)


@NAMES
def test_half_is_near_float64(gpu, name):
    given = inputs(name, SIZES[name][0], dtype=np.dtype(np.float16))
    truth = evaluate_graph(import_model(read(narrow(name, dtype=np.dtype(np.float16)))), given,
                           double=True)
    with load(gpu, name, np.float16) as session:
        for _ in range(2):
            for key, y in session.run(given).items():
                assert_network_output(y, truth[key], "float16", key)


@pytest.mark.parametrize("name", ["resnet50", "bert-base", "gpt2"])
def test_repeated_runs_allocate_nothing(gpu, name):
    given = inputs(name, SIZES[name][0])
    with load(gpu, name) as session:
        for _ in range(3):
            session.run(given)
        before, counters = rlx._core.cuda_statistics(), session.counters()
        for _ in range(5):
            session.run(given)
        after, now = rlx._core.cuda_statistics(), session.counters()
    assert before == after
    changed = {k for k in now if now[k] != counters[k]}
    assert changed == {"runs"}


@pytest.mark.parametrize("name", ["resnet50", "bert-base"])
def test_threads_share_a_session(gpu, name):
    cases = [inputs(name, size, seed) for seed, size in enumerate(SIZES[name])]
    with load(gpu, name, tf32=False) as session:
        truth = [session.run(given) for given in cases]
        with ThreadPoolExecutor(4) as pool:
            found = pool.map(lambda i: session.run(cases[i % 2]), range(24))
            for i, run in enumerate(found):
                for key, y in run.items():
                    assert_network_output(y, truth[i % 2][key], "float32", key)


def test_digits_are_read_right(gpu):
    from pathlib import Path
    folder = Path(models.__file__).parent / "digits"
    held_out = np.load(folder / "held_out.npz")
    with rlx.load(folder / "digits.onnx", device=gpu) as session:
        images = held_out["images"][:, None].astype(np.float32)
        found = session.run({"image": images})["probabilities"].argmax(axis=1)
    assert (found == held_out["labels"]).mean() >= 0.97


def test_a_limit_one_byte_short_refuses_before_anything_runs(gpu):
    given = inputs("bert-base", SIZES["bert-base"][0])
    with load(gpu, "bert-base") as session:
        session.run(given)
        needed = session.counters()["arena_bytes"]
        planned = max(row["offset"] + row["bytes"] for row in session.memory_plan())
    assert planned <= needed
    with load(gpu, "bert-base", memory_limit=needed - 1) as session:
        with pytest.raises(rlx.MemoryLimitError):
            session.run(given)
