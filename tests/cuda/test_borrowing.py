"""Arrays of other libraries: DLPack with and without a version, array interfaces of any form."""

import pytest

from tests.cuda.test_user_launch import INTERFACE, on_fake_gpu  # noqa: F401

RAISES = """
def raises(kind, run, word):
    try:
        run()
    except kind as error:
        assert word in str(error), error
    else:
        raise AssertionError("was taken")
"""
# An array whose __dlpack__ answers in DLPack's form with a version (dlpack.h, version 1).
VERSIONED = """
import ctypes
api = ctypes.pythonapi
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
                ("type", ctypes.c_uint8 * 4), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)]
class Managed(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", Tensor)]
class Versioned:
    def __init__(self, a, flags=0, major=1, device=None):
        self.a, self.device = a, device or a.__dlpack_device__()
        self.old = a.__dlpack__()
        tensor = Tensor.from_address(api.PyCapsule_GetPointer(self.old, b"dltensor"))
        self.managed = Managed(major, 3, None, None, flags, tensor)
        self.managed.tensor.device[:] = self.device
        self.asked = []
    def __dlpack_device__(self): return self.device
    def __dlpack__(self, *, stream=None, max_version=None):
        self.asked.append((stream, max_version))
        return api.PyCapsule_New(ctypes.addressof(self.managed), b"dltensor_versioned", None)
"""


def test_the_version_is_asked_for_and_read_only_is_seen(on_fake_gpu):  # noqa: F811
    on_fake_gpu(VERSIONED + """
v = Versioned(y)
k(1, 1, v, *good[1:], stream=8192).synchronize()
assert v.asked == [(8192, (1, 0))]
k(1, 1, y, Versioned(x, flags=1), *good[2:]).synchronize()
refused(rlx.InputError, lambda: k(1, 1, Versioned(y, flags=1), *good[1:]), "read-only", "const")
refused(rlx.InputError, lambda: k(1, 1, Versioned(y, major=2), *good[1:]), "version", "1", "2")
k(1, 1, Versioned(y, device=(13, 0)), *good[1:]).synchronize()       # managed: of every GPU
refused(rlx.InputError, lambda: k(1, 1, Versioned(y, device=(2, 1)), *good[1:]), "another GPU")
class Old(Lent): pass                                                # knows no max_version
k(1, 1, Old(y), *good[1:]).synchronize()
""")


@pytest.mark.parametrize("body, words", [
    ("raise BufferError('is sparse')", ["does not lend it", "is sparse"]),
    ("return 5", ["gives no tensor"]),
    ("return y.__dlpack_device__()", ["gives no tensor"]),
])
def test_what_dlpack_does_not_lend(on_fake_gpu, body, words):  # noqa: F811
    on_fake_gpu(f"""
class Bad:
    def __dlpack_device__(self): return (2, 0)
    def __dlpack__(self, **request): {body}
refused(rlx.InputError, lambda: k(1, 1, Bad(), *good[1:]), "argument 0", *{words!r})
k(1, 1, *good).synchronize()
""")


def test_an_error_of_the_other_library_is_its_own(on_fake_gpu):  # noqa: F811
    on_fake_gpu(RAISES + """
class Bad:
    def __dlpack_device__(self): return (2, 0)
    def __dlpack__(self, **request): raise ZeroDivisionError("theirs")
raises(ZeroDivisionError, lambda: k(1, 1, Bad(), *good[1:]), "theirs")
class Interrupted(Bad):
    @property
    def __dlpack__(self): raise KeyboardInterrupt("theirs")
raises(KeyboardInterrupt, lambda: k(1, 1, Interrupted(), *good[1:]), "theirs")
class Half:
    def __dlpack_device__(self): return (2, 0)
refused(rlx.InputError, lambda: k(1, 1, Half(), *good[1:]), "argument 0", "no __dlpack__")
class Strange:
    def __dlpack_device__(self): return self.where
for where in (None, (), ("cuda", 0), "cuda", 2):
    Strange.where = where
    refused(rlx.InputError, lambda: k(1, 1, Strange(), *good[1:]), "__dlpack_device__", "malformed")
""")


@pytest.mark.parametrize("changed", [
    "shape=None", "shape=5", "shape=('a',)", "shape=(2**70,)", "typestr=None", "typestr=4",
    "data=None", "data=(4096,)", "data=()", "data=(2**70, False)", "data=('x', False)",
    "data=(-1, False)", "strides=5", "strides=(4,)", "strides=('a', 'b')",
])
def test_a_malformed_interface_is_an_error_of_the_input(on_fake_gpu, changed):  # noqa: F811
    on_fake_gpu(INTERFACE + f"""
refused(rlx.InputError, lambda: k(1, 1, Interface(y, {changed}), *good[1:]), "argument 0",
        "__cuda_array_interface__", "malformed")
""")


@pytest.mark.parametrize("missing", ["shape", "typestr", "data"])
def test_an_interface_without_what_it_must_have(on_fake_gpu, missing):  # noqa: F811
    on_fake_gpu(INTERFACE + f"""
without = Interface(y)
del without.__cuda_array_interface__[{missing!r}]
refused(rlx.InputError, lambda: k(1, 1, without, *good[1:]), "malformed", {missing!r})
""")


@pytest.mark.parametrize("stream", ["2**70", "2**64 - 1", "True", "False", "1.0", "b'1'", "-2**70"])
def test_a_stream_that_is_none(on_fake_gpu, stream):  # noqa: F811
    on_fake_gpu(INTERFACE + f"""
refused(rlx.InputError, lambda: k(1, 1, Interface(y, stream={stream}), *good[1:]),
        "names no stream", {stream!r} if "**" not in {stream!r} else "got")
""")


def test_negative_extents_are_refused(on_fake_gpu):  # noqa: F811
    on_fake_gpu(INTERFACE + """
refused(rlx.InputError, lambda: k(1, 1, Interface(y, shape=(-2, 3)), *good[1:]), "negative")
""")


def test_managed_memory_is_no_other_gpus(on_fake_gpu):  # noqa: F811
    on_fake_gpu(INTERFACE + """
k(1, 1, Interface(y), *good[1:]).synchronize()
""", FAKE_CUDA_ORDINAL="1", FAKE_CUDA_MANAGED="1")


def test_what_a_device_array_does_not_lend(on_fake_gpu):  # noqa: F811
    """The array API: BufferError where a copy or another device is asked for and not given."""
    on_fake_gpu(RAISES + """
y.__dlpack__(max_version=(1, 0), dl_device=None, copy=None)
y.__dlpack__(dl_device=(2, 0), copy=False)
raises(BufferError, lambda: y.__dlpack__(dl_device=(1, 0)), "numpy()")
raises(BufferError, lambda: y.__dlpack__(copy=True), "copied")
raises((BufferError, RuntimeError), lambda: np.from_dlpack(y), "")
assert (y.numpy() == np.arange(6).reshape(2, 3)).all()
""")


def test_arrays_from_before_a_reset_are_lent_to_nobody(on_fake_gpu):  # noqa: F811
    on_fake_gpu("""
rlx.reset("cuda", force=True)
for use in (y.__dlpack__, lambda: y.__cuda_array_interface__, lambda: y.__dlpack__(stream=8192)):
    refused(rlx.StaleHandleError, use, "'array'", "the GPU was reset")
""")
