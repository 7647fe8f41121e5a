"""QuantizeLinear against its text in NumPy: every integer type, limits, NaN, scales by axis."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import rlx

# Both sides of the loop's blocks of 64 and vectors of 8, and none at all.
COUNTS = [0, 1, 5, 8, 63, 64, 65, 1000]
TYPES = [np.uint8, np.int8, np.uint16, np.int16, ml_dtypes.uint4, ml_dtypes.int4]
EDGES = [np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0, -0.0, 0.25, 0.75, 1.25, -0.25, -0.75]


def quantised(x, scale, zero, dtype) -> np.ndarray:
    """saturate(round(x / scale) + zero), ties to even; a NaN gives 0."""
    info = ml_dtypes.iinfo(dtype)
    with np.errstate(all="ignore"):
        levels = np.rint(x / scale).astype(np.float64) + np.asarray(zero).astype(np.float64)
    return np.nan_to_num(np.clip(levels, int(info.min), int(info.max)), nan=0).astype(dtype)


def run(x, scale, zero, axis=None, op="QuantizeLinear", opset=21, **more):
    given = {"x": x, "scale": scale} | ({} if zero is None else {"zero": zero})
    if axis is not None:
        more["axis"] = axis
    node = helper.make_node(op, list(given), ["y"], **more)
    of = helper.np_dtype_to_tensor_dtype
    inputs = [helper.make_tensor_value_info(name, of(v.dtype), v.shape)
              for name, v in given.items()]
    type = TensorProto.UINT8 if zero is None else of(zero.dtype)
    type = of(scale.dtype) if op == "DequantizeLinear" else type
    graph = helper.make_graph([node], "g", inputs,
                              [helper.make_tensor_value_info("y", type, x.shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                              ir_version=10 if opset < 23 else 12)
    onnx.checker.check_model(model)
    return rlx.load(model, device="cpu").run(given)["y"]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: np.dtype(t).name)
def test_one_scale(dtype):
    rng = np.random.default_rng(0)
    info = ml_dtypes.iinfo(dtype)
    for count in COUNTS:
        x = (rng.normal(0, 0.3, count) * int(info.max)).astype(np.float32)
        x[:len(EDGES)] = EDGES[:count]
        for zero in (int(info.min), 3, int(info.max)):
            scale, zero = np.float32(0.5), np.array(zero, dtype)
            found = run(x, np.array(scale), zero)
            np.testing.assert_array_equal(found, quantised(x, scale, zero, dtype), str(count))


@pytest.mark.parametrize("shape, axis", [((3, 70), 0), ((70, 3), 1), ((5, 129), 1), ((2, 9, 8), 1)])
def test_a_scale_for_each(shape, axis):
    rng = np.random.default_rng(1)
    x = rng.normal(0, 40, shape).astype(np.float32)
    scale = rng.uniform(0.1, 3, shape[axis]).astype(np.float32)
    zero = rng.integers(-128, 128, shape[axis]).astype(np.int8)
    spread = [-1 if a == axis else 1 for a in range(len(shape))]
    expected = quantised(x, scale.reshape(spread), zero.reshape(spread), np.int8)
    np.testing.assert_array_equal(run(x, scale, zero, axis), expected)


@pytest.mark.parametrize("zero", [0.5, -0.5, 100.75, 3e7, -3e7, np.inf, np.nan])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8], ids=lambda t: np.dtype(t).name)
def test_written_out_with_any_number_for_a_zero_point(dtype, zero):
    """Div, Round, Add, Clip and Cast, which are QuantizeLinear if the number is whole."""
    info = np.iinfo(dtype)
    x = np.array([*EDGES, *np.arange(-300, 300, 0.5), 3e7, -3e7, 3e7 + 128, 8388607.5, 4194304.5],
                 np.float32)
    nodes = [helper.make_node("Div", ["x", "s"], ["ratio"]),
             helper.make_node("Round", ["ratio"], ["level"]),
             helper.make_node("Add", ["level", "z"], ["moved"]),
             helper.make_node("Clip", ["moved", "low", "high"], ["cut"]),
             helper.make_node("Cast", ["cut"], ["y"], to=helper.np_dtype_to_tensor_dtype(
                 np.dtype(dtype)))]
    given = {"x": x, "s": np.float32(1), "z": np.float32(zero)}
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(name, TensorProto.FLOAT, np.shape(v))
                     for name, v in given.items()],
        [helper.make_tensor_value_info("y", nodes[-1].attribute[0].i, x.shape)],
        [onnx.numpy_helper.from_array(np.float32(info.min), "low"),
         onnx.numpy_helper.from_array(np.float32(info.max), "high")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    with np.errstate(all="ignore"):
        moved = np.rint(x) + np.float32(zero)
    expected = np.trunc(np.nan_to_num(np.clip(moved, info.min, info.max), nan=0)).astype(dtype)
    np.testing.assert_array_equal(rlx.load(model, device="cpu").run(given)["y"], expected)


def test_without_a_zero_point():
    x = np.array([*EDGES, 254.5, 255.5, 300], np.float32)
    scale = np.float32(1)
    np.testing.assert_array_equal(run(x, np.array(scale), None),
                                  quantised(x, scale, 0, np.uint8))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16], ids=lambda t: np.dtype(t).name)
@pytest.mark.parametrize("half, precision", [
    (np.float16, TensorProto.FLOAT16), (ml_dtypes.bfloat16, TensorProto.BFLOAT16)],
    ids=["float16", "bfloat16"])
@pytest.mark.parametrize("how", ["scale", "attribute", "float32 all the same", "opset 21"])
def test_the_division_has_the_precision_that_is_asked_for(how, half, precision, dtype):
    """From opset 23 on the type of the scale says how precise the division is, or `precision`."""
    rng = np.random.default_rng(3)
    top = int(ml_dtypes.iinfo(dtype).max)
    x, scale = rng.normal(0, 0.2 * top, 500).astype(half), np.array(0.77, half)
    zero, more = np.array(top - 50, dtype), {}
    ratio = x.astype(np.float32) / scale.astype(np.float32)
    if how == "attribute":
        x, scale, more = x.astype(np.float32), scale.astype(np.float32), {"precision": precision}
    if how == "float32 all the same":
        more = {"precision": TensorProto.FLOAT}
    if how in ("scale", "attribute"):
        assert (np.rint(ratio) != np.rint(ratio.astype(half).astype(np.float32))).any()
        ratio = ratio.astype(half)
    info = ml_dtypes.iinfo(dtype)
    expected = np.clip(np.rint(ratio.astype(np.float64)) + int(zero), info.min, info.max)
    found = run(x, scale, zero, opset=21 if how == "opset 21" else 25, **more)
    np.testing.assert_array_equal(found, expected.astype(dtype))


def test_precision_names_a_float():
    with pytest.raises(rlx.ModelError, match="precision"):
        run(np.ones(3, np.float32), np.array(1, np.float32), None, opset=25,
            precision=TensorProto.INT64)


SMALL = [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2,
         ml_dtypes.float8_e5m2fnuz, ml_dtypes.float4_e2m1fn]


@pytest.mark.parametrize("zero", [0.0, 1.5, -3.0])
@pytest.mark.parametrize("dtype", SMALL, ids=lambda t: np.dtype(t).name)
def test_small_floats_have_zero_points_too(dtype, zero):
    """"The quantization formula remains the same": x / scale + zero, and (x - zero) * scale."""
    rng = np.random.default_rng(4)
    x, scale = rng.normal(0, 3, 200).astype(np.float32), np.float32(0.7)
    zero = np.array(zero, dtype)
    largest = float(ml_dtypes.finfo(dtype).max)
    expected = np.clip(x / scale + zero.astype(np.float32), -largest, largest).astype(dtype)
    found = run(x, np.array(scale), zero, opset=25)
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))
    back = run(found, np.array(scale), zero, op="DequantizeLinear", opset=25)
    np.testing.assert_array_equal(
        back, (found.astype(np.float32) - zero.astype(np.float32)) * scale)
