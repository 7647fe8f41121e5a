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
