"""Models whose batch is larger than what a grid's y and z axes hold: 70,000."""

import numpy as np
from onnx import helper, numpy_helper

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
