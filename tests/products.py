"""Models of one product with a bias and an activation, run on a rung and compared with float64."""

import math

import numpy as np
from onnx import helper, numpy_helper

import rlx
from tests.tolerance import assert_network_output

_erf = np.vectorize(math.erf, otypes=[np.float64])
ACTIVATIONS = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x * (1 + _erf(x / math.sqrt(2))) / 2,
}


def model(nodes, inputs, constants, dtype):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(n, kind, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(c.astype(dtype), n) for n, c in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def activation(name, x, y):
    if name == "silu":
        return [helper.make_node("Sigmoid", [x], ["s"]), helper.make_node("Mul", [x, "s"], [y])]
    op = {"none": "Identity", "relu": "Relu", "gelu": "Gelu"}[name]
    return [helper.make_node(op, [x], [y])]


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def product(name, k, n, dtype):
    """The model, its weights and its bias."""
    w, b = random(k, n, seed=1) / np.sqrt(k), random(n, seed=2)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"], "product"),
             helper.make_node("Add", ["p", "b"], ["q"]), *activation(name, "q", "y")]
    return model(nodes, {"x": ["m", k]}, {"w": w, "b": b}, dtype), w, b


def check_product(device, dtype, rung, name, m, k, n):
    """Runs it three times, as recordings begin with the second; gives the rung that was used."""
    made, w, b = product(name, k, n, dtype)
    session = rlx.load(made, device=device, tf32=False, force=rung)
    x, w, b = (v.astype(dtype).astype(np.float64) for v in (random(m, k, seed=3), w, b))
    truth = ACTIVATIONS[name](x @ w + b)
    for _ in range(3):
        assert_network_output(session.run({"x": x.astype(dtype)})["y"], truth, dtype, "y")
    return session.explain()[0]["rung"]
