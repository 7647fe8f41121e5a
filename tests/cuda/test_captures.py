"""Streams that another library captures into a graph of its own, and streams that are gone.

In global mode, which is CUDA's default and PyTorch's, a capture is spoiled by whatever thread asks
CUDA for memory, for events or for a module: the fake driver refuses and logs it as a real one does.
"""

import pytest

from tests.cuda.test_runs import on_fake_gpu as on_gpu_with_model  # noqa: F401
from tests.cuda.test_user_launch import INTERFACE, on_fake_gpu  # noqa: F401

BEGIN = """
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
S = 4096
def capture(stream=S): os.environ["FAKE_CUDA_CAPTURED"] = str(stream)
def end(): del os.environ["FAKE_CUDA_CAPTURED"]
"""
REFUSED = """
def refused(run, *words):
    try:
        run()
    except rlx.InputError as error:
        assert all(word in str(error) for word in words), str(error)
    else:
        raise AssertionError("was taken")
"""


def not_spoiled(calls):
    assert not [line for line in calls if line.startswith("spoils")]


def test_a_captured_launch_lives_with_the_graph(on_fake_gpu):  # noqa: F811
    _, calls = on_fake_gpu(BEGIN + """
def launched():
    lent = Lent(rlx.cuda.to_device(x.numpy()))
    alive.append(weakref.ref(lent))
    return k(1, 1, y, lent, *good[2:], shared=60_000, stream=S)
alive = []
k(1, 1, *good)                              # is going on when the capture begins
capture()
launches = [launched(), launched()]
for ask in (launches[0].done, launches[1].synchronize):
    refused(rlx.InputError, ask, "'mix'", "captured", "graph")
end()
del launches, ask
k(1, 1, *good).synchronize()
gc.collect()
assert all(ref() for ref in alive)
driver.fake_cuda_drop_graph()
assert all(ref() for ref in alive)          # CUDA's thread must not wait for Python's lock
k(1, 1, *good)
gc.collect()
assert not any(ref() for ref in alive)
""")
    not_spoiled(calls)
    assert calls.count("cuGraphRetainUserObject") == 2


def test_a_kernel_is_loaded_and_used_beside_a_capture(on_fake_gpu):  # noqa: F811
    """On other streams, with arrays that come and go: what others capture is not ours to spoil."""
    _, calls = on_fake_gpu(BEGIN + """
import threading
capture()
def work():
    other = rlx.cuda.compile(SOURCE, "array<float>")
    other(1, 1, rlx.cuda.to_device(np.ones(1 << 20, np.float32))).synchronize()
    k(1, 1, *good, stream=8192).synchronize()
    rlx.empty_cache()
thread = threading.Thread(target=work)
thread.start(); thread.join()
work()
end()
""")
    not_spoiled(calls)
    assert "cuMemFree_v2" in calls and "cuMemAlloc_v2" in calls


@pytest.mark.parametrize("failing", ["cuUserObjectCreate", "cuGraphRetainUserObject",
                                     "cuStreamGetCaptureInfo_v2"])
def test_a_capture_that_cannot_keep_operands_launches_nothing(on_fake_gpu, failing):  # noqa: F811
    _, calls = on_fake_gpu(BEGIN + """
k(1, 1, *good).synchronize()
lent = Lent(rlx.cuda.to_device(x.numpy()))
alive = weakref.ref(lent)
capture()
refused(rlx.DeviceError, lambda: k(1, 1, y, lent, *good[2:], stream=S), "mix", "FAKE")
end()
del lent
k(1, 1, *good).synchronize()
gc.collect()
assert not alive()
""", FAKE_CUDA_FAIL=f"{failing}:999")
    assert calls.count("cuLaunchKernelEx") == 2


def test_a_capture_waits_for_nothing_outside_it(on_fake_gpu):  # noqa: F811
    """What was put on another stream is there when the capture's graph runs: the host waits."""
    _, calls = on_fake_gpu(BEGIN + INTERFACE + """
capture()
k(1, 1, Interface(y, stream=8192), *good[1:], stream=S)
refused(rlx.InputError, lambda: k(1, 1, Interface(y, stream=S), *good[1:]), "captured", "graph")
k(1, 1, *good)
end()
k(1, 1, Interface(y, stream=S), *good[1:])
""")
    not_spoiled(calls)
    assert calls.count("synchronizes:8192") == 1
    assert [line for line in calls if line.startswith("waits")] == ["waits:1"]


def test_a_run_on_a_captured_stream_is_refused(on_gpu_with_model):  # noqa: F811
    done, calls = on_gpu_with_model(BEGIN + REFUSED + """
s = rlx.load(model(), device="cuda")
expected = s.run({"x": x})["y"]
capture()
refused(lambda: s.run({"x": x}, stream=S), "stream is being captured", "mode='graph'")
s.run({"x": x})                             # on a stream of its own
s.run({"x": x}, outputs="device", stream=8192)
end()
s.run({"x": x}, stream=S)
""")
    not_spoiled(calls)


@pytest.mark.parametrize("mode", ["graph", "stream", "multistream", "eager"])
def test_models_load_and_run_beside_a_capture(on_gpu_with_model, mode):  # noqa: F811
    done, calls = on_gpu_with_model(BEGIN + f"""
capture()
for rows in (3, 3, 3, 500_000):
    with rlx.load(model(), device="cuda", mode={mode!r}) as s:
        for _ in range(3):
            s.run({{"x": np.ones((rows, 4), np.float32)}}, outputs="device")
    rlx.empty_cache()
end()
""")
    not_spoiled(calls)
    assert calls["cuMemFree_v2"] and calls["cuLaunchKernelEx"]


@pytest.mark.parametrize("outputs", ["host", "device"])
def test_a_stream_may_be_captured_or_gone_after_a_run(on_gpu_with_model, outputs):  # noqa: F811
    """The next run comes after what was put on it, without asking for it again."""
    done, calls = on_gpu_with_model(BEGIN + f"""
s = rlx.load(model(), device="cuda")
def run(**options):
    before = len(calls())
    s.run({{"x": x}}, outputs={outputs!r}, **options)
    return [c for c in calls()[before:] if c.startswith(("records:", "waits:"))]
run(stream=S)
capture()
for _ in range(3): found = run(stream=8192)
print(*found)
end()
driver.fake_cuda_destroy_stream(ctypes.c_void_p(8192))
for _ in range(3): print(*run(stream=S))
driver.fake_cuda_destroy_stream(ctypes.c_void_p(S))
s.close()
""")
    not_spoiled(calls)
    during, *later = done.stdout.splitlines()
    assert during == "waits:8192 records:8192"
    for line in later:  # one of them records a graph, on the stream of the Session
        assert line.startswith("waits:4096") and line.endswith("records:4096")
        assert "8192" not in line


def test_a_capture_that_blocks_the_default_stream_is_named(on_fake_gpu):  # noqa: F811
    """CuPy's streams do so unless told otherwise; `x` was made on the default stream."""
    _, calls = on_fake_gpu(BEGIN + """
os.environ["FAKE_CUDA_CAPTURE_BLOCKS"] = "1"
capture()
refused(rlx.InputError, lambda: k(1, 1, y, x, *good[2:], stream=S), "default stream",
        "non-blocking")
end()
k(1, 1, *good).synchronize()
""")
    not_spoiled(calls)
