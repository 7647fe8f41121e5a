"""Models whose batch is larger than what a grid's y and z axes hold, 70,000, and convolutions of
one image of more than 2^31 elements."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tests.products import model, random

BATCH = 70_000


def _softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _attention(q, k, v):
    return _softmax(q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3])) @ v


def _instance_norm(x):
    d = x - x.mean(2, keepdims=True)
    return d / np.sqrt((d * d).mean(2, keepdims=True) + 1e-5)


def _scatter(x, i, u):
    y = x.copy()
    y[i[:, 0]] = u
    return y


_last = np.arange(BATCH)[::-1, None].copy()
# name -> op, attributes, shapes of the inputs, constants, what it gives in float64
CASES = {
    "matmul": ("MatMul", {}, [(BATCH, 2, 8), (BATCH, 8, 4)], [], np.matmul),
    "softmax": ("Softmax", {"axis": 2}, [(BATCH, 2, 5)], [], _softmax),
    "softmax inner": ("Softmax", {"axis": 1}, [(BATCH, 5, 3)], [],
                      lambda x: _softmax(x.swapaxes(1, 2)).swapaxes(1, 2)),
    "transpose": ("Transpose", {"perm": [0, 2, 1]}, [(BATCH, 3, 5)], [],
                  lambda x: x.swapaxes(1, 2)),
    "attention": ("Attention", {}, [(BATCH, 1, 2, 8)] * 3, [], _attention),
    "norm": ("InstanceNormalization", {}, [(BATCH, 2, 6)], [np.ones(2), np.zeros(2)],
             lambda x, scale, bias: _instance_norm(x)),
    "conv": ("Conv", {}, [(BATCH, 1, 3, 3)], [np.ones((2, 1, 3, 3))],
             lambda x, w: np.repeat(x.sum((2, 3), keepdims=True), 2, 1)),
    "conv in tiles": ("Conv", {}, [(BATCH, 4, 2, 2)], [np.ones((9, 4, 2, 2))],
                      lambda x, w: np.repeat(x.sum((1, 2, 3), keepdims=True), 9, 1)),
    "pool": ("MaxPool", {"kernel_shape": [2, 2]}, [(BATCH, 1, 2, 3)], [],
             lambda x: np.maximum(x[..., :-1], x[..., 1:]).max(2, keepdims=True)),
    "reduce": ("ReduceMax", {"keepdims": 0}, [(BATCH, 5, 3)], [np.array([1])],
               lambda x, axes: x.max(1)),
    "gather": ("GatherND", {}, [(BATCH, 3)], [_last], lambda x, i: x[i[:, 0]]),
    "scatter": ("ScatterND", {}, [(BATCH, 3)], [_last, random(BATCH, 3, seed=5)], _scatter),
}


def large(name):
    """The model, its feeds, and its output in float64."""
    op, attributes, shapes, constants, truth = CASES[name]
    feeds = {f"x{k}": random(*shape, seed=k).astype(np.float32) for k, shape in enumerate(shapes)}
    given = {f"c{k}": c for k, c in enumerate(constants)}
    node = helper.make_node(op, [*feeds, *given], ["y"], **attributes)
    reals = {n: c for n, c in given.items() if c.dtype.kind == "f"}
    made = model([node], {n: list(x.shape) for n, x in feeds.items()}, reals, "float32")
    made.opset_import[0].version = 23
    made.graph.initializer.extend(numpy_helper.from_array(c, n) for n, c in given.items()
                                  if n not in reals)
    values = [x.astype(np.float64) for x in feeds.values()] + [
        c if c.dtype.kind == "i" else c.astype(np.float32).astype(np.float64)
        for c in given.values()]
    return made, feeds, truth(*values)


# name -> the rung, the filters: x has 8 channels.
IMAGES = {"tensor cores": ("tensor core convolution", 16), "tiles": ("kernel", 16),
          "direct": ("kernel", 1)}
WIDTH = 16_392  # times 16,384 rows and 8 channels: a little more than 2^31


def large_image(name):
    """The model, the rung to force, feeds, and the last three pixels of the last filter: x is made
    on the device, -1, 0 or 1 by column, and what is read of it is known."""
    rung, filters = IMAGES[name]
    half = TensorProto.FLOAT16
    ints = {"n": [1, 8, 16_384, WIDTH], "from": [filters - 1, 16_383, WIDTH - 3],
            "to": [filters, 16_384, WIDTH], "axes": [1, 2, 3]}
    value = helper.make_tensor("v", half, [1], [1.0])
    nodes = [helper.make_node("ConstantOfShape", ["n"], ["a"], value=value),
             helper.make_node("Mul", ["a", "row"], ["x"]),
             helper.make_node("Conv", ["x", "w"], ["c"], "conv"),
             helper.make_node("Slice", ["c", "from", "to", "axes"], ["y"])]
    w = (np.arange(filters * 8).reshape(filters, 8, 1, 1) % 5 - 1).astype(np.float16)
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("row", half, [1, WIDTH])],
                              [helper.make_tensor_value_info("y", half, None)],
                              [numpy_helper.from_array(w, "w")] +
                              [helper.make_tensor(k, TensorProto.INT64, [len(v)], v)
                               for k, v in ints.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    row = (np.arange(WIDTH) % 3 - 1).astype(np.float16)[None]
    truth = w[-1].astype(np.float64).sum() * row[0, -3:].astype(np.float64)
    return made, rung, {"row": row}, truth.reshape(1, 1, 1, 3)
