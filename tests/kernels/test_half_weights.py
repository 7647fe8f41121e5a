"""Half weights under float32 activations on the CPU, on every rung, against float64."""

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper
import pytest

import rlx
from tests.tolerance import tolerance

HALF = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}


def normal(*shape, seed=0, scale=1.0):
    return (np.random.default_rng(seed).normal(size=shape) * scale).astype(np.float32)


def model(node, w, x_shape, more=()):
    graph = helper.make_graph(
        [node, *more], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x_shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def run(made, x, weights, force=""):
    with rlx.load(made, device="cpu", weights=weights, force=force) as session:
        return session.run({"x": x})["y"], session.explain()[0]["rung"]


@pytest.mark.parametrize("weights", HALF)
@pytest.mark.parametrize("force", ["", "gemm", "plain"])
@pytest.mark.parametrize("m, k, n, epilogue", [
    (1, 70, 33, False), (5, 64, 64, True), (130, 40, 257, True), (1, 3, 2, False),
])
def test_products(weights, force, m, k, n, epilogue):
    x, w = normal(m, k, seed=1), normal(k, n, scale=1 / k)
    node = helper.make_node("MatMul", ["x", "w"], ["p" if epilogue else "y"])
    more = [helper.make_node("Relu", ["p"], ["y"])] if epilogue else []
    found, rung = run(model(node, w, [m, k], more), x, weights, force)
    rounded = w.astype(HALF[weights]).astype(float)
    truth = x.astype(float) @ rounded
    np.testing.assert_allclose(found, np.maximum(truth, 0) if epilogue else truth,
                               **tolerance("sum", "float32"))
    assert np.abs(rounded - w).max() > 0 and rung.startswith(force)


def convolve(x, w, groups):
    """Valid positions, stride 1."""
    n, _, height, width = x.shape
    m, cg, r, s = w.shape
    y = np.zeros((n, m, height - r + 1, width - s + 1))
    for k in range(m):
        g = k // (m // groups)
        for i in range(r):
            for j in range(s):
                window = x[:, g * cg:(g + 1) * cg, i:i + y.shape[2], j:j + y.shape[3]]
                y[:, k] += np.einsum("nchw,c->nhw", window, w[k, :, i, j])
    return y


@pytest.mark.parametrize("weights", HALF)
@pytest.mark.parametrize("force", ["", "onednn", "depthwise", "gemm", "direct"])
@pytest.mark.parametrize("channels, filters, size, groups", [
    (3, 8, 3, 1), (16, 16, 3, 16), (8, 12, 1, 1), (4, 8, 3, 2),
])
def test_convolutions(weights, force, channels, filters, size, groups):
    w = normal(filters, channels // groups, size, size, scale=1 / (channels * size))
    x = normal(2, channels, 9, 8, seed=1)
    node = helper.make_node("Conv", ["x", "w"], ["y"], group=groups)
    found, _ = run(model(node, w, list(x.shape)), x, weights, force)
    truth = convolve(x.astype(float), w.astype(HALF[weights]).astype(float), groups)
    np.testing.assert_allclose(found, truth, **tolerance("sum", "float32"))


def test_an_unknown_type_is_refused():
    made = model(helper.make_node("MatMul", ["x", "w"], ["y"]), normal(3, 2), [1, 3])
    with pytest.raises(rlx.InputError, match="weights") as caught:
        rlx.load(made, device="cpu", weights="int8")
    assert "f16 or bf16" in str(caught.value)
