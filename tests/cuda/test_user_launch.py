"""Launches of users' kernels on a fake driver: what reaches it, what is refused before, what lives.

NVRTC is real, since the types of parameters are its work; kernels do nothing.
"""

import json

import pytest

from tests.cuda.test_user_compile import NVRTC, REFUSED, path_of

SOURCE = r'''
struct Pair { double a; int b; };
extern "C" __global__ void mix(float* y, const int* x, unsigned char c, float f, bool b, Pair p,
                               unsigned long long n, const void* any, short s) {}
template <class T> __global__ void one(T x) {}
template <class T> __global__ void array(T* x) {}
'''
SIZES = [8, 8, 1, 4, 1, 16, 8, 8, 2]
BEGIN = f"""
import gc, os, pathlib, struct, sys, weakref
import numpy as np, rlx
SOURCE = {SOURCE!r}
y = rlx.cuda.to_device(np.arange(6, dtype=np.float32).reshape(2, 3))
x = rlx.cuda.to_device(np.arange(4, dtype=np.int32))
pair = np.array((1.5, 7), np.dtype([("a", "f8"), ("b", "i4")], align=True))[()]
k = rlx.cuda.compile(SOURCE, "mix")
good = [y, x, 200, 0.5, True, pair, 2**63, None, -3]
{REFUSED}class Lent:  # another library's array: DLPack, whose tensor lives as long as `inner`
    def __init__(self, inner): self.inner = inner
    def __dlpack_device__(self): return self.inner.__dlpack_device__()
    def __dlpack__(self, stream=None): return self.inner.__dlpack__(stream=stream)
"""


@pytest.fixture
def on_fake_gpu(python, fake_driver, tmp_path):
    """Runs code; gives its output and the driver's log, line by line."""
    path_of(NVRTC[13], "libnvrtc.so.13")

    def run(code, **env):
        log = tmp_path / "calls"
        done = python(BEGIN + code, LD_LIBRARY_PATH=str(fake_driver), FAKE_CUDA_LOG=str(log), **env)
        return done.stdout, log.read_text().split("\n")

    return run


def test_the_driver_gets_the_values(on_fake_gpu):
    out, calls = on_fake_gpu("""
k((3, 2), 64, *good, shared=1024).synchronize()
import json
print(json.dumps([a.__cuda_array_interface__["data"][0].to_bytes(8, "little").hex()
                  for a in (y, x)]))
print((1.5, 7) == struct.unpack("di4x", pair.tobytes()), k.arch)
""", FAKE_CUDA_PARAMS=",".join(map(str, SIZES)))
    pointers, facts = out.splitlines()
    assert facts == "True sm_90a"
    got = [line.removeprefix("param:") for line in calls if line.startswith("param:")]
    assert got[:2] == json.loads(pointers)
    # IEEE 754 of 0.5 and 1.5, two's complement of -3; the padding of a structure is free.
    assert got[2:5] == ["c8", "0000003f", "01"]
    assert got[5][:24] == "000000000000f83f" + "07000000"
    assert got[6:] == ["0000000000000080", "00" * 8, "fdff"]


@pytest.mark.parametrize("position, values, words", [
    (0, ["x", "rlx.cuda.to_device(np.zeros(2))"], ["argument 0 (float*)", "float32"]),
    (0, ["np.zeros(3, np.float32)"], ["argument 0", "does not lie on a GPU", "to_device"]),
    (0, ["5", "np.uint64(5)", "b'12345678'"], ["argument 0", "an array"]),
    (1, ["y"], ["argument 1 (int const*)", "int32", "float32"]),
    (2, ["256", "-1", "1.0", "True", "np.int8(1)", "'a'", "None", "y"],
     ["argument 2 (unsigned char)"]),
    (3, ["1e39", "10**400", "np.float64(1)", "True", "'1'", "1j", "np.zeros(1, np.float32)"],
     ["argument 3 (float)"]),
    (4, ["1", "np.uint8(1)"], ["argument 4 (bool)"]),
    (5, ["b'123'", "1.5", "np.float32(1)", "(1.5, 7)"], ["argument 5 (Pair)", "16"]),
    (6, ["2**64", "-1", "np.int64(1)"], ["argument 6 (unsigned long long)"]),
    (8, ["2**15", "-2**15 - 1"], ["argument 8 (short)", "-32768 to 32767"]),
])
def test_arguments_that_do_not_fit_are_refused_before_the_launch(
        on_fake_gpu, position, values, words):
    code = f"""
for value in ({", ".join(values)},):
    given = [*good]
    given[{position}] = value
    refused(rlx.InputError, lambda: k(1, 1, *given), "mix", *{words!r})
"""
    _, calls = on_fake_gpu(code)
    assert "cuLaunchKernelEx" not in calls


def test_other_counts_and_extents_are_refused_before_the_launch(on_fake_gpu):
    _, calls = on_fake_gpu("""
refused(rlx.InputError, lambda: k(1, 1), "9 (float*, int const*,", "0")
refused(rlx.InputError, lambda: k(1, 1, *good, 1), "10")
for grid in (0, (1, 2, 3, 4), (), "1", 1.5, True, (1, 65536), 2**31, 2**40, -1, None):
    refused(rlx.InputError, lambda: k(grid, 1, *good), "grid")
for block in (0, 513, (2, 512), (1, 1, 65), (1, 0), [2.0]):    # the fake kernel takes 512
    refused(rlx.InputError, lambda: k(1, block, *good), "block")
for shared in (-1, 227 * 1024 - 63, 2**31, 1.0, True):         # 64 are the kernel's own
    refused(rlx.InputError, lambda: k(1, 1, *good, shared=shared), "shared")
for stream in ("1", -1, True, 1.5, object()):
    refused(rlx.InputError, lambda: k(1, 1, *good, stream=stream), "stream")
""")
    assert "cuLaunchKernelEx" not in calls


def test_shapes_streams_and_shared_memory_that_fit(on_fake_gpu):
    _, calls = on_fake_gpu("""
class Torch: cuda_stream = 4711
class Core:
    def __cuda_stream__(self): return (0, 4712)
for grid, block in ((2**31 - 1, 512), ((1, 65535, 65535), [8, 1, 64]), ((np.int64(2),), (1, 2))):
    k(grid, block, *good)
for stream in (None, 0, 1, 4711, Torch(), Core()):
    k(1, 1, *good, stream=stream)
k(1, 1, *good, shared=227 * 1024 - 64)
""")
    assert calls.count("cuLaunchKernelEx") == 10
    assert calls.count("cuFuncSetAttribute") == 1
    # y is written by the default stream at first: another stream waits for it, and it for that.
    assert calls.count("cuStreamWaitEvent") > 0


def test_every_kind_of_array_and_number(on_fake_gpu):
    on_fake_gpu("""
import ml_dtypes
pairs = {"float": "f4", "double": "f8", "signed char": "i1", "unsigned char": "u1", "short": "i2",
         "unsigned short": "u2", "int": "i4", "unsigned int": "u4", "long": "i8",
         "unsigned long long": "u8", "bool": "?", "char": "i1", "size_t": "u8"}
for name, code in pairs.items():
    a = np.ones(3, code)
    of = rlx.cuda.compile(SOURCE, f"array<{name}>")
    for each in (rlx.cuda.to_device(a), Lent(rlx.cuda.to_device(a))):
        of(1, 1, each).synchronize()
    one = rlx.cuda.compile(SOURCE, f"one<{name}>")
    for number in (a[0], a[0].item()):
        one(1, 1, number)
    wrong = rlx.cuda.to_device(np.ones(3, "c8"))
    refused(rlx.InputError, lambda: of(1, 1, wrong), "complex64", np.dtype(code).name)
any_type = rlx.cuda.compile(SOURCE, "array<void>")
for dtype in ("c16", "f2", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, "?", "u2"):
    host = np.ones((2, 0) if dtype == "u2" else (2, 2)).astype(dtype)
    there = rlx.cuda.to_device(host)
    any_type(1, 1, there)
    np.testing.assert_array_equal(there.numpy(), host)
assert rlx.cuda.to_device(5.0).shape == () and rlx.cuda.to_device(5.0).numpy() == 5
for wrong in (["a"], [object()], [1, "b"]):
    refused(rlx.InputError, lambda: rlx.cuda.to_device(wrong))
class Interface:  # Numba's way
    def __init__(self, a, strides=None):
        self.a = a
        self.__cuda_array_interface__ = a.__cuda_array_interface__ | {"strides": strides}
k(1, 1, Interface(y), *good[1:]).synchronize()
refused(rlx.InputError, lambda: k(1, 1, Interface(y, (4, 8)), *good[1:]), "contiguous")
""")


def test_operands_live_until_the_kernel_has_ended(on_fake_gpu, tmp_path):
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


def test_a_module_is_loaded_once_and_its_facts_are_the_drivers(on_fake_gpu):
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


def test_after_a_reset_handles_and_arrays_are_stale(on_fake_gpu):
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


def test_what_the_gpu_reports_names_the_kernel(on_fake_gpu):
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


def test_launches_from_many_threads(on_fake_gpu):
    _, calls = on_fake_gpu("""
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool:
    for launch in pool.map(lambda _: k(1, 1, *good), range(200)):
        launch.synchronize()
""")
    assert calls.count("cuLaunchKernelEx") == 200
