"""Every encoding of a TensorProto, against the ONNX text and onnx.numpy_helper."""

import math

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper
import pytest

from rlx.errors import Error, MemoryLimitError, ModelError, UnsupportedError
from rlx.importer.external import ExternalData
from rlx.importer.loaded import Weight
from rlx.importer.tensors import TensorReader
from rlx.ir.packing import pack
from rlx.ir.types import DType

NUMBERS = [t for t in DType if t is not DType.STRING]


def decode(tensor: onnx.TensorProto) -> Weight:
    return TensorReader(None, {}, ExternalData(None)).weight(tensor)


def decode_sparse(values, indices, dims) -> Weight:
    tensor = onnx.SparseTensorProto(values=values, indices=indices, dims=dims)
    return TensorReader(None, {}, ExternalData(None)).sparse(tensor)


def some_values(dtype: DType) -> np.ndarray:
    """Nine values of the type, bit patterns spread over it."""
    bits = np.random.default_rng(dtype).integers(0, 256, 9 * dtype.itemsize, np.uint8)
    if dtype is DType.BOOL:
        bits &= 1
    if dtype.numpy.itemsize == 1 and str(dtype.numpy) in ("int4", "uint4", "float4_e2m1fn"):
        bits &= 15
    if str(dtype.numpy) in ("int2", "uint2"):
        bits &= 3
    return bits.view(dtype.numpy).reshape(3, 3)


def same_bits(got: np.ndarray, expected: np.ndarray) -> bool:
    return (got.dtype == expected.dtype and got.shape == expected.shape
            and got.tobytes() == expected.tobytes())


@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda t: t.name.lower())
@pytest.mark.parametrize("raw", [True, False], ids=["raw", "typed"])
def test_numbers(dtype, raw):
    values = some_values(dtype)
    if raw:
        tensor = numpy_helper.from_array(values, "t")
    else:
        tensor = T(name="t", data_type=dtype, dims=[3, 3])
        if dtype in (DType.FLOAT32, DType.COMPLEX64):
            tensor.float_data.extend(values.view(np.float32).ravel())
        elif dtype in (DType.FLOAT64, DType.COMPLEX128):
            tensor.double_data.extend(values.view(np.float64).ravel())
        elif dtype is DType.INT64:
            tensor.int64_data.extend(values.ravel())
        elif dtype in (DType.UINT64, DType.UINT32):
            tensor.uint64_data.extend(values.ravel())
        elif values.itemsize == 1 and numpy_helper.from_array(values).ByteSize() < 9 + 8:
            tensor.int32_data.extend(numpy_helper.from_array(values).raw_data)  # packed bytes
        elif dtype in (DType.INT8, DType.INT16, DType.INT32):
            tensor.int32_data.extend(values.ravel())
        else:
            tensor.int32_data.extend(values.view(f"u{values.itemsize}").ravel())
    assert same_bits(numpy_helper.to_array(tensor), values)  # the test itself is right
    weight = decode(tensor)
    assert (weight.dtype, weight.dims, weight.name) == (dtype, (3, 3), "t")
    if dtype is DType.FLOAT32 and not raw:
        np.testing.assert_array_equal(weight.array, values)  # a NaN's payload may change
    else:
        assert same_bits(weight.array, values)
    assert not weight.array.flags.writeable and not weight.data.flags.writeable


def test_nibbles_come_low_first():
    weight = decode(T(data_type=T.INT4, dims=[3], raw_data=bytes([0x7F, 0x08])))
    assert weight.array.astype(int).tolist() == [-1, 7, -8]
    weight = decode(T(data_type=T.UINT2, dims=[5], int32_data=[0b11100100, 0b10]))
    assert weight.array.astype(int).tolist() == [0, 1, 2, 3, 2]
    weight = decode(T(data_type=T.FLOAT4E2M1, dims=[2], raw_data=bytes([0xF1])))
    assert weight.array.astype(float).tolist() == [0.5, -6.0]


@pytest.mark.parametrize("dtype", [DType.INT4, DType.UINT4, DType.INT2, DType.FLOAT4E2M1])
@pytest.mark.parametrize("count", range(6))
def test_packing_reverses_unpacking(dtype, count):
    values = some_values(dtype).ravel()[:count]
    packed = pack(values, dtype)
    assert packed.tobytes() == numpy_helper.from_array(values).raw_data


def test_strings():
    weight = decode(T(data_type=T.STRING, dims=[2, 1], string_data=["ä".encode(), b""]))
    assert weight.array.tolist() == [["ä"], [""]]
    with pytest.raises(ModelError, match="UTF-8"):
        decode(T(data_type=T.STRING, dims=[1], string_data=[b"\xff"]))
    with pytest.raises(ModelError, match="string_data"):
        decode(T(data_type=T.STRING, dims=[1], raw_data=b"a"))


def test_scalars_and_empty_tensors():
    assert decode(T(data_type=T.FLOAT, float_data=[2.5])).array.shape == ()
    for tensor in (T(data_type=T.INT64, dims=[0]), T(data_type=T.INT64, dims=[2, 0], raw_data=b"")):
        assert decode(tensor).array.shape == tuple(tensor.dims)


def test_true_may_be_any_byte_but_reads_as_one():
    for tensor in (T(data_type=T.BOOL, dims=[3], raw_data=bytes([0, 2, 1])),
                   T(data_type=T.BOOL, dims=[3], int32_data=[0, 2, 1])):
        weight = decode(tensor)
        assert weight.data.tolist() == [0, 1, 1]


MALFORMED = {
    "too much raw data": T(data_type=T.INT64, dims=[1], raw_data=bytes(4096)),
    "too little raw data": T(data_type=T.FLOAT, dims=[2], raw_data=bytes(7)),
    "no data": T(data_type=T.FLOAT, dims=[2]),
    "too many entries": T(data_type=T.FLOAT, dims=[1], float_data=[1, 2]),
    "half a complex number": T(data_type=T.COMPLEX64, dims=[1], float_data=[1]),
    "unpacked nibbles": T(data_type=T.INT4, dims=[4], int32_data=[1, 2, 3, 4]),
    "negative dim": T(data_type=T.FLOAT, dims=[-1], raw_data=b""),
    "negative dims": T(data_type=T.FLOAT, dims=[-1, -1], raw_data=bytes(4)),
    "overflow to zero": T(data_type=T.FLOAT, dims=[2**32, 2**32], raw_data=b""),
    "overflow beside zero": T(data_type=T.FLOAT, dims=[2**32, 2**32, 0], raw_data=b""),
    "bytes overflow": T(data_type=T.DOUBLE, dims=[2**61], raw_data=b""),
    "undefined type": T(dims=[1], raw_data=b"a"),
    "unknown type": T(data_type=999, dims=[1], raw_data=b"a"),
    "negative type": T(data_type=-1, dims=[1], raw_data=b"a"),
    "other field": T(data_type=T.FLOAT, dims=[1], int64_data=[1]),
    "two fields": T(data_type=T.FLOAT, dims=[1], float_data=[1], raw_data=bytes(4)),
}


@pytest.mark.parametrize("tensor", MALFORMED.values(), ids=MALFORMED)
def test_malformed(tensor):
    tensor.name = "the_weight"
    with pytest.raises(ModelError, match="the_weight"):
        decode(tensor)


def test_what_rlx_lacks():
    for tensor in (T(data_type=T.FLOAT6E2M3, dims=[4], raw_data=bytes(3)),
                   T(data_type=T.FLOAT, dims=[1] * 65, raw_data=bytes(4)),
                   T(data_type=T.FLOAT, dims=[1], segment=T.Segment(begin=0, end=1))):
        with pytest.raises(UnsupportedError):
            decode(tensor)


def floats(*values: float) -> onnx.TensorProto:
    return helper.make_tensor("s", T.FLOAT, [len(values)], values)


def indices(values, dims) -> onnx.TensorProto:
    return helper.make_tensor("", T.INT64, dims, values)


def test_sparse_tensors_become_dense():
    expected = np.array([[0, 1, 0], [0, 0, 2]], np.float32)
    for form in (indices([1, 5], [2]), indices([0, 1, 1, 2], [2, 2])):
        weight = decode_sparse(floats(1, 2), form, [2, 3])
        assert same_bits(weight.array, expected) and weight.name == "s"
    empty = decode_sparse(floats(), indices([], [0]), [2])
    assert empty.array.tolist() == [0, 0]
    strings = helper.make_tensor("s", T.STRING, [1], [b"x"])
    assert decode_sparse(strings, indices([1], [1]), [3]).array.tolist() == ["", "x", ""]
    nibbles = helper.make_tensor("s", T.INT4, [2], [-3, 5])
    dense = decode_sparse(nibbles, indices([0, 2], [2]), [3])
    assert dense.packed and dense.array.astype(int).tolist() == [-3, 0, 5]
    assert dense.array.dtype == ml_dtypes.int4


@pytest.mark.parametrize("form, dims", [
    (indices([1, 6], [2]), [2, 3]), (indices([-1, 0], [2]), [2, 3]),
    (indices([1, 1], [2]), [2, 3]), (indices([0, 1, 0, 3], [2, 2]), [2, 3]),
    (indices([0, 1, 2], [3]), [2, 3]), (indices([0, 1], [2, 1]), [2, 3]),
    (floats(0, 1), [2, 3]), (indices([0, 1], [2]), [2**40, 2**40]), (indices([0, 1], [2]), [-3]),
])
def test_malformed_sparse_tensors(form, dims):
    with pytest.raises(ModelError, match="'s'"):
        decode_sparse(floats(1, 2), form, dims)


def test_a_sparse_tensor_does_not_exhaust_the_memory():
    with pytest.raises(MemoryLimitError):
        decode_sparse(floats(1), indices([0], [1]), [2**50])


def test_errors_of_many_random_tensors_are_typed():
    rng = np.random.default_rng(7)
    for _ in range(300):
        tensor = T(name="r", data_type=int(rng.integers(-1, 31)))
        tensor.dims.extend(rng.integers(-1, 4, rng.integers(0, 4)).tolist())
        if rng.random() < 0.7:
            tensor.raw_data = rng.bytes(int(rng.integers(0, 30)))
        else:
            tensor.int32_data.extend(rng.integers(-300, 300, rng.integers(0, 9)).tolist())
        try:
            weight = decode(tensor)
        except Error:
            continue
        assert weight.array.size == math.prod(tensor.dims)
        assert same_bits(weight.array.astype(weight.dtype.numpy), numpy_helper.to_array(tensor)) \
            or weight.dtype is DType.BOOL
