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


INTERFACE = """
class Interface:
    def __init__(self, a, **changed):
        self.a = a
        self.__cuda_array_interface__ = a.__cuda_array_interface__ | changed
"""


def test_the_stream_of_an_interface_is_waited_for(on_fake_gpu):
    """A launch is on CUDA's default stream, 1, unless told."""
    _, calls = on_fake_gpu(INTERFACE + """
for stream in (1, 2, 4096, None):
    k(1, 1, Interface(y, stream=stream), *good[1:]).synchronize()
for stream in (0, -1, "1"):
    refused(rlx.InputError, lambda: k(1, 1, Interface(y, stream=stream), *good[1:]),
            "names no stream")
""")
    ordered = [(a, b) for a, b in zip(calls, calls[2:]) if b.startswith("waits:")]
    assert ordered == [("records:2", "waits:1"), ("records:4096", "waits:1")]


def test_memory_of_another_gpu_is_refused(on_fake_gpu):
    on_fake_gpu(INTERFACE + """
refused(rlx.InputError, lambda: k(1, 1, Interface(y), *good[1:]), "another GPU", "cuda:1")
""", FAKE_CUDA_ORDINAL="1")


def test_what_is_read_only_is_not_written(on_fake_gpu):
    on_fake_gpu(INTERFACE + """
def read_only(a):
    return Interface(a, data=(a.__cuda_array_interface__["data"][0], True))
k(1, 1, y, read_only(x), *good[2:]).synchronize()
refused(rlx.InputError, lambda: k(1, 1, read_only(y), *good[1:]), "read-only")
""")


def test_programs_are_loaded_side_by_side(on_fake_gpu):
    """The GPU's driver goes on with one while it loads another."""
    on_fake_gpu("""
import concurrent.futures
os.environ["FAKE_CUDA_LOADS_MEET"] = "3"  # that of BEGIN is the first
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    list(pool.map(lambda name: rlx.cuda.compile(SOURCE, name), ["one<int>", "one<float>"]))
""")
