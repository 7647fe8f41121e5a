"""Numbers that an operator cannot mean: each is refused by an error naming node and reason."""

import numpy as np
from onnx import TensorProto, helper
import pytest

import rlx
from tests.api.toys import F, I, arange, model, node, value
from tests.tolerance import tolerance

IMAGE = {"x": [1, 4, 6, 6]}
WEIGHTS = {"w": np.ones((4, 4, 3, 3), np.float32)}
ONES = {"s": np.ones(4, np.float32), "c": np.zeros(4, np.float32)}
LSTM = {"w": np.ones((1, 12, 4), np.float32), "r": np.ones((1, 12, 3), np.float32)}


@pytest.mark.parametrize("op, inputs, shapes, initializers, attributes", [
    ("Conv", "x w", IMAGE, WEIGHTS, {"strides": [0, 1]}),
    ("Conv", "x w", IMAGE, WEIGHTS, {"strides": [1]}),
    ("Conv", "x w", IMAGE, WEIGHTS, {"dilations": [1, -1]}),
    ("Conv", "x w", IMAGE, WEIGHTS, {"group": 0}),
    ("Conv", "x w", IMAGE, WEIGHTS, {"group": 3}),
    ("Conv", "x w", IMAGE, WEIGHTS, {"pads": [1, 1]}),
    ("Conv", "x w", IMAGE, WEIGHTS, {"strides": [2**40, 1]}),
    ("Conv", "x w", IMAGE, WEIGHTS, {"kernel_shape": [3]}),
    ("Conv", "x w", {"x": [2, 2]}, WEIGHTS, {}),
    ("ConvTranspose", "x w", IMAGE, WEIGHTS, {"strides": [0, 0]}),
    ("ConvTranspose", "x w", IMAGE, WEIGHTS, {"output_padding": [1]}),
    ("ConvTranspose", "x w", IMAGE, WEIGHTS, {"output_shape": [-1, 1]}),
    ("MaxPool", "x", IMAGE, {}, {"kernel_shape": [2, 2], "dilations": [0, 1]}),
    ("MaxPool", "x", IMAGE, {}, {"kernel_shape": [0, 2]}),
    ("AveragePool", "x", IMAGE, {}, {"kernel_shape": [2]}),
    ("AveragePool", "x", {"x": [4]}, {}, {"kernel_shape": [2]}),
    ("LpPool", "x", IMAGE, {}, {"kernel_shape": [2, 2], "p": 0}),
    ("LRN", "x", IMAGE, {}, {"size": 0}),
    ("GroupNormalization", "x s c", IMAGE, ONES, {"num_groups": 0}),
    ("GroupNormalization", "x s c", IMAGE, ONES, {"num_groups": 3}),
    ("InstanceNormalization", "x s c", {"x": [4]}, ONES, {}),
    ("LpNormalization", "x", IMAGE, {}, {"p": 3}),
    ("LSTM", "x w r", {"x": [2, 4]}, LSTM, {"hidden_size": 3}),
    ("LSTM", "x w r", {"x": [2, 1, 4]}, LSTM, {"hidden_size": 0}),
    ("LSTM", "x w r", {"x": [2, 1, 4]}, LSTM, {"hidden_size": 2}),
    ("LSTM", "x w r", {"x": [2, 1, 4]}, LSTM, {"direction": "bidirectional"}),
    ("LSTM", "x w r", {"x": [2, 1, 5]}, LSTM, {"hidden_size": 3}),
    ("RandomUniform", "", {}, {}, {"shape": [-2]}),
    ("RandomNormal", "", {}, {}, {"shape": [2, -1]}),
    ("DepthToSpace", "x", IMAGE, {}, {"blocksize": 0}),
    ("DepthToSpace", "x", IMAGE, {}, {"blocksize": 3}),
    ("SpaceToDepth", "x", IMAGE, {}, {"blocksize": -2}),
    ("SpaceToDepth", "x", IMAGE, {}, {"blocksize": 5}),
    ("Split", "x", IMAGE, {}, {"axis": 9}),
    ("Split", "x", IMAGE, {}, {"axis": 1, "num_outputs": 3}),
    ("Split", "x n", IMAGE, {"n": np.array([-1])}, {}),
    ("Reshape", "x n", {"x": [0, 3]}, {"n": np.array([0, -1])}, {"allowzero": 1}),
    ("Reshape", "x n", {"x": [2, 3]}, {"n": np.array([-2, -3])}, {}),
    ("ArgMax", "x", {"x": [2, 0]}, {}, {"axis": 1}),
    ("ArgMin", "x", {"x": [0]}, {}, {"axis": 0}),
    ("Tile", "x n", {"x": [2]}, {"n": np.array([-1])}, {}),
    ("TopK", "x n", {"x": [2]}, {"n": np.array([-1])}, {}),
    ("TopK", "x n", {"x": []}, {"n": np.array([1])}, {"axis": 0}),
    ("Softmax", "x", IMAGE, {}, {"axis": 4}),
    ("ReverseSequence", "x n", {"x": [2, 2]}, {"n": np.array([1, 1])},
     {"time_axis": 1, "batch_axis": 1}),
    ("CenterCropPad", "x n", {"x": [2, 2]}, {"n": np.array([1])}, {}),
    ("Trilu", "x", {"x": [2]}, {}, {}),
    ("Flatten", "x", {"x": [2]}, {}, {"axis": 2}),
    ("Conv", "x w b", IMAGE, WEIGHTS | {"b": np.float32(1)}, {}),
    ("DequantizeLinear", "q s", {}, ONES | {"q": np.ones((4, 4), np.int8)}, {"block_size": 2}),
    ("DequantizeLinear", "q t", {}, {"q": np.ones((4, 4), np.int8), "t": np.ones(
        (4, 3), np.float32)}, {"block_size": 2}),
    ("Concat", "x z", {"x": [2], "z": [2, 2]}, {}, {"axis": 0}),
    ("Gemm", "x x", {"x": []}, {}, {}),
    ("Gather", "x n", {"x": []}, {"n": np.array([0])}, {}),
    ("GatherElements", "x n", {"x": [2, 2]}, {"n": np.array([0])}, {}),
    ("GatherND", "x n", {"x": [2, 2]}, {"n": np.array(0)}, {}),
    ("GatherND", "x n", {"x": [2, 2]}, {"n": np.array([0])}, {"batch_dims": -1}),
    ("ScatterElements", "x n x", {"x": [2, 2]}, {"n": np.array([0])}, {}),
    ("Compress", "x n", {"x": [2]}, {"n": np.array(True)}, {}),
    ("CumSum", "x n", {"x": [2]}, {"n": np.zeros(0, np.int64)}, {}),
    ("LayerNormalization", "x s", {"x": [2, 5]}, ONES, {}),
    ("LayerNormalization", "x s", {"x": [4]}, {"s": np.ones((2, 4), np.float32)}, {}),
    ("NonMaxSuppression", "x x", {"x": [1, 2]}, {}, {}),
    ("Resize", "x _ k", {"x": [2]}, {"k": np.array([-1], np.float32)}, {}),
    ("Resize", "x _ k", {"x": [2]}, {"k": np.array([np.nan], np.float32)}, {}),
    ("Resize", "x _ k", {"x": [2]}, {"k": np.array([np.inf], np.float32)}, {}),
    ("Resize", "x _ k", {"x": [2]}, {"k": np.array([1, 1], np.float32)}, {}),
    ("Resize", "x _ _ n", {"x": [2]}, {"n": np.array([-1])}, {}),
    ("Resize", "x _ k", {"x": [2, 2]}, {"k": np.array([1, 1], np.float32)}, {"axes": [1, -1]}),
])
def test_refused_by_name(op, inputs, shapes, initializers, attributes):
    outputs = "y z" if op == "Split" else "y"
    made = model([node(op, inputs, outputs, **attributes)],
                 [value(k, shape=s) for k, s in shapes.items()], [value("y")], initializers,
                 opset=21)
    with pytest.raises(rlx.Error) as caught:
        with rlx.load(made) as session:
            session.run({k: np.ones(s, np.float32) for k, s in shapes.items()})
    error = caught.value
    assert not isinstance(error, rlx.InternalError)
    assert error.op == op and error.node


INTEGERS = {"u": np.ones((1, 1, 3, 3), np.uint8), "i": np.ones((1, 1, 3, 3), np.int8),
            "su": np.uint8(3), "si": np.int8(3), "f": np.float32(0.5)}


@pytest.mark.parametrize("op, inputs, attributes", [
    ("DequantizeLinear", "u f si", {}), ("DequantizeLinear", "i f su", {}),
    ("QuantizeLinear", "f f su", {"output_dtype": TensorProto.INT8}),
    ("QLinearMatMul", "u f si i f si f su", {}), ("QLinearMatMul", "u f su i f su f su", {}),
    ("QLinearConv", "u f si i f si f su", {}), ("QLinearConv", "u f su i f su f su", {}),
    ("MatMulInteger", "u i si", {}), ("MatMulInteger", "u i su su", {}),
    ("ConvInteger", "u i si", {}), ("ConvInteger", "u i su su", {}),
    ("com.microsoft:DequantizeLinear", "u f si", {}),
    ("com.microsoft:QLinearAdd", "u f su u f su f si", {}),
    ("com.microsoft:QLinearAdd", "u f su u f si f su", {}),
    ("com.microsoft:QGemm", "u f si i f si", {}),
    ("com.microsoft:MatMulIntegerToFloat", "u i f f si", {}),
])
def test_zero_points_of_another_type(op, inputs, attributes):
    """They are T, as the tensor that they belong to."""
    domain, _, name = op.rpartition(":")
    made = model([node(name, inputs, "y", domain=domain, **attributes)], [], [value("y")],
                 {k: v for k, v in INTEGERS.items() if k in inputs.split()}, opset=21)
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(rlx.ModelError, match="zero point") as caught:
        rlx.run(made, {})
    assert caught.value.op == name and caught.value.node
    assert {caught.value.expected, caught.value.got} == {"uint8", "int8"}


@pytest.mark.parametrize("scale", [0, -1, np.nan, np.inf, 1e30])
def test_scales_that_are_fed(scale):
    made = model([node("Resize", "x _ k", "y")], [value("x", shape=[2]), value("k", shape=[1])],
                 [value("y")])
    with rlx.load(made) as session:
        with pytest.raises(rlx.InputError, match="scale"):
            session.run({"x": arange(2), "k": np.array([scale], np.float32)})
        assert session.run({"x": arange(2), "k": np.array([2], np.float32)})["y"].size == 4


def test_node_without_outputs():
    made = model([node("Relu", "x", "y"), helper.make_node("Split", ["x"], [], name="dead")],
                 [value("x", shape=[2])], [value("y")])
    with pytest.raises(rlx.ModelError, match="no outputs"):
        rlx.load(made)


def test_reshape_by_what_is_fed_cannot_have_zero_and_rest():
    made = model([node("Reshape", "x n", "y", allowzero=1)],
                 [value("x", shape=["a", 3]), value("n", I, [2])], [value("y")])
    with rlx.load(made) as session:
        with pytest.raises(rlx.InputError):
            session.run({"x": arange(0, 3), "n": np.array([0, -1])})
        assert session.run({"x": arange(2, 3), "n": np.array([3, -1])})["y"].shape == (3, 2)


@pytest.mark.parametrize("op, expected", [("Softmax", 1), ("LogSoftmax", 0), ("Hardmax", 1)])
def test_scalars_count_as_one_element(op, expected):
    made = model([node(op, "x", "y")], [value("x", F, [])], [value("y")])
    y = rlx.run(made, np.float32(3))["y"]
    assert y.shape == () and y == expected


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_extreme_of_an_axis_that_is_empty_at_run_time(op):
    made = model([node(op, "x", "y", axis=0)], [value("x", F, ["n"])], [value("y", I)])
    with rlx.load(made) as session:
        with pytest.raises(rlx.InputError, match="extent"):
            session.run({"x": arange(0)})
        assert session.run({"x": arange(3)})["y"].size == 1


def test_instance_norm_of_open_channels():
    made = model([node("InstanceNormalization", "x s c", "y")],
                 [value("x", F, ["n", "c", "h"]), value("s", F, ["c"]), value("c", F, ["c"])],
                 [value("y")])
    x, s, c = arange(2, 3, 4), np.array([1, 2, 3], np.float32), np.array([5, 6, 7], np.float32)
    wide = x.astype(np.float64)
    spread = np.sqrt(wide.var(axis=2, keepdims=True) + 1e-5)
    expected = (wide - wide.mean(axis=2, keepdims=True)) / spread * s[:, None] + c[:, None]
    y = rlx.run(made, {"x": x, "s": s, "c": c})["y"]
    np.testing.assert_allclose(y, expected, **tolerance("norm", "float32"))


def test_tensor_that_no_machine_holds():
    made = model([node("ConstantOfShape", "n", "c"), node("ReduceSum", "c", "r", keepdims=0),
                  node("Add", "x r", "y")], [value("x", shape=[1])], [value("y")],
                 {"n": np.array([2**44, 64])})
    with pytest.raises(rlx.MemoryLimitError):
        rlx.run(made, arange(1))


def test_pool_of_valid_windows_has_no_ceil():
    """auto_pad VALID gives ceil((in - kernel + 1) / stride) windows, with ceil_mode or not."""
    made = model([node("MaxPool", "x", "y", kernel_shape=[3], strides=[2], auto_pad="VALID",
                       ceil_mode=1)], [value("x", F, [1, 1, 6])], [value("y")], opset=22)
    assert rlx.run(made, arange(1, 1, 6))["y"].tolist() == [[[2, 4]]]


def test_nearest_by_the_old_rule_of_opset_11():
    """tf_half_pixel_for_nn: source (i + 0.5) / scale, here floor of 0.25, 0.75, ... 1.75."""
    mode = {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": "floor"}
    made = model([node("Resize", "x r k", "y", **mode)], [value("x", shape=[2])], [value("y")],
                 {"k": np.array([2], np.float32), "r": np.zeros(0, np.float32)}, opset=11)
    assert rlx.run(made, arange(2))["y"].tolist() == [0, 0, 1, 1]
