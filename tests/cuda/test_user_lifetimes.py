"""How long a launch of a user's kernel keeps what it works on, and what becomes of handles."""

import pytest

from tests.cuda.test_user_launch import on_fake_gpu  # noqa: F401


def test_operands_live_until_the_kernel_has_ended(on_fake_gpu, tmp_path):  # noqa: F811
    busy = tmp_path / "busy"
    busy.touch()
    on_fake_gpu(f"""
busy = pathlib.Path({str(busy)!r})
def launched():
    own, lent = rlx.cuda.to_device(np.zeros(2, np.float32)), Lent(rlx.cuda.to_device(x.numpy()))
    alive.extend(weakref.ref(each) for each in (lent, lent.inner) if hasattr(each, "__dict__"))
    return k(1, 1, own, lent, *good[2:])
alive = []
used = lambda: rlx._core.cuda_statistics()[0]["used_bytes"]
before = used()
launch = launched()
gc.collect()
assert not launch.done() and all(ref() for ref in alive) and alive
assert used() > before
del launch                             # nobody asks any more
launched()
gc.collect()
assert all(ref() for ref in alive) and len(alive) == 2
busy.unlink()
launch = k(1, 1, *good)                # a later launch lets go of what has ended
gc.collect()
assert not any(ref() for ref in alive) and used() == before
assert launch.done() and launch.done()
launch.synchronize()
busy.touch()
launch = launched()
launch.synchronize()                   # so does waiting
assert launch.done() and not any(ref() for ref in alive)
launched()
busy.unlink()
rlx.empty_cache()                      # and this
assert not any(ref() for ref in alive) and used() == before
async def awaited():
    await k(1, 1, *good)
import asyncio
asyncio.run(awaited())
""", FAKE_CUDA_BUSY=str(busy))


def test_a_module_is_loaded_once_and_its_facts_are_the_drivers(on_fake_gpu):  # noqa: F811
    _, calls = on_fake_gpu("""
again = rlx.cuda.compile(SOURCE, "mix")
other = rlx.cuda.compile(SOURCE, "mix", arch="sm_90a")      # what the default is here
assert k.key == again.key == other.key
for each in (k, again, other):
    each(1, 1, *good)
    assert (each.registers, each.shared_bytes, each.local_bytes, each.max_threads) == (
        21, 64, 8, 512)
    assert each.generation == 0
""")
    assert calls.count("cuModuleLoadDataEx") == 1
    assert calls.count("cuLaunchKernelEx") == 3


def test_after_a_reset_handles_and_arrays_are_stale(on_fake_gpu):  # noqa: F811
    _, calls = on_fake_gpu("""
launch = k(1, 1, *good)
compiled_only = rlx.cuda.compile(SOURCE, "mix", arch="sm_90")
rlx.reset("cuda", force=True)
refused(rlx.StaleHandleError, lambda: k(1, 1, *good), "mix")
new = rlx.cuda.compile(SOURCE, "mix")
assert (k.generation, new.generation, k.key == new.key) == (0, 1, True)
refused(rlx.StaleHandleError, lambda: new(1, 1, *good), "argument 0", "reset")
fresh = [rlx.cuda.to_device(np.zeros(2, t)) for t in ("f4", "i4")]
new(1, 1, *fresh, *good[2:]).synchronize()
compiled_only(1, 1, *fresh, *good[2:])                      # was never on the GPU that is gone
refused(rlx.StaleHandleError, lambda: k(1, 1, *fresh, *good[2:]))
refused(rlx.StaleHandleError, launch.synchronize, "mix")
""")
    assert calls.count("cuLaunchKernelEx") == 3


def test_what_the_gpu_reports_names_the_kernel(on_fake_gpu):  # noqa: F811
    on_fake_gpu("""
refused(rlx.DeviceError, lambda: k(1, 1, *good), "kernel 'mix'", "cuLaunchKernelEx", "FAKE")
""", FAKE_CUDA_FAIL="cuLaunchKernelEx:999:1")
    on_fake_gpu("""
launch = k(1, 1, *good)
refused(rlx.DeviceError, launch.synchronize, "kernel 'mix'", "ILLEGAL_ADDRESS")
refused(rlx.StaleHandleError, lambda: k(1, 1, *good))       # the context is lost
""", FAKE_CUDA_FAIL="cuEventSynchronize:700:1")
    on_fake_gpu("""
refused(rlx.DeviceError, lambda: rlx.cuda.compile(SOURCE, "one<int>"), "one<int>", "sm_90a",
        "Fake GPU", "cuModuleLoadDataEx")
""", FAKE_CUDA_FAIL="cuModuleLoadDataEx:209:2")


def test_launches_from_many_threads(on_fake_gpu):  # noqa: F811
    _, calls = on_fake_gpu("""
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool:
    for launch in pool.map(lambda _: k(1, 1, *good), range(200)):
        launch.synchronize()
""")
    assert calls.count("cuLaunchKernelEx") == 200


@pytest.mark.parametrize("failing, kept", [("cuEventRecord", True), ("cuLaunchKernelEx", False)])
def test_operands_live_while_a_kernel_may_run(on_fake_gpu, failing, kept):  # noqa: F811
    """Also one whose end cannot be recorded; one that did not begin needs nothing."""
    _, calls = on_fake_gpu(f"""
def used(): return rlx._core.cuda_statistics()[0]["used_bytes"]
z = rlx.cuda.to_device(np.ones(1 << 16, np.float32))
before = used()
os.environ["FAKE_CUDA_FAIL"] = "{failing}:1"
refused(rlx.DeviceError, lambda: k(1, 1, z, *good[1:]), "mix")
del os.environ["FAKE_CUDA_FAIL"]
del z
gc.collect()
rlx.empty_cache()
assert (used() == before) is {kept}
kept = used()
later = rlx.cuda.to_device(np.ones(1 << 16, np.float32))
k(1, 1, later, *good[1:])              # those that come later are let go of as ever
del later
gc.collect()
rlx.empty_cache()
assert used() == kept
""")
    assert calls.count("cuLaunchKernelEx") == 2


def test_an_awaited_launch_takes_no_thread(on_fake_gpu, tmp_path):  # noqa: F811
    busy = tmp_path / "busy"
    busy.touch()
    on_fake_gpu(f"""
import asyncio, threading
async def main():
    launches = [asyncio.ensure_future(wait(k(1, 1, *good))) for _ in range(20)]
    await asyncio.sleep(0.05)
    assert not any(launch.done() for launch in launches)
    assert not [t for t in threading.enumerate() if t.name.startswith("rlx-run")]
    os.remove({str(busy)!r})
    await asyncio.gather(*launches)
async def wait(launch): await launch
asyncio.run(main())
""", FAKE_CUDA_BUSY=str(busy))
