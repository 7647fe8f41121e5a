"""Each rung of products, convolutions and attention on a GPU, forced, against float64."""

import numpy as np
from onnx import helper
import pytest

import rlx
from tests.products import ACTIVATIONS, check_product, model, random
from tests.tolerance import assert_network_output

SHAPES = [(256, 512, 1024), (1, 3, 2), (7, 33, 65), (128, 768, 3072)]
CONV = "tensor core convolution"
RUNGS = ["", "cublaslt", "cublaslt + region", "tensor cores", "gemv", "kernel"]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("m, k, n", SHAPES)
def test_products(gpu, dtype, rung, name, m, k, n):
    used = check_product(gpu, dtype, rung, name, m, k, n)
    if rung == "cublaslt" or (rung.startswith("cublaslt") and name != "none"):
        assert used.startswith("cublaslt")
    assert rung != "kernel" or not used.startswith("cublaslt")
    takes = {"tensor cores": dtype == "float16", "gemv": m <= 16}  # TF32 is off
    assert not takes.get(rung) or used == rung


@pytest.mark.parametrize("rung", ["tensor cores", "gemv"])
def test_a_product_of_many_batches(gpu, rung):
    """More of them than a grid has blocks along y or z."""
    x, w = random(70_000, 2, 16, seed=1), random(70_000, 16, 8, seed=2)
    made = model([helper.make_node("MatMul", ["x", "w"], ["y"])],
                 {"x": list(x.shape), "w": list(w.shape)}, {}, "float16")
    feeds = {"x": x.astype("float16"), "w": w.astype("float16")}
    with rlx.load(made, device=gpu, force=rung) as session:
        found = session.run(feeds)["y"]
        assert session.explain()[0]["rung"] == rung
    truth = feeds["x"].astype(np.float64) @ feeds["w"].astype(np.float64)
    assert_network_output(found, truth, "float16", "y")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", ["gelu", "silu"])
def test_products_of_a_large_network(gpu, dtype, name):
    """At this size the library's product and its epilogue are taken without being asked for."""
    assert check_product(gpu, dtype, "", name, 1024, 4096, 4096).startswith("cublaslt")


def convolve(x, w, b, stride, pad, groups):
    n, c, h, wd = x.shape
    m, cg, r, s = w.shape
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    oh, ow = (h + 2 * pad - r) // stride + 1, (wd + 2 * pad - s) // stride + 1
    y = np.zeros((n, m, oh, ow))
    for g in range(groups):
        xs, ws = x[:, g * cg:(g + 1) * cg], w[g * (m // groups):(g + 1) * (m // groups)]
        for i in range(r):
            for j in range(s):
                window = xs[:, :, i:i + stride * oh:stride, j:j + stride * ow:stride]
                y[:, g * (m // groups):(g + 1) * (m // groups)] += np.einsum(
                    "nchw,mc->nmhw", window, ws[:, :, i, j])
    return y + b[:, None, None]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("rung", ["", "cudnn", "cudnn + region", CONV, "kernel"])
@pytest.mark.parametrize("channels, filters, size, kernel, stride, groups", [
    (16, 32, 14, 3, 1, 1), (3, 16, 33, 7, 2, 1), (32, 32, 14, 3, 1, 32), (8, 24, 9, 1, 1, 1),
    (24, 48, 12, 5, 2, 3), (256, 72, 7, 3, 1, 1),
])
@pytest.mark.parametrize("residual", [False, True])
def test_convolutions(gpu, dtype, rung, channels, filters, size, kernel, stride, groups, residual):
    w = random(filters, channels // groups, kernel, kernel, seed=1) / kernel
    b, x = random(filters, seed=2), random(2, channels, size, size, seed=3)
    pad = kernel // 2
    out = (size + 2 * pad - kernel) // stride + 1
    z = random(2, filters, out, out, seed=4)
    conv = helper.make_node("Conv", ["x", "w", "b"], ["c"], strides=[stride] * 2, pads=[pad] * 4,
                            group=groups)
    last = [helper.make_node("Add", ["c", "z"], ["a"]), helper.make_node("Relu", ["a"], ["y"])]
    nodes = [conv, *(last if residual else [helper.make_node("Relu", ["c"], ["y"])])]
    given = {"x": [2, channels, size, size]} | ({"z": list(z.shape)} if residual else {})
    session = rlx.load(model(nodes, given, {"w": w, "b": b}, dtype), device=gpu, tf32=False,
                       force=rung)
    x, w, b, z = (v.astype(dtype).astype(np.float64) for v in (x, w, b, z))
    truth = np.maximum(convolve(x, w, b, stride, pad, groups) + (z if residual else 0), 0)
    feeds = {"x": x.astype(dtype)} | ({"z": z.astype(dtype)} if residual else {})
    for _ in range(3):
        assert_network_output(session.run(feeds)["y"], truth, dtype, "y")
    if rung == CONV and dtype == "float16" and groups < channels:
        assert rung in [row["rung"] for row in session.explain()]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("rung", ["", "cudnn", "kernel"])
@pytest.mark.parametrize("queries, keys, mask", [(64, 64, False), (1, 96, False), (48, 80, True)])
def test_attention(gpu, dtype, rung, queries, keys, mask):
    heads, depth = 4, 64
    q, k, v = (random(2, heads, n, depth, seed=s) for s, n in enumerate((queries, keys, keys)))
    m = np.where(random(2, 1, 1, keys, seed=9) > 0.5, -1e4, 0.0)
    inputs = {"q": q, "k": k, "v": v} | ({"m": m} if mask else {})
    node = helper.make_node("Attention", list(inputs), ["y"])
    graph = model([node], {n: list(a.shape) for n, a in inputs.items()}, {}, dtype)
    graph.opset_import[0].version = 23
    session = rlx.load(graph, device=gpu, tf32=False, force=rung)
    feeds = {n: a.astype(dtype) for n, a in inputs.items()}
    q, k, v = (feeds[n].astype(np.float64) for n in "qkv")
    scores = q @ k.swapaxes(2, 3) / np.sqrt(depth) + (feeds["m"].astype(float) if mask else 0)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    truth = scores / scores.sum(-1, keepdims=True) @ v
    for _ in range(3):
        assert_network_output(session.run(feeds)["y"], truth, dtype, "y")


def test_attention_of_many_lengths_compiles_no_plan_for_each(gpu):
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"])
    shape = ["b", 3, "n", 64]
    graph = model([node], {name: shape for name in "qkv"}, {}, "float16")
    graph.opset_import[0].version = 23
    rungs = []
    with rlx.load(graph, device=gpu) as session:
        for length in range(20, 30):
            feeds = {n: random(1, 3, length, 64, seed=s).astype("float16")
                     for s, n in enumerate("qkv")}
            session.run(feeds)
            rungs.append(session.explain()[-1]["rung"])
    assert rungs[-1] == "tensor core attention", rungs
