"""Speed of small things, onnxruntime beside rlx in the same run: call overhead, chains, binding."""

import time

import numpy as np
import onnx
import onnxruntime
import pytest

import models
import rlx
from tests.bench import cases

pytestmark = pytest.mark.bench


def test_add_of_four_elements_takes_half_of_onnxruntimes_time():
    pair = cases.add()
    pair.check()
    assert pair.ratio(rounds=30, calls=200) <= 0.5


@pytest.mark.parametrize("count", [4, 1000])
def test_chain_of_300_elementwise_ops_is_one_or_two_steps(count):
    pair = cases.chain(count)
    pair.check()
    assert pair.ratio(rounds=30, calls=20) <= 0.5
    steps = sum(len(row["steps"]) for row in pair.session.explain())
    assert steps <= 2


@pytest.fixture(scope="module")
def bert():
    with rlx.load(models.BUILDERS["bert-base"].build()) as session:
        yield session


def test_binding_bert_base_takes_less_than_a_millisecond(bert):
    """At a new shape, without the creation of library primitives, which is counted apart."""
    module, best = models.BUILDERS["bert-base"], np.inf
    bert.run(module.inputs(1, 8))
    for length in (9, 10, 11, 12, 13):
        before = bert.counters()
        bert.run(module.inputs(1, length))
        after = bert.counters()
        assert after["plans"] == before["plans"] + 1
        best = min(best, (after["bind_ns"] - before["bind_ns"]) / 1e6)
        print(f"bind {best:.3f} ms, creation "
              f"{(after['creation_ns'] - before['creation_ns']) / 1e6:.3f} ms")
    assert best < 1


def test_first_run_at_a_new_length_takes_no_longer_than_onnxruntimes(bert):
    """The best of three medians over lengths: a length is new only once, other work disturbs."""
    module = models.BUILDERS["bert-base"]
    other = onnxruntime.InferenceSession(module.build().SerializeToString(),
                                         providers=["CPUExecutionProvider"])
    calls = [bert.run, lambda given: other.run(None, given)]
    for call in calls:
        call(module.inputs(1, 16))
    medians = []
    for first in (17, 18, 19):
        found = []
        for length in range(first, 129, 11):
            given, times = module.inputs(1, length), []
            for call in calls:
                time.sleep(0.2)  # until the other's threads no longer spin on a core
                begin = time.perf_counter()
                call(given)
                times.append(time.perf_counter() - begin)
            found.append(times[0] / times[1])
        print("ratios", [round(ratio, 2) for ratio in found])
        medians.append(np.median(found))
    assert min(medians) <= 1.0


MEMORY = """
import numpy, rlx
def peak():
    return int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1]) << 10
before = peak()
session = rlx.load(PATH)
session.run(dict(numpy.load(INPUTS)))
print(peak() - before, session.counters()["arena_bytes"])
"""


def test_peak_memory_of_loading_bert_base(tmp_path, fresh_python):
    """Weights, packed copies counted, arena, and at most 100 MB beside them."""
    module = models.BUILDERS["bert-base"]
    path, feeds = tmp_path / "bert.onnx", tmp_path / "inputs.npz"
    onnx.save(module.build(), path)
    np.savez(feeds, **module.inputs(1, 16))
    code = MEMORY.replace("INPUTS", repr(str(feeds))).replace("PATH", repr(str(path)))
    peak, arena = map(int, fresh_python(code).stdout.split())
    weights = path.stat().st_size
    print(f"peak {peak >> 20} MiB, weights {weights >> 20}, arena {arena >> 20}")
    assert peak <= weights + arena + 100e6
