"""Operators of com.microsoft against NumPy in float64, by their documentation."""

import math

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import rlx
from rlx.errors import InputError, UnsupportedError
from tests.tolerance import tolerance

FLOAT, INT32, INT64, BOOL = (TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64,
                             TensorProto.BOOL)
MS = "com.microsoft"


def model(op, inputs, outputs, domain=MS, constant=(), **attributes):
    """One node; an input may be None, an output type 0 for one that is not asked for. The inputs
    with the positions `constant` are weights."""
    given = {f"x{k}": x for k, x in enumerate(inputs) if x is not None}
    names = [f"x{k}" if x is not None else "" for k, x in enumerate(inputs)]
    made = [f"y{k}" if type else "" for k, type in enumerate(outputs)]
    weights = [f"x{k}" for k in constant]
    node = helper.make_node(op, names, made, domain=domain, **attributes)
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
         for n, x in given.items() if n not in weights],
        [helper.make_tensor_value_info(n, type, None) for n, type in zip(made, outputs) if n],
        [numpy_helper.from_array(given.pop(n), n) for n in weights if n in given])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(MS, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), given


def run(op, inputs, outputs=(FLOAT,), **attributes):
    built, given = model(op, inputs, outputs, **attributes)
    return list(rlx.run(built, given, device="cpu").values())


def check(found, expected):
    assert len(found) == len(expected)
    for y, want in zip(found, expected):
        assert y.shape == want.shape
        if y.dtype.kind == "i":
            np.testing.assert_array_equal(y, want)
        else:
            np.testing.assert_allclose(y, want, **tolerance("rounded", "float32"))


@pytest.fixture
def normal():
    rng = np.random.default_rng(0)
    return lambda *shape: rng.standard_normal(shape).astype(np.float32)


def erf(x):
    return np.vectorize(math.erf)(x.astype(np.float64))


def gelu(x):
    return x.astype(np.float64) / 2 * (1 + erf(x / np.sqrt(2)))


def gelu_tanh(x):
    x = x.astype(np.float64)
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def softmax(x, axes):
    e = np.exp(x - x.max(axes, keepdims=True))
    return e / e.sum(axes, keepdims=True)


def layer_norm(x, scale, bias, epsilon=1e-12):
    x = x.astype(np.float64)
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * scale + bias


def rms_norm(x, scale, epsilon=1e-12):
    x = x.astype(np.float64)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * scale


def test_gelus(normal):
    x, bias = normal(2, 5, 8), normal(8)
    check(run("Gelu", [x]), [gelu(x)])
    check(run("BiasGelu", [x, bias]), [gelu(x + bias)])
    check(run("FastGelu", [x]), [gelu_tanh(x)])
    check(run("FastGelu", [x, bias]), [gelu_tanh(x + bias)])
    check(run("QuickGelu", [x]), [x * sigmoid(1.702 * x)])
    check(run("QuickGelu", [x], alpha=1.0), [x * sigmoid(x)])
    check(run("BiasSplitGelu", [x, bias]), [(x + bias)[..., :4] * gelu((x + bias)[..., 4:])])


def test_bias_add_and_softmax(normal):
    x, bias, skip = normal(2, 3, 4, 5), normal(5), normal(2, 3, 4, 5)
    check(run("BiasAdd", [x, bias, skip]), [x + bias + skip])
    inner = normal(2, 1, 4, 5)
    check(run("BiasSoftmax", [x, inner], axis=2, is_inner_broadcast=1),
          [softmax((x + inner).astype(np.float64), (2, 3))])
    outer = normal(4, 5)
    check(run("BiasSoftmax", [x, outer], axis=3, is_inner_broadcast=0),
          [softmax((x + outer).astype(np.float64), (3,))])


def test_skip_norms(normal):
    x, skip, scale, shift, bias = normal(2, 5, 8), normal(2, 5, 8), normal(8), normal(8), normal(8)
    check(run("SkipLayerNormalization", [x, skip, scale, shift, bias], (FLOAT, 0, 0, FLOAT)),
          [layer_norm(x + skip + bias, scale, shift), x + skip + bias])
    check(run("SkipLayerNormalization", [x, skip[0], scale]), [layer_norm(x + skip[0], scale, 0)])
    check(run("SkipSimplifiedLayerNormalization", [x, skip, scale, bias], (FLOAT, 0, 0, FLOAT)),
          [rms_norm(x + skip + bias, scale), x + skip + bias])
    wide = x.astype(np.float64)
    check(run("SimplifiedLayerNormalization", [x, scale], (FLOAT, FLOAT), domain="", epsilon=1e-3),
          [rms_norm(x, scale, 1e-3), 1 / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-3)])


def test_embed_layer_norm(normal):
    words, places, segments, scale, shift = (normal(n, 8) for n in (10, 6, 2, 1, 1))
    ids = np.array([[1, 2, 3, 9], [4, 0, 7, 8]], np.int32)
    kinds = np.array([[0, 0, 1, 1], [1, 1, 0, 0]], np.int32)
    mask = np.array([[1, 1, 0, 0], [1, 1, 1, 1]], np.int32)
    total = words[ids] + places[:4] + segments[kinds]
    check(run("EmbedLayerNormalization", [ids, kinds, words, places, segments, scale[0], shift[0],
                                          mask], (FLOAT, INT32, FLOAT)),
          [layer_norm(total, scale[0], shift[0]), np.array([2, 4]), total])
    at = np.array([[3, 2, 1, 0]], np.int32)
    total = words[ids] + places[at]
    check(run("EmbedLayerNormalization", [ids, None, words, places, None, scale[0], shift[0], None,
                                          at], (FLOAT, INT32)),
          [layer_norm(total, scale[0], shift[0]), np.array([0, 0])])


@pytest.mark.parametrize("name", ["FusedMatMul", "TransposeMatMul"])
@pytest.mark.parametrize("a", [0, 1])
@pytest.mark.parametrize("b", [0, 1])
def test_fused_matmul(normal, name, a, b):
    x, y = normal(2, 3, 5, 4), normal(2, 3, 4, 6)
    given = [np.swapaxes(x, 2, 3).copy() if a else x, np.swapaxes(y, 2, 3).copy() if b else y]
    check(run(name, given, transA=a, transB=b, alpha=0.5),
          [0.5 * x.astype(np.float64) @ y.astype(np.float64)])
    if name == "FusedMatMul":  # the matrix' first axis before the batch
        moved = [np.moveaxis(v, 2, 0).copy() for v in given]
        check(run(name, moved, transA=a, transB=b, transBatchA=1, transBatchB=1),
              [x.astype(np.float64) @ y.astype(np.float64)])


def conv(x, w, stride=1):
    n, _, h, width = x.shape
    k = w.shape[-1]
    y = np.zeros((n, w.shape[0], (h - k) // stride + 1, (width - k) // stride + 1))
    for i in range(y.shape[2]):
        for j in range(y.shape[3]):
            patch = x[:, :, i * stride:i * stride + k, j * stride:j * stride + k]
            y[:, :, i, j] = np.einsum("nchw,mchw->nm", patch.astype(np.float64), w)
    return y


ACTIVATIONS = {
    "Relu": ([], lambda y: np.maximum(y, 0)),
    "LeakyRelu": ([0.25], lambda y: np.where(y < 0, 0.25 * y, y)),
    "Sigmoid": ([], sigmoid),
    "Tanh": ([], np.tanh),
    "Clip": ([-0.5, 0.75], lambda y: np.clip(y, -0.5, 0.75)),
    "HardSigmoid": ([0.3, 0.4], lambda y: np.clip(0.3 * y + 0.4, 0, 1)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_fused_products(normal, name):
    params, function = ACTIVATIONS[name]
    x, w, bias, z = normal(2, 3, 6, 7), normal(4, 3, 3, 3), normal(4), normal(2, 4, 4, 5)
    given = {"activation": name} | ({"activation_params": params} if params else {})
    plain = conv(x, w) + bias[:, None, None]
    check(run("FusedConv", [x, w, bias, z], **given), [function(plain + z)])
    last = np.moveaxis(x, 1, -1).copy()
    check(run("NhwcFusedConv", [last, w, bias], **given),
          [np.moveaxis(function(plain), 1, -1)])
    check(run("NhwcConv", [last, w, bias]), [np.moveaxis(plain, 1, -1)])
    gemm = {k: v for k, v in zip(("activation_alpha", "activation_beta"), params)}
    a, b = normal(3, 4), normal(4, 5)
    check(run("FusedGemm", [a, b, bias[:1]], activation=name, **gemm),
          [function(a.astype(np.float64) @ b + bias[0])])


def test_transposed_conv_with_pads_as_input(normal):
    x, w = normal(1, 3, 4, 4), normal(3, 2, 3, 3)
    full = np.zeros((1, 2, 9, 9))
    for i in range(4):
        for j in range(4):
            full[:, :, 2 * i:2 * i + 3, 2 * j:2 * j + 3] += np.einsum(
                "nc,cmhw->nmhw", x[:, :, i, j].astype(np.float64), w)
    pads = np.array([1, 0, 1, 2])
    check(run("ConvTransposeWithDynamicPads", [x, w, pads], strides=[2, 2]), [full[:, :, 1:8, :7]])


def test_group_norms(normal):
    x, scale, shift, skip, bias = normal(2, 3, 4, 8), normal(8), normal(8), normal(2, 8), normal(8)

    def expected(x):
        g = x.astype(np.float64).reshape(2, 3, 4, 2, 4)
        centred = g - g.mean((1, 2, 4), keepdims=True)
        y = centred / np.sqrt((centred**2).mean((1, 2, 4), keepdims=True) + 1e-5)
        return y.reshape(x.shape) * scale + shift

    y = expected(x)
    check(run("GroupNorm", [x, scale, shift], groups=2, activation=1), [y * sigmoid(y)])
    first = np.moveaxis(x, -1, 1).copy()
    check(run("GroupNorm", [first, scale, shift], groups=2, activation=0, channels_last=0),
          [np.moveaxis(y, -1, 1)])
    total = x + skip[:, None, None] + bias
    check(run("SkipGroupNorm", [x, scale, shift, skip, bias], (FLOAT, FLOAT), groups=2,
              activation=0), [expected(total), total])


def test_matrices_and_crops(normal):
    x = normal(2, 4, 4) + 3 * np.eye(4, dtype=np.float32)
    check(run("Inverse", [x]), [np.linalg.inv(x.astype(np.float64))])
    check(run("Trilu", [x], upper=0), [np.tril(x)])
    check(run("ExpandDims", [x, np.array(1, np.int32)]), [x[:, None]])
    check(run("Pad", [x, np.array([0, 1, 0, 0, 0, 2])]), [np.pad(x, ((0, 0), (1, 0), (0, 2)))])
    check(run("GatherND", [x, np.array([[0, 1], [1, 3]])]), [x[[0, 1], [1, 3]]])
    image = normal(2, 3, 5, 9)
    whole = np.array([[0, 0, 1, 1], [1, 0, 0, 1]], np.float32)
    found = run("CropAndResize", [image, whole, np.array([1, 0], np.int32),
                                  np.array([5, 9], np.int32)])
    check(found, [np.stack([image[1], image[0, :, ::-1]])])


def test_distances_and_numbers(normal):
    a, c = normal(5, 7), normal(6, 7)
    apart = ((a[:, None].astype(np.float64) - c) ** 2).sum(-1)
    check(run("CDist", [a, c]), [apart])
    check(run("CDist", [a, c], metric="euclidean"), [np.sqrt(apart)])
    x = np.array([2, 1, 1, 3, 4, 3], np.float32)
    check(run("Unique", [x], (FLOAT, INT64, INT64)),
          [np.array([2, 1, 3, 4], np.float32), np.array([0, 1, 1, 2, 3, 2]),
           np.array([1, 2, 2, 1])])
    check(run("Range", [np.float32(1).reshape(()), np.float32(4).reshape(())]),
          [np.array([1, 2, 3], np.float32)])
    u, v = normal(3, 2), normal(3, 2)
    z = [(p[:, 0] + 1j * p[:, 1]).astype(np.complex128) for p in (u, v)]
    for name, y in (("ComplexMul", z[0] * z[1]), ("ComplexMulConj", z[0] * z[1].conj())):
        check(run(name, [u, v]), [np.stack([y.real, y.imag], -1)])
    for bad, only_inf, only_nan in ((1, True, True), (np.inf, False, True),
                                    (np.nan, True, False)):
        x[3] = bad
        assert run("IsAllFinite", [u, x], (BOOL,))[0] == np.isfinite(bad)
        assert run("IsAllFinite", [u, x], (BOOL,), isinf_only=1)[0] == only_inf
        assert run("IsAllFinite", [u, x], (BOOL,), isnan_only=1)[0] == only_nan
    x, scale, gate = normal(2, 3, 8), normal(4), normal(2, 3, 8)
    y = rms_norm(x.reshape(2, 3, 2, 4), scale, 1e-5).reshape(x.shape)
    check(run("GatedRMSNorm", [x, scale, gate]), [y * gate * sigmoid(gate)])
    image, grid = normal(1, 2, 3, 3), np.zeros((1, 1, 1, 2), np.float32)
    check(run("GridSample", [image, grid]), [image[:, :, 1:2, 1:2]])


def test_refusals(normal):
    x, w = normal(1, 3, 6, 6), normal(4, 3, 3, 3)
    with pytest.raises(UnsupportedError, match="auto_pad"):
        run("ConvTransposeWithDynamicPads", [x, w.swapaxes(0, 1).copy()], auto_pad="SAME_UPPER")
    with pytest.raises(rlx.Error, match="activation"):
        run("FusedConv", [x, w], activation="Gelu")
    with pytest.raises(InputError, match="batch index"):
        run("CropAndResize", [x, np.ones((1, 4), np.float32), np.array([1], np.int32),
                              np.array([2, 2], np.int32)])
