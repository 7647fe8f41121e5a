"""MatMulInteger and QLinearMatMul against NumPy: vectors, batches, zero points of all shapes.

And what products by packed weights refuse.
"""

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import rlx
from rlx.errors import ModelError, UnsupportedError
from tests.onnx.test_contrib import run as contrib

BYTES = [np.uint8, np.int8]
# Operands, and shapes of their zero points: one, for each row or column, for each matrix its own.
SHAPES = {
    "one": ((4, 7), (7, 5), (), (1,)),
    "vectors of slices": ((4, 7), (7, 5), (4,), (5,)),
    "matrices of slices": ((4, 7), (7, 5), (4, 1), (1, 5)),
    "of a batch": ((2, 3, 4, 7), (2, 3, 7, 5), (2, 3, 4, 1), (2, 3, 1, 5)),
    "shared by a batch": ((3, 4, 7), (3, 7, 5), (1, 4, 1), (1, 1, 5)),
    "one for each matrix": ((3, 4, 7), (3, 7, 5), (3, 1, 1), (3, 1, 1)),
    "only A's are of a batch": ((3, 4, 7), (7, 5), (3, 4, 1), (5,)),
    "only B's are of a batch": ((4, 7), (3, 7, 5), (4,), (3, 1, 5)),
    "ones": ((4, 7), (7, 5), (1, 1), (1, 1)),
    "vector by vector": ((7,), (7,), (), ()),
    "vector by matrix": ((7,), (7, 5), (1,), (5,)),
    "vector by matrices": ((7,), (3, 7, 5), (), (3, 1, 5)),
    "matrix by vector": ((4, 7), (7,), (4,), (1,)),
    "matrices by vector": ((3, 4, 7), (7,), (3, 4, 1), ()),
    "nothing to sum": ((4, 0), (0, 5), (4, 1), (5,)),
    "no rows": ((0, 7), (7, 5), (), (1, 5)),
}


def run(op, given: dict, type):
    of = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        [helper.make_node(op, list(given), ["y"])], "g",
        [helper.make_tensor_value_info(n, of(v.dtype), v.shape) for n, v in given.items()],
        [helper.make_tensor_value_info("y", type, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return rlx.load(model, device="cpu").run(given)["y"]


def ints(rng, dtype, shape):
    info = np.iinfo(dtype)
    return np.asarray(rng.integers(info.min, info.max, shape, endpoint=True)).astype(dtype)


def rows(v, x):
    """A scale or zero point of the left operand as it broadcasts: a vector is one for each row."""
    wide = v.astype(np.float64)
    return wide[:, None] if v.ndim == 1 and x.ndim > 1 else wide


@pytest.mark.parametrize("left", BYTES)
@pytest.mark.parametrize("right", BYTES)
@pytest.mark.parametrize("name", SHAPES)
def test_matmul_integer(left, right, name):
    rng = np.random.default_rng(0)
    a, b, a_zero, b_zero = (ints(rng, t, s) for t, s in zip((left, right, left, right),
                                                            SHAPES[name]))
    found = run("MatMulInteger", {"a": a, "b": b, "az": a_zero, "bz": b_zero}, TensorProto.INT32)
    expected = np.matmul(a - rows(a_zero, a), b - b_zero.astype(np.float64))
    np.testing.assert_array_equal(found, expected.astype(np.int32), strict=True)


def test_zero_points_that_would_widen_an_operand_are_refused():
    rng = np.random.default_rng(0)
    a, b = ints(rng, np.uint8, (1, 4, 7)), ints(rng, np.uint8, (7, 5))
    for shape in ((2, 4, 1), (1, 4, 7), (4, 1)):
        with pytest.raises(ModelError, match="zero point of A"):
            run("MatMulInteger", {"a": a, "b": b, "az": ints(rng, np.uint8, shape)},
                TensorProto.INT32)


def qlinear(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero):
    """(found, what it is in float64 before it is rounded)."""
    given = {"a": a, "as": a_scale, "az": a_zero, "b": b, "bs": b_scale, "bz": b_zero,
             "ys": y_scale, "yz": y_zero}
    found = run("QLinearMatMul", given, helper.np_dtype_to_tensor_dtype(y_zero.dtype))
    left = (a.astype(np.float64) - rows(a_zero, a)) * rows(a_scale, a)
    right = (b.astype(np.float64) - b_zero.astype(np.float64)) * b_scale.astype(np.float64)
    product = np.matmul(left, right)
    y = np.asarray(product / y_scale.astype(np.float64))
    return found, y.reshape(product.shape)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16],
                         ids=lambda t: np.dtype(t).name)
@pytest.mark.parametrize("name", SHAPES)
def test_qlinear_matmul(dtype, name):
    rng = np.random.default_rng(1)
    a_shape, b_shape, a_each, b_each = SHAPES[name]
    a, a_zero = ints(rng, np.uint8, a_shape), ints(rng, np.uint8, a_each)
    b, b_zero = ints(rng, np.int8, b_shape), ints(rng, np.int8, b_each)
    a_scale, b_scale = (np.asarray(rng.uniform(0.01, 0.05, s)).astype(dtype)
                        for s in (a_each, b_each))
    found, y = qlinear(a, a_scale, a_zero, b, b_scale, b_zero, np.array([0.07], dtype),
                       np.array([11], np.int8))
    # Exact: none of these numbers is so near a tie that float32 would round it the other way.
    expected = np.clip(np.rint(y) + 11, -128, 127).astype(np.int8)
    np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("zeros", [(0, 0, 0), (1.5, -0.5, 2)])
@pytest.mark.parametrize("dtype", [
    ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e5m2fnuz], ids=lambda t: np.dtype(t).name)
def test_qlinear_matmul_of_float8(dtype, zeros):
    rng = np.random.default_rng(2)
    a, b = (rng.normal(0, 2, s).astype(dtype) for s in ((4, 6), (6, 5)))
    a_zero, b_zero, y_zero = (np.array(z, dtype) for z in zeros)
    found, y = qlinear(a, np.float32(0.5), a_zero, b, np.float32(0.25), b_zero, np.float32(0.3),
                       y_zero)
    expected = (y + zeros[2]).astype(np.float32).astype(dtype)
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("bits", [0, 1, 3, 5, 6, 7, 16])
def test_bits_that_fill_no_bytes_evenly_are_refused(bits):
    """The text of MatMulNBits allows 2 to 8; who quantises chooses."""
    rng = np.random.default_rng(3)
    rows, scale = np.zeros((6, 2, 8), np.uint8), np.float32(rng.random(12))
    with pytest.raises(UnsupportedError, match="quantise the weights to 2, 4 or 8 bits"):
        contrib("MatMulNBits", [np.float32(rng.random((2, 32))), rows, scale], K=32, N=6, bits=bits,
                block_size=16)
    with pytest.raises(UnsupportedError, match="quantise the weights to 2, 4 or 8 bits"):
        contrib("GatherBlockQuantized", [np.zeros((9, 16), np.uint8), np.array([3]),
                                         np.float32(rng.random((9, 2)))],
                bits=bits, block_size=16, gather_axis=0, quantize_axis=1)


def test_prepared_weights_are_refused():
    rng = np.random.default_rng(3)
    with pytest.raises(UnsupportedError, match="without weight_prepacked"):
        contrib("MatMulNBits", [np.float32(rng.random((2, 32))), np.zeros((6, 2, 8), np.uint8),
                                np.float32(rng.random(12))],
                K=32, N=6, block_size=16, weight_prepacked=1)
