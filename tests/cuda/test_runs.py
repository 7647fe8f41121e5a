"""Runs on a GPU that computes nothing: what the driver is asked for, when, and how errors come out.

The driver is fake_cuda.cpp: it logs each call and fails where a test says so.
"""

from collections import Counter
import json

import pytest

MODEL = """
import json, os
import numpy as np, onnx
from onnx import TensorProto as T, helper as h, numpy_helper
import rlx
def model(weight=3):
    w = numpy_helper.from_array(np.full((4, 4), weight, np.float32), "w")
    nodes = [h.make_node("MatMul", ["x", "w"], ["p"], "product"),
             h.make_node("Softmax", ["p"], ["y"], "rows")]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["n", 4])],
                         [h.make_tensor_value_info("y", T.FLOAT, ["n", 4])], [w])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9)
x = np.ones((3, 4), np.float32)
def calls():
    with open(os.environ["FAKE_CUDA_LOG"]) as file:
        return file.read().split()
"""


@pytest.fixture
def on_fake_gpu(python, fake_driver, fake_nvrtc, tmp_path):
    """Runs code after MODEL on the fake GPU; gives the process and the driver's calls."""
    log = tmp_path / "calls"

    def run(code, fails=False, before="", **env):
        log.write_text("")
        done = python(before + MODEL + code, fake_nvrtc, fails=fails, FAKE_CUDA_LOG=str(log),
                      LD_LIBRARY_PATH=str(fake_driver), **env)
        return done, Counter(log.read_text().split())

    return run


def test_the_second_run_is_recorded_and_later_ones_replay(on_fake_gpu):
    done, calls = on_fake_gpu("""
s = rlx.load(model(), device="cuda")
print(s.device)
for _ in range(6): s.run({"x": x})
print(s.counters()["recordings"])
""")
    assert done.stdout.split() == ["cuda:0", "1"]
    assert calls["cuStreamBeginCapture_v2"] == calls["cuGraphInstantiateWithFlags"] == 1
    assert calls["cuGraphLaunch"] == 5
    assert calls["cuLaunchKernelEx"] == 2 * 2  # walked once, recorded once


def test_results_that_are_dropped_come_to_the_same_address_again(on_fake_gpu):
    """However many blocks of their size are free: a recording is of fixed addresses."""
    done, _ = on_fake_gpu("""
s = rlx.load(model(), device="cuda")
big = np.ones((20000, 4), np.float32)
kept = [s.run({"x": big}, outputs="device") for _ in range(20)]
del kept
for _ in range(6): s.run({"x": big}, outputs="device")
print(s.counters()["recordings"])
""")
    assert done.stdout.split() == ["1"]


def test_stream_mode_launches_each_time(on_fake_gpu):
    _, calls = on_fake_gpu("""
s = rlx.load(model(), device="cuda", mode="stream")
for _ in range(6): s.run({"x": x})
""")
    assert calls["cuGraphLaunch"] == 0
    assert calls["cuLaunchKernelEx"] == 6 * 2


def test_a_repeated_run_allocates_nothing_on_the_device(on_fake_gpu):
    done, _ = on_fake_gpu("""
s = rlx.load(model(), device="cuda")
for _ in range(3): s.run({"x": x})
before = calls()
for _ in range(5): s.run({"x": x})
print(json.dumps(calls()[len(before):]))
""")
    used = Counter(json.loads(done.stdout))
    assert used == {"cuMemcpyHtoDAsync_v2": 5, "cuGraphLaunch": 5, "cuMemcpyDtoHAsync_v2": 5,
                    "cuStreamSynchronize": 5}


def test_sessions_share_the_weights_of_a_model(on_fake_gpu):
    done, _ = on_fake_gpu("""
used = lambda: rlx._core.cuda_statistics()[0]["used_bytes"]
m = model()
path = "m.onnx"
a = rlx.load(m, device="cuda"); a.run({"x": x}); one = used()
a.run({"x": x}); print(used() == one)
a.close(); print(used() < one)
""")
    assert done.stdout.split() == ["True", "True"]


def test_outputs_may_stay_on_the_device(on_fake_gpu):
    done, calls = on_fake_gpu("""
s = rlx.load(model(), device="cuda")
y = s.run({"x": x}, outputs="device")["y"]
print(y.shape, y.dtype, y.__dlpack_device__())
z = s.run({"x": y}, outputs="device")["y"]
print(z.numpy().shape, z.__cuda_array_interface__["typestr"])
""")
    assert done.stdout.split("\n")[:2] == ["(3, 4) float32 (2, 0)", "(3, 4) <f4"]
    assert calls["cuMemcpyDtoHAsync_v2"] == 1  # numpy()'s


@pytest.mark.parametrize("outputs", ["gpu", "device"])
def test_device_outputs_need_a_gpu(python, outputs):
    done = python(MODEL + f'rlx.load(model(), device="cpu").run({{"x": x}}, outputs="{outputs}")',
                  fails=True)
    assert "InputError" in done.stderr and "outputs must be" in done.stderr


def test_a_failed_launch_names_the_call_and_the_node(on_fake_gpu):
    done, _ = on_fake_gpu("""
s = rlx.load(model(), device="cuda")
try:
    s.run({"x": x})
except rlx.DeviceError as error:
    print(error.node, "|", error)
s.run({"x": x})
""", FAKE_CUDA_FAIL="cuLaunchKernelEx:999:1", fails=True)
    assert done.stdout.startswith("product |")
    assert "cuLaunchKernelEx failed" in done.stdout


def test_a_lost_context_makes_every_session_stale(on_fake_gpu):
    done, _ = on_fake_gpu("""
other = rlx.load(model(5), device="cuda")
other.run({"x": x})
s = rlx.load(model(), device="cuda")
for session in (s, other):
    try:
        session.run({"x": x})
    except rlx.Error as error:
        print(type(error).__name__, error.remedy is not None, "ILLEGAL_ADDRESS" in str(error))
""", FAKE_CUDA_FAIL="cuLaunchKernelEx:700:3")
    assert done.stdout.splitlines() == ["DeviceError True True", "StaleHandleError True True"]


def test_a_full_gpu_is_a_memory_error(on_fake_gpu):
    done, _ = on_fake_gpu("""
try:
    rlx.run(model(), {"x": x}, device="cuda")
except rlx.MemoryLimitError as error:
    print(error)
""", FAKE_CUDA_FAIL="cuMemAlloc_v2:2:1")
    assert "CUDA_ERROR_OUT_OF_MEMORY" in done.stdout


def test_a_reset_makes_what_was_there_stale_and_begins_anew(on_fake_gpu):
    done, calls = on_fake_gpu("""
s = rlx.load(model(), device="cuda")
y = s.run({"x": x}, outputs="device")["y"]
try:
    rlx.reset("cuda")
except rlx.InputError:
    print("asks")
rlx.reset("cuda", force=True)
for call in (lambda: s.run({"x": x}), y.numpy, rlx.load(model(7), device="cuda").inputs.__len__):
    try:
        print(call())
    except rlx.StaleHandleError:
        print("stale")
print(rlx.run(model(9), {"x": x}, device="cuda")["y"].shape)
""")
    assert done.stdout.split("\n")[:5] == ["asks", "stale", "stale", "1", "(3, 4)"]
    assert calls["cuDevicePrimaryCtxReset_v2"] == 1


def test_a_forked_child_is_told_so(on_fake_gpu):
    done, _ = on_fake_gpu("""
s = rlx.load(model(), device="cuda")
s.run({"x": x})
pid = os.fork()
if pid == 0:
    try:
        s.run({"x": x})
    except rlx.DeviceError as error:
        print("forked" in str(error), flush=True)
    os._exit(0)
os.waitpid(pid, 0)
""")
    assert done.stdout.split() == ["True"]


def test_profile_takes_the_gpus_own_times(on_fake_gpu):
    done, calls = on_fake_gpu("""
s = rlx.load(model(), device="cuda")
s.run({"x": x})
p = s.profile({"x": x}, runs=2)
print(*(round(node.median * 1e3, 6) for node in p.nodes), [n.name for n in p.nodes])
path = os.environ["HOME"] + "/trace.json"
p.to_chrome(path)
events = json.load(open(path))["traceEvents"]
print([round(e["dur"]) for e in events if e.get("cat") in ("MatMul", "Softmax")])
print(max(e["args"]["bytes"] for e in events if e["name"] == "arena bytes") > 0)
""")
    # Each step takes the fake GPU one millisecond, by its events, in no time at all.
    times, spans, counted = done.stdout.splitlines()
    assert times == "1.0 1.0 ['product', 'rows']"
    assert spans == "[1000, 1000, 1000, 1000]" and counted == "True"
    assert calls["cuEventElapsedTime"] == 4  # of two steps in two runs


def test_multistream_forks_and_joins_inside_the_recording(on_fake_gpu):
    done, calls = on_fake_gpu("""
nodes = [h.make_node("MatMul", ["x", f"w{i}"], [f"p{i}"], f"product{i}") for i in range(3)]
nodes.append(h.make_node("Concat", ["p0", "p1", "p2"], ["y"], "all", axis=1))
ws = [numpy_helper.from_array(np.full((4, 4), i, np.float32), f"w{i}") for i in range(3)]
graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["n", 4])],
                     [h.make_tensor_value_info("y", T.FLOAT, ["n", 12])], ws)
m = h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9)
s = rlx.load(m, device="cuda", mode="multistream", streams=3)
for _ in range(5): s.run({"x": x})
print(s.counters()["recordings"])
""")
    assert done.stdout.split() == ["1"]
    assert calls["cuGraphLaunch"] == 4
    # Two lanes begin behind the first, and the join waits for both, in the walk and the recording.
    assert calls["cuStreamWaitEvent"] >= 2 * 4


def test_the_memory_that_was_planned_is_mapped_and_no_more(on_fake_gpu):
    """In granules of 2 MiB; a limit one byte below the plan refuses before anything is mapped."""
    done, calls = on_fake_gpu("""
big = np.ones((400_000, 4), np.float32)
with rlx.load(model(), device="cuda") as s:
    s.run({"x": big})
    s.run({"x": big})
    needed = max(block["offset"] + block["bytes"] for block in s.memory_plan())
mapped = [int(c.split(":")[1]) for c in calls() if c.startswith("mapped:")]
print(sum(mapped) == -(-needed // (2 << 20)) * (2 << 20), needed > 6_000_000)
before = len(calls())
with rlx.load(model(), device="cuda", memory_limit=needed - 1) as s:
    try:
        s.run({"x": big})
    except rlx.MemoryLimitError as error:
        print(str(needed) in str(error))
print([c for c in calls()[before:] if c.startswith(("mapped", "cuLaunch"))])
with rlx.load(model(), device="cuda", memory_limit=needed) as s:
    print(s.run({"x": big})["y"].shape)
""")
    assert done.stdout.split("\n")[:4] == ["True True", "True", "[]", "(400000, 4)"]
