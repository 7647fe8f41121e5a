"""The integers pass: products of dequantised operands multiply the integers themselves."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from rlx.ir.graph import Graph
from rlx.ir.prims import Conv, MatMul
from rlx.ir.types import DType
from tests.passes.equivalence import check, counts, graph_of, node

PASSES = ["integers", "regions", "epilogues"]
RNG = np.random.default_rng(5)


def model_of(nodes, shape, constants) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, None)],
        [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def quantised(weights, scale, zero) -> dict:
    """Constants of a pattern: x in uint8 by (xs, xz), w in int8 by (ws, wz), y by (ys, yz)."""
    return {"w": weights, "ws": scale, "wz": zero, "xs": np.float32(0.02), "xz": np.uint8(120),
            "ys": np.float32(0.31), "yz": np.uint8(131)}


ENDS = [node("QuantizeLinear", "x xs xz", "q"), node("DequantizeLinear", "q xs xz", "d")]
BACK = [node("QuantizeLinear", "s ys yz", "y")]


def weights(*shape):
    return RNG.integers(-128, 128, shape).astype(np.int8)


def product(graph: Graph):
    (found,) = [n for n in graph.nodes if isinstance(n.prim, (Conv, MatMul))]
    return found


@pytest.mark.parametrize("each", [False, True], ids=["tensor", "channel"])
def test_convolution_with_bias_and_relu(each):
    scale, zero = np.float32(0.01), np.int8(3)
    if each:
        scale = RNG.random(40).astype(np.float32) / 100
        zero = RNG.integers(-9, 9, 40).astype(np.int8)
    nodes = [*ENDS, node("DequantizeLinear", "w ws wz", "v", axis=0),
             node("Conv", "d v b", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "s"), *BACK]
    bias = {"b": RNG.normal(size=40).astype(np.float32)}
    w = weights(40, 64, 3, 3)  # too large to be folded while importing
    model = model_of(nodes, [1, 64, 6, 5], quantised(w, scale, zero) | bias)
    graph = check(model, {"x": RNG.normal(size=(1, 64, 6, 5)).astype(np.float32)}, PASSES)
    conv = product(graph)
    assert conv.inputs[0].dtype is DType.UINT8 and conv.inputs[1].dtype is DType.INT8
    assert conv.prim.accumulate is DType.INT32
    assert conv.outputs[0].dtype is DType.UINT8  # requantised inside
    assert counts(graph) == {"Conv": 1, "Region": 1}


@pytest.mark.parametrize("trans_b", [0, 1])
def test_gemm(trans_b):
    w = weights(150, 130) if trans_b else weights(130, 150)
    scale, zero = RNG.random(150).astype(np.float32) / 100, np.zeros(150, np.int8)
    nodes = [*ENDS, node("DequantizeLinear", "w ws wz", "v", axis=0 if trans_b else 1),
             node("Gemm", "d v", "s", transB=trans_b, alpha=0.5), *BACK]
    model = model_of(nodes, [4, 130], quantised(w, scale, zero))
    graph = check(model, {"x": RNG.normal(size=(4, 130)).astype(np.float32)}, PASSES)
    found = product(graph)
    assert found.inputs[1].dtype is DType.INT8 and found.outputs[0].dtype is DType.UINT8
    assert found.inputs[3] is None  # zero points that are 0 are none


@pytest.mark.parametrize("why", ["depthwise", "long sums", "computed weights"])
def test_floats_stay(why):
    nodes = [*ENDS, node("DequantizeLinear", "w ws wz", "v"), node("MatMul", "d v", "s"), *BACK]
    shape, w = [2, 130], weights(130, 150)
    if why == "depthwise":
        nodes[3] = node("Conv", "d v", "s", group=4000)
        shape, w = [1, 4000, 2, 3], weights(4000, 1, 2, 3)
    if why == "long sums":
        shape, w = [2, 40000], weights(40000, 1)
    if why == "computed weights":
        nodes[3] = node("MatMul", "d e", "s")
        nodes.insert(3, node("Transpose", "d", "e"))
    model = model_of(nodes, shape, quantised(w, np.float32(0.01), np.int8(0)))
    assert product(graph_of(model, PASSES)).inputs[0].dtype is DType.FLOAT32
