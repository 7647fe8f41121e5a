"""Quantised operators of com.microsoft against NumPy in float64, by their documentation."""

import numpy as np
import pytest
from onnx import TensorProto

from rlx.errors import ModelError
from tests.onnx.test_contrib import run
from tests.tolerance import tolerance

FLOAT, UINT8, INT8 = TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT8


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def f32(v):
    return np.array(v, np.float32)


def u8(v):
    return np.array(v, np.uint8)


def ints(rng, dtype, *shape):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def real(x, scale, zero):
    return (x.astype(np.float64) - np.float64(zero)) * np.float64(scale)


def whole(y, scale, zero, dtype=np.uint8):
    info = np.iinfo(dtype)
    return np.clip(np.rint(y / np.float64(scale)) + np.float64(zero), info.min, info.max)


def near(found, expected):
    """Integers of a quantised result: float32 may round a tie the other way."""
    (y,) = found
    assert y.shape == expected.shape
    off = np.abs(y.astype(np.int64) - expected.astype(np.int64))
    assert off.max(initial=0) <= 1 and (off > 0).mean() < 0.01


def close(found, expected):
    np.testing.assert_allclose(found[0], expected, **tolerance("rounded", "float32"))


@pytest.mark.parametrize("op, function", [("QLinearAdd", np.add), ("QLinearMul", np.multiply)])
@pytest.mark.parametrize("dtype, type", [(np.uint8, UINT8), (np.int8, INT8)])
def test_sums_and_products(rng, op, function, dtype, type):
    x, y = ints(rng, dtype, 3, 4, 5), ints(rng, dtype, 4, 1)
    zeros = [np.array(v, dtype) for v in (5, 100, 7)]
    found = run(op, [x, f32(0.0213), zeros[0], y, f32([0.0517]), zeros[1], f32(0.0971), zeros[2]],
                (type,))
    result = function(real(x, f32(0.0213), 5), real(y, f32(0.0517), 100))
    near(found, whole(result, f32(0.0971), 7, dtype))


def test_zero_points_may_be_left_out(rng):
    x, y = ints(rng, np.int8, 2, 9), ints(rng, np.int8, 2, 9)
    found = run("QLinearAdd", [x, f32(0.0213), None, y, f32(0.0531), None, f32(0.0971)], (INT8,))
    near(found, whole(real(x, f32(0.0213), 0) + real(y, f32(0.0531), 0), f32(0.0971), 0, np.int8))
    with pytest.raises(ModelError, match="C_scale"):
        run("QLinearAdd", [x, f32(0.0213), None, y, f32(0.0531)], (INT8,))


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


FUNCTIONS = {
    "QLinearSigmoid": (lambda x: 1 / (1 + np.exp(-x)), {}),
    "QLinearLeakyRelu": (lambda x: np.where(x < 0, 0.25 * x, x), {"alpha": 0.25}),
    "QLinearSoftmax": (lambda x: softmax(x, 1), {"axis": 1, "opset": 13}),
    "QLinearGlobalAveragePool": (lambda x: x.mean((2, 3), keepdims=True), {}),
    "QLinearReduceMean": (lambda x: x.mean((1, 3)), {"axes": [1, 3], "keepdims": 0}),
}


@pytest.mark.parametrize("op", FUNCTIONS)
def test_functions_of_one_tensor(rng, op):
    function, attributes = FUNCTIONS[op]
    x = ints(rng, np.uint8, 2, 3, 4, 5)
    found = run(op, [x, f32(0.03), u8(120), f32(0.0071), u8(11)], (UINT8,), **attributes)
    near(found, whole(function(real(x, f32(0.03), 120)), f32(0.0071), 11))


def test_average_pool_channels_last(rng):
    x = ints(rng, np.uint8, 1, 4, 6, 3)
    found = run("QLinearAveragePool", [x, f32(0.0971), u8(9), f32(0.07), u8(3)], (UINT8,),
                kernel_shape=[2, 2], strides=[2, 2], channels_last=1)
    mean = real(x, f32(0.0971), 9).reshape(1, 2, 2, 3, 2, 3).mean((2, 4))
    near(found, whole(mean, f32(0.07), 3))


def test_global_average_pool_channels_last(rng):
    x = ints(rng, np.uint8, 2, 4, 6, 3)
    found = run("QLinearGlobalAveragePool", [x, f32(0.0971), u8(9), f32(0.07), u8(3)], (UINT8,),
                channels_last=1)
    near(found, whole(real(x, f32(0.0971), 9).mean((1, 2), keepdims=True), f32(0.07), 3))


def test_concat_and_where(rng):
    x, y = ints(rng, np.uint8, 2, 3), ints(rng, np.uint8, 2, 5)
    found = run("QLinearConcat", [f32(0.1), u8(3), x, f32(0.2), u8(9), y, f32(0.0531), u8(0)],
                (UINT8,), axis=1)
    both = np.concatenate([real(x, f32(0.2), 9), real(y, f32(0.0531), 0)], 1)
    near(found, whole(both, f32(0.1), 3))
    c = np.array([[True], [False]])
    found = run("QLinearWhere", [c, x, f32(0.2), u8(9), y[:, :3], f32(0.0531), u8(0), f32(0.1),
                                 u8(3)], (UINT8,))
    near(found, whole(np.where(c, real(x, f32(0.2), 9), real(y[:, :3], f32(0.0531), 0)), f32(0.1),
                      3))


def test_convolution_channels_last(rng):
    x, w = ints(rng, np.uint8, 1, 5, 5, 4), ints(rng, np.int8, 6, 4, 1, 1)
    found = run("QLinearConv", [x, f32(0.0971), u8(9), w, f32(0.02), np.int8(0), f32(0.5), u8(128)],
                (UINT8,), channels_last=1, strides=[2, 2])
    sums = real(x, f32(0.0971), 9)[:, ::2, ::2] @ real(w, f32(0.02), 0).reshape(6, 4).T
    near(found, whole(sums, f32(0.5), 128))


def test_matmul_integer_to_float(rng):
    x, w, bias = ints(rng, np.uint8, 3, 7, 16), ints(rng, np.int8, 16, 5), f32(np.arange(5))
    scale, zero = f32(rng.random(5) / 50), ints(rng, np.int8, 5)
    found = run("MatMulIntegerToFloat", [x, w, f32(0.1), scale, u8(30), zero, bias])
    close(found, real(x, f32(0.1), 30) @ real(w, scale, zero) + bias)


def dynamic(x):
    """x through uint8 and back, as DynamicQuantizeLinear has it."""
    low, high = min(x.min(), 0.0), max(x.max(), 0.0)
    scale = (high - low) / np.float32(255)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    return (np.clip(np.rint(x / scale) + zero, 0, 255).astype(float) - zero) * float(scale)


def test_dynamic_quantize_matmul(rng):
    x, w = f32(rng.normal(size=(6, 32))), ints(rng, np.int8, 32, 5)
    found = run("DynamicQuantizeMatMul", [x, w, f32([0.01]), np.array([3], np.int8)])
    close(found, dynamic(x) @ real(w, f32(0.01), 3))
    (y,) = run("DynamicQuantizeMatMul", [x * 0, w, f32([0.01])])
    np.testing.assert_array_equal(y, 0)


@pytest.mark.parametrize("quantised", [False, True])
def test_qgemm(rng, quantised):
    x, w = ints(rng, np.uint8, 12, 6), ints(rng, np.int8, 5, 12)
    c = rng.integers(-5000, 5000, 5).astype(np.int32)
    scale = f32(rng.random(5) / 50 + 0.01)
    more = [f32(0.3), u8(128)] if quantised else []
    found = run("QGemm", [x, f32(0.1), u8(30), w, scale, np.zeros(5, np.int8), c, *more],
                (UINT8,) if quantised else (FLOAT,), alpha=0.5, transA=1, transB=1)
    sums = (x.T.astype(float) - 30) @ w.T.astype(float) + c
    y = 0.5 * np.float64(f32(0.1)) * scale.astype(float) * sums
    near(found, whole(y, f32(0.3), 128)) if quantised else close(found, y)


def packed_bits(values, bits):
    """Values along the last axis in bytes, the first in the lowest bits."""
    each = 8 // bits
    values = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, -values.shape[-1] % each)])
    groups = values.reshape(*values.shape[:-1], -1, each).astype(np.uint64)
    return (groups << (np.arange(each, dtype=np.uint64) * bits)).sum(-1).astype(np.uint8)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("zeros", ["none", "packed", "float"])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_matmul_n_bits(rng, bits, zeros, constant):
    k, n, block = 40, 6, 16
    blocks = -(-k // block)
    w = rng.integers(0, 1 << bits, (n, blocks, block))
    scale = f32(rng.random((n, blocks)) / 8)
    x, bias = f32(rng.normal(size=(2, 3, k))), f32(rng.normal(size=n))
    zero = {"none": np.full((n, blocks), 1 << (bits - 1)),
            "packed": rng.integers(0, 1 << bits, (n, blocks)),
            "float": f32(rng.random((n, blocks)) * 3)}[zeros]
    given = {"none": None, "packed": packed_bits(zero, bits).reshape(-1), "float": zero}[zeros]
    whole_w = ((w - zero[..., None].astype(float)) * scale[..., None]).reshape(n, -1)[:, :k]
    found = run("MatMulNBits", [x, packed_bits(w, bits), scale.reshape(-1), given, None, bias],
                constant=(1, 2, 3) if constant else (), K=k, N=n, bits=bits, block_size=block)
    close(found, x.astype(float) @ whole_w.T + bias)


@pytest.mark.parametrize("zeros", [False, True])
def test_gather_block_quantized(rng, zeros):
    w, scale = rng.integers(0, 16, (9, 32)), f32(rng.random((9, 2)))
    zero = rng.integers(0, 16, (9, 2)) if zeros else np.full((9, 2), 8)
    indices = np.array([[3, 8], [0, 3]])
    found = run("GatherBlockQuantized",
                [packed_bits(w, 4), indices, scale, packed_bits(zero, 4) if zeros else None],
                bits=4, block_size=16, gather_axis=0, quantize_axis=1)
    table = (w.reshape(9, 2, 16) - zero[..., None]) * scale[..., None].astype(float)
    close(found, table.reshape(9, 32)[indices])


def test_qattention(rng):
    x, w = ints(rng, np.uint8, 2, 4, 12), ints(rng, np.int8, 12, 36)
    bias = f32(rng.normal(size=36))
    found = run("QAttention", [x, w, bias, f32(0.02), f32(0.01), None, u8(128), np.int8(0)],
                (FLOAT,), num_heads=3, unidirectional=1)
    y = real(x, f32(0.02), 128) @ real(w, f32(0.01), 0) + bias
    q, k, v = (p.reshape(2, 4, 3, 4).swapaxes(1, 2) for p in np.split(y, 3, 2))
    scores = q @ k.swapaxes(2, 3) / 2
    scores[..., np.triu(np.ones((4, 4), bool), 1)] = -np.inf
    close(found, (softmax(scores, 3) @ v).swapaxes(1, 2).reshape(2, 4, 12))


def test_qembed_layer_norm(rng):
    ids = rng.integers(0, 10, (2, 5)).astype(np.int32)
    tables = [ints(rng, np.uint8, *s) for s in ((10, 8), (6, 8), (8,), (8,))]
    scales, zeros = (0.1, 0.2, 0.01, 0.02), (3, 100, 20, 50)
    words, places, gamma, beta = (real(t, f32(s), z) for t, s, z in zip(tables, scales, zeros))
    (w, p, g, t), (sw, sp, sg, st), (zw, zp, zg, zt) = (
        tables, map(f32, scales), map(u8, zeros))
    inputs = [ids, None, w, p, None, g, t, None, sw, sp, None, sg, st, zw, zp, None, zg, zt]
    found = run("QEmbedLayerNormalization", inputs, (FLOAT, TensorProto.INT32), epsilon=1e-6)
    x = words[ids] + places[:5]
    centred = x - x.mean(-1, keepdims=True)
    close(found, centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6) * gamma + beta)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def rounded(x: np.ndarray) -> tuple[np.ndarray, float]:
    """DynamicQuantizeLinear by its text, in its float32: (levels less the zero point, scale)."""
    x = f32(x)
    low, high = min(x.min(), np.float32(0)), max(x.max(), np.float32(0))
    scale = (high - low) / np.float32(255) or np.float32(1)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    return (np.clip(np.rint(x / scale) + zero, 0, 255) - zero).astype(np.int64), float(scale)


def lstm_layer(x, w, r, scales, zeros, bias, lengths, reverse: bool) -> np.ndarray:
    """One direction: integer products of rounded x and rounded state, gates in float64."""
    ints_w, ints_r = (v.astype(np.int64) - z.astype(np.int64) for v, z in zip((w, r), zeros))
    levels, scale = rounded(x)
    from_x = levels @ ints_w * (scale * scales[0].astype(float))
    steps, batch, _ = x.shape
    h = c = np.zeros((batch, r.shape[0]))
    y = np.zeros((steps, *h.shape))
    for t in range(steps)[::-1] if reverse else range(steps):
        live = t < lengths
        levels, scale = rounded(h[live])
        gates = from_x[t, live] + levels @ ints_r * (scale * scales[1].astype(float)) + bias
        i, o, f, g = np.split(gates, 4, 1)
        h, c = h.copy(), c.copy()
        c[live] = sigmoid(f) * c[live] + sigmoid(i) * np.tanh(g)
        h[live] = sigmoid(o) * np.tanh(c[live])
        y[t, live] = h[live]
    return y


@pytest.mark.parametrize("each", [False, True], ids=["tensor", "channel"])
@pytest.mark.parametrize("weights", [np.int8, np.uint8])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_dynamic_quantize_lstm(rng, each, weights, direction):
    steps, batch, size, hidden = 9, 3, 21, 20
    count = 2 if direction == "bidirectional" else 1
    x = f32(rng.normal(size=(steps, batch, size)))
    w, r = (ints(rng, weights, count, n, 4 * hidden) for n in (size, hidden))
    shape = (count, 4 * hidden) if each else (count,)
    scales = [f32(rng.random(shape) / 200 + 0.002) for _ in range(2)]
    zeros = [ints(rng, weights, *shape) for _ in range(2)]
    bias = f32(rng.normal(size=(count, 8 * hidden)))
    lengths = np.array([9, 4, 7], np.int32)
    found = run("DynamicQuantizeLSTM", [x, w, r, bias, lengths, None, None, None, scales[0],
                                        zeros[0], scales[1], zeros[1]],
                hidden_size=hidden, direction=direction)
    expected = [lstm_layer(x, w[d], r[d], [s[d] for s in scales], [z[d] for z in zeros],
                           bias[d, :4 * hidden].astype(float) + bias[d, 4 * hidden:], lengths,
                           direction == "reverse" or d == 1) for d in range(count)]
    close(found, np.stack(expected, 1))
