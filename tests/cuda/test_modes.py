"""Mode "eager", and what the options of a session and of the process change on a GPU."""

import json

import pytest

from tests.cuda.test_runs import on_fake_gpu  # noqa: F401  (a fixture)


def test_eager_mode_waits_for_each_step_and_records_nothing(on_fake_gpu):
    done, calls = on_fake_gpu("""
s = rlx.load(model(), device="cuda", mode="eager")
s.run({"x": x})
before = calls()
for _ in range(3): s.run({"x": x})
print(json.dumps(calls()[len(before):]))
""")
    assert calls["cuGraphLaunch"] == calls["cuStreamBeginCapture_v2"] == 0
    step = ["cuLaunchKernelEx", "cuStreamSynchronize"]
    assert json.loads(done.stdout) == 3 * [
        "cuMemcpyHtoDAsync_v2", *step, *step, "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize"]


@pytest.mark.parametrize("mode, step, node", [
    ("eager", 1, "product"), ("eager", 2, "rows"), ("stream", 1, "None"),
])
def test_an_error_that_comes_late_names_its_node_in_eager_mode(on_fake_gpu, mode, step, node):
    done, _ = on_fake_gpu(f"""
s = rlx.load(model(), device="cuda", mode={mode!r})
try:
    s.run({{"x": x}})
except rlx.DeviceError as error:
    print(error.node, error.op, "cuStreamSynchronize" in str(error))
""", FAKE_CUDA_FAIL=f"cuStreamSynchronize:999:{1 + step}")  # one is of the weights
    assert done.stdout.split() == [node, {"product": "MatMul", "rows": "Softmax"}.get(node, "None"),
                                   "True"]


@pytest.mark.parametrize("wanted, option, lines", [
    ("1", "", 1), ("0", "", 0), ("1", ", log_fallback=False", 0), ("0", ", log_fallback=True", 1),
])
def test_a_library_passed_over_is_said_once(on_fake_gpu, wanted, option, lines):
    done, _ = on_fake_gpu(f"""
s = rlx.load(model(), device="cuda"{option})
s.run({{"x": x}})
s.run({{"x": x[:2]}})
""", RLX_CUDA_LOG_FALLBACK=wanted)
    assert done.stderr.count("MatMul by a kernel of rlx: cuBLASLt cannot be used") == lines


def test_the_pool_is_bounded_by_the_variable_or_the_setting(on_fake_gpu):
    done, _ = on_fake_gpu("""
kept = lambda: rlx._core.cuda_statistics()[0]["kept_bytes"] > 1_000_000
big = np.ones((400_000, 4), np.float32)
def run():
    y = s.run({"x": big}, outputs="device")
    del y
s = rlx.load(model(), device="cuda")
run(); print(kept())
rlx.configure(arena_pool=1 << 30)
run(); print(kept())
rlx.configure(arena_pool=None)
print(kept())
""", RLX_CUDA_ARENA_POOL="0")
    assert done.stdout.split() == ["False", "True", "False"]


@pytest.mark.parametrize("failing, calls_of_it", [
    ("cuStreamEndCapture", 2), ("cuGraphInstantiateWithFlags", 1)])
def test_what_cannot_be_recorded_is_launched_on_the_callers_stream(on_fake_gpu, failing,
                                                                   calls_of_it):
    """Recording goes on a stream of the Context's own: the caller's must be gone back to."""
    done, calls = on_fake_gpu("""
s = rlx.load(model(), device="cuda")
def run():
    before = len(calls())
    s.run({"x": x}, outputs="device", stream=4096)
    return [c for c in calls()[before:] if c in ("waits:4096", "cuLaunchKernelEx", FAILING)]
run()
print(json.dumps(run()))
print(s.counters()["recordings"], FAILING in run())
""".replace("FAILING", repr(failing)), FAKE_CUDA_FAIL=f"{failing}:999")
    second, rest = done.stdout.splitlines()
    recorded = ["cuLaunchKernelEx"] * 2
    assert json.loads(second) == ["waits:4096", *recorded, *[failing] * calls_of_it, "waits:4096",
                                  *recorded]
    assert rest == "0 False"
