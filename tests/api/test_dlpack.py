"""DLPack in and out for every type, against NumPy's own exchange; torch and JAX: tests/clients."""

import gc

import ml_dtypes
import numpy as np
from onnx import TensorProto as T
import pytest

import rlx
from rlx import dlpack
from tests.ort.material import IDENTITY, info, model

EXTENDED = ["bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
            "float8_e8m0fnu"]


class Producer:
    """Has DLPack and nothing else, as the arrays of another library; made by hand from bytes."""

    def __init__(self, array, code=None):
        self.array, self.code = array, code

    def __dlpack__(self, **request):
        capsule = self.array.__dlpack__()
        if self.code is not None:
            dlpack._tensor(capsule).code = self.code
        return capsule

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "i8", "f2", "f4", "f8", "c8"])
def test_numpys_own_types_go_both_ways(dtype):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    np.testing.assert_array_equal(dlpack.read(Producer(x)), x, strict=True)
    back = np.from_dlpack(rlx.to_dlpack(x))
    np.testing.assert_array_equal(back, x, strict=True)
    assert back.ctypes.data == x.ctypes.data


@pytest.mark.parametrize("dtype", EXTENDED)
def test_the_other_types_go_both_ways(dtype):
    x = np.float32([[0.5, 1, 2], [4, 8, 16]]).astype(getattr(ml_dtypes, dtype))
    back = dlpack.read(rlx.to_dlpack(x))
    np.testing.assert_array_equal(back, x, strict=True)
    assert back.ctypes.data == x.ctypes.data
    with pytest.raises((BufferError, TypeError)):
        x.__dlpack__()


def test_codes_are_those_of_dlpack():
    # dlpack.h: kDLBfloat = 4, kDLFloat8_e4m3fn = 10, kDLFloat8_e5m2 = 12.
    for name, code in (("bfloat16", 4), ("float8_e4m3fn", 10), ("float8_e5m2", 12)):
        x = np.ones(3, getattr(ml_dtypes, name))
        given = Producer(x.view(f"u{x.itemsize}"), code)
        np.testing.assert_array_equal(dlpack.read(given), x, strict=True)


def test_strides_and_lifetime():
    x = np.arange(12, dtype=np.uint16).reshape(3, 4).view(ml_dtypes.bfloat16)
    expected = x.copy()
    got = dlpack.read(rlx.to_dlpack(x.T[::2]))
    del x
    gc.collect()
    np.testing.assert_array_equal(got, expected.T[::2])


def test_a_session_takes_bfloat16_through_dlpack():
    made = model(IDENTITY, [info("x", T.BFLOAT16, ["n"])], [info("y", T.BFLOAT16, ["n"])])
    x = np.arange(4).astype(ml_dtypes.bfloat16)
    got = rlx.run(made, {"x": Producer(x.view(np.uint16), 4)})["y"]
    np.testing.assert_array_equal(got, x, strict=True)


class OnDevice(Producer):
    def __dlpack__(self, **request):
        capsule = super().__dlpack__()
        dlpack._tensor(capsule).device_type = 2
        return capsule

    def __dlpack_device__(self):
        return (2, 0)

    def __array__(self, dtype=None, copy=None):
        raise TypeError("can't convert device memory")


def test_device_memory_is_refused_with_a_remedy():
    made = model(IDENTITY, [info("x", T.FLOAT, ["n"])], [info("y", T.FLOAT, ["n"])])
    with pytest.raises(rlx.InputError, match="copy it to the CPU first"):
        rlx.run(made, {"x": OnDevice(np.zeros(3, np.float32))})
