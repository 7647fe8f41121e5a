"""Host arrays on their way to the GPU: pinned slots, their order, and runs side by side."""

import json

import pytest

from tests.cuda.test_runs import on_fake_gpu  # noqa: F401  (a fixture)


def test_a_large_array_goes_through_the_slots_in_parts(on_fake_gpu):  # noqa: F811
    """4 slots of a MiB: the fifth part waits for the first to have been read, no part for all."""
    done, _ = on_fake_gpu("""
big = np.ones((400_000, 4), np.float32)  # 6.1 MiB
with rlx.load(model(), device="cuda") as s:
    s.run({"x": big}); s.run({"x": big})
    before = calls()
    s.run({"x": big})
    print(json.dumps(calls()[len(before):]))
""")
    used = json.loads(done.stdout)
    assert used.count("cuMemcpyHtoDAsync_v2") == 7
    assert used.index("cuGraphLaunch") > max(i for i, c in enumerate(used)
                                             if c == "cuMemcpyHtoDAsync_v2")
    assert used.count("cuEventSynchronize") == 3  # parts 5 to 7
    assert used.count("cuStreamSynchronize") == 1  # for the result
    assert not [c for c in used if "Alloc" in c]


def test_the_bytes_arrive_whatever_their_size(on_fake_gpu):  # noqa: F811
    done, _ = on_fake_gpu("""
import ctypes
rng = np.random.default_rng(0)
with rlx.load(model(), device="cuda") as s:
    for rows in (3, 65_536, 65_537, 400_001, 3, 131_072):
        given = rng.standard_normal((rows, 4), np.float32)
        at = len(calls())
        s.run({"x": given})
        parts = [c.split(":") for c in calls()[at:] if c.startswith("to:")]
        parts = [(int(a), int(n)) for _, a, n in parts if int(n) != 64]  # the weight
        got = b"".join(ctypes.string_at(a, n) for a, n in parts)
        print(got == given.tobytes())
""", FAKE_CUDA_COPIES="1")
    assert done.stdout.split() == ["True"] * 6


@pytest.mark.parametrize("how", ["threads", "run_async"])
def test_a_run_uploads_while_another_waits_for_the_device(on_fake_gpu, how):  # noqa: F811
    """The device is "busy" until both runs have uploaded: one after the other would never end."""
    done, calls = on_fake_gpu(f"""
import threading
from collections import Counter
s = rlx.load(model(), device="cuda")
s.run({{"x": x}}); s.run({{"x": x}})
uploaded = Counter(calls())["cuMemcpyHtoDAsync_v2"]
os.environ["FAKE_CUDA_MEET"] = str(uploaded + 2)
found = []
if {how!r} == "threads":
    threads = [threading.Thread(target=lambda: found.append(s.run({{"x": x}}))) for _ in range(2)]
    for t in threads: t.start()
    for t in threads: t.join()
else:
    found = [f.result() for f in [s.run_async({{"x": x}}) for _ in range(2)]]
print(len(found))
""")
    assert done.stdout.split() == ["2"], done.stderr


def test_a_weight_that_cannot_be_copied_fails_its_own_sessions_only(on_fake_gpu):  # noqa: F811
    """Those of another model go on, and the same model can be loaded again."""
    done, _ = on_fake_gpu("""
def runs(session):
    try:
        return session.run({"x": there})["y"].shape == (3, 4)
    except rlx.Error:
        return False
onnx.save(model(5), "m.onnx")
before = rlx.load(model(3), device="cuda")
there = before.run({"x": x}, outputs="device")["y"]  # so that weights are all that is copied
os.environ["FAKE_CUDA_FAIL"] = "cuMemcpyHtoDAsync_v2:2"  # out of memory
failed = rlx.load("m.onnx", device="cuda")
print("failing", runs(failed))
del os.environ["FAKE_CUDA_FAIL"]
print("still", runs(failed))
print("before", runs(before))
print("other", runs(rlx.load(model(7), device="cuda")))
print("again", runs(rlx.load("m.onnx", device="cuda")))
print("still", runs(failed))
del failed
import gc; gc.collect()
print("again", runs(rlx.load("m.onnx", device="cuda")))
""".replace('"m.onnx"', 'os.environ["FAKE_CUDA_LOG"] + ".onnx"'))
    assert done.stdout.splitlines() == [
        "failing False", "still False", "before True", "other True", "again True", "still False",
        "again True"]


def test_new_values_mend_a_weight_that_could_not_be_copied(on_fake_gpu):  # noqa: F811
    done, _ = on_fake_gpu("""
there = rlx.load(model(5), device="cuda").run({"x": x}, outputs="device")["y"]
session = rlx.load(model(), device="cuda")
os.environ["FAKE_CUDA_FAIL"] = "cuMemcpyHtoDAsync_v2:2"
try: session.run({"x": there})
except rlx.Error as error: print(type(error).__name__)
del os.environ["FAKE_CUDA_FAIL"]
session.update_weights({"w": np.ones((4, 4), np.float32)})
print(session.run({"x": there})["y"].shape)
""")
    assert done.stdout.splitlines() == ["MemoryLimitError", "(3, 4)"]
