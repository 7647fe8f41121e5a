"""Fused operators of com.microsoft that exporters and optimisers emit, as compositions."""

from __future__ import annotations

from typing import Literal

from rlx.errors import ModelError, UnsupportedError
from rlx.importer.ops import activation as functions, conv as convolution, norm
from rlx.importer.ops.checks import fits, in_range, rank_is, window
from rlx.importer.ops.matmul import gemm, matmul
from rlx.importer.registry import AutoPad, Floats, Ints, op
from rlx.ir.build import DType, Value, apply

MS = "com.microsoft"


@op("Gelu", domain=MS)
def gelu(b, x):
    return b.scalar("gelu", x)


@op("BiasGelu", domain=MS)
def bias_gelu(b, x, bias):
    return b.scalar("gelu", _biased(b, x, bias))


@op("FastGelu", domain=MS)
def fast_gelu(b, x, bias=None):
    return b.scalar("gelu_tanh", x if bias is None else _biased(b, x, bias))


def _biased(b, x: Value, bias: Value) -> Value:
    return b.scalar("add", x, fits(b, bias, x.shape, "the bias"))


@op("QuickGelu", domain=MS)
def quick_gelu(b, x, *, alpha: float = 1.702):
    return functions.swish(b, x, alpha=alpha)


@op("BiasSplitGelu", domain=MS)
def bias_split_gelu(b, x, bias):
    x = _biased(b, x, bias)
    half = apply("floordiv", x.shape[-1], 2)
    left, right = b.split(x, x.rank - 1, (half, half))
    return b.scalar("mul", left, b.scalar("gelu", right))


@op("BiasAdd", domain=MS)
def bias_add(b, x, bias, skip):
    return b.scalar("add", _biased(b, x, bias), fits(b, skip, x.shape, "skip"))


@op("BiasSoftmax", domain=MS)
def bias_softmax(b, x, bias, *, axis: int = 1, is_inner_broadcast: int):
    """The bias lacks axes before `axis`, or spans them and is 1 in front of it."""
    axis = b.axis(axis, x.rank)
    if bias.rank < x.rank and is_inner_broadcast:
        lead = bias.rank - (x.rank - axis)
        ones = (1,) * (x.rank - bias.rank)
        bias = b.reshape(bias, (*bias.shape[:lead], *ones, *bias.shape[lead:]))
    return functions.softmax_1(b, _biased(b, x, bias), axis=axis)


@op("SimplifiedLayerNormalization", since=1)
@op("SimplifiedLayerNormalization", domain=MS)
def simplified_layer_norm(b, x, scale, *, axis: int = -1, epsilon: float = 1e-5,
                          stash_type: int = 1):
    """RMSNormalization, whose inverse deviations may be asked for."""
    axis = b.axis(axis, x.rank)
    y = norm.rms_normalization(b, x, scale, axis=axis, epsilon=epsilon, stash_type=stash_type)
    if len(b.wanted) < 2 or not b.wanted[1]:
        return y
    wide = b.cast(x, DType(stash_type))
    square = b.reduce("mean", b.scalar("mul", wide, wide), tuple(range(axis, x.rank)))
    return y, b.scalar("rsqrt", b.scalar("add", square, b.like(epsilon, wide)))


@op("SkipLayerNormalization", domain=MS)
def skip_layer_norm(b, x, skip, gamma, beta=None, bias=None, *, epsilon: float = 1e-12):
    total = _skip_sum(b, x, skip, bias)
    y, *stats = norm.layer_normalization(b, total, gamma, beta, epsilon=epsilon)
    return y, *stats, total


@op("SkipSimplifiedLayerNormalization", domain=MS)
def skip_simplified_layer_norm(b, x, skip, gamma, bias=None, *, epsilon: float = 1e-12):
    total = _skip_sum(b, x, skip, bias)
    return norm.rms_normalization(b, total, gamma, epsilon=epsilon), None, None, total


def _skip_sum(b, x: Value, skip: Value, bias: Value | None) -> Value:
    total = b.scalar("add", x, fits(b, skip, x.shape, "skip"))
    return total if bias is None else _biased(b, total, bias)


@op("EmbedLayerNormalization", domain=MS)
def embed_layer_norm(b, ids, segment_ids=None, words=None, positions=None, segments=None,
                     gamma=None, beta=None, mask=None, position_ids=None, *,
                     epsilon: float = 1e-12, mask_index_type: int = 0):
    """Sums the embeddings of words, positions and segments, then normalises."""
    rank_is(ids, 2, "input_ids")
    if any(v is None for v in (words, positions, gamma, beta)):
        raise ModelError("word_embedding, position_embedding, gamma and beta are needed")
    if position_ids is None:
        place = b.narrow(positions, 0, 0, ids.shape[1])
    else:
        place = b.gather(positions, position_ids, 0)
    total = b.scalar("add", b.gather(words, ids, 0), place)
    if segments is not None and segment_ids is not None:
        total = b.scalar("add", total, b.gather(segments, segment_ids, 0))
    y = norm.layer_normalization(b, total, gamma, beta, epsilon=epsilon)[0]
    return y, mask_index_of(b, ids, mask), total


def mask_index_of(b, ids: Value, mask: Value | None) -> Value:
    """The place of the first 0 of each row of the mask, the length where there is none."""
    if mask is None:
        return b.fill((ids.shape[0],), 0, DType.INT32)
    length = b.number_tensor(ids.shape[1], DType.INT64)
    masked = b.scalar("eq", mask, b.like(0, mask))
    place = b.select(masked, b.iota(mask.shape, 1), length)
    return b.cast(b.reduce("min", place, (1,), keepdims=False), DType.INT32)


@op("TransposeMatMul", domain=MS)
@op("FusedMatMul", domain=MS)
def fused_matmul(b, x, y, *, alpha: float = 1.0, transA: int = 0, transB: int = 0,
                 transBatchA: int = 0, transBatchB: int = 0):
    x, y = (_batch_inwards(b, v) if on else v for v, on in ((x, transBatchA), (y, transBatchB)))
    if x.rank < 2 or y.rank < 2:  # a vector has nothing to transpose
        z = matmul(b, x if x.rank < 2 or not transA else _swapped(b, x),
                   y if y.rank < 2 or not transB else _swapped(b, y))
        return z if alpha == 1.0 else b.scalar("mul", z, b.like(alpha, z))
    return b.matmul(x, y, trans_a=bool(transA), trans_b=bool(transB), alpha=alpha)


def _batch_inwards(b, x: Value) -> Value:
    """[d, batch..., n] as [batch..., d, n]."""
    if x.rank < 3:
        return x
    return b.transpose(x, (*range(1, x.rank - 1), 0, x.rank - 1))


def _swapped(b, x: Value) -> Value:
    return b.transpose(x, (*range(x.rank - 2), x.rank - 1, x.rank - 2))


Activation = Literal["", "Relu", "LeakyRelu", "Sigmoid", "Tanh", "Clip", "HardSigmoid", "Elu",
                     "Softplus", "ThresholdedRelu"]


def _activated(b, x: Value, name: str, params) -> Value:
    """x through the activation of a fused operator, whose parameters come in order."""
    p = list(params or ())
    match name:
        case "":
            return x
        case "Relu":
            return functions.relu(b, x)
        case "LeakyRelu":
            return functions.leaky_relu(b, x, alpha=p[0] if p else 0.01)
        case "Sigmoid" | "Tanh" | "Softplus":
            return b.scalar(name.lower(), x)
        case "Clip":
            low, high = p if len(p) == 2 else (-3.4028234663852886e38, 3.4028234663852886e38)
            return b.scalar("min", b.scalar("max", x, b.like(low, x)), b.like(high, x))
        case "HardSigmoid":
            alpha, beta = p if len(p) == 2 else (0.2, 0.5)
            return functions.hard_sigmoid(b, x, alpha=alpha, beta=beta)
        case "Elu":
            return functions.elu(b, x, alpha=p[0] if p else 1.0)
        case _:
            return functions.thresholded_relu(b, x, alpha=p[0] if p else 1.0)


@op("FusedConv", domain=MS)
def fused_conv(b, x, w, bias=None, z=None, *, activation: Activation = "",
               activation_params: Floats = None, auto_pad: AutoPad = "NOTSET",
               dilations: Ints = None, group: int = 1, kernel_shape: Ints = None,
               pads: Ints = None, strides: Ints = None):
    y = convolution.conv(b, x, w, bias, auto_pad=auto_pad, dilations=dilations, group=group,
                         kernel_shape=kernel_shape, pads=pads, strides=strides)
    y = y if z is None else b.scalar("add", y, fits(b, z, y.shape, "Z"))
    return _activated(b, y, activation, activation_params)


@op("NhwcFusedConv", domain=MS)
def nhwc_fused_conv(b, x, w, bias=None, z=None, *, activation: Activation = "",
                    activation_params: Floats = None, auto_pad: AutoPad = "NOTSET",
                    dilations: Ints = None, group: int = 1, kernel_shape: Ints = None,
                    pads: Ints = None, strides: Ints = None):
    y = nhwc_conv(b, x, w, bias, auto_pad=auto_pad, dilations=dilations, group=group,
                  kernel_shape=kernel_shape, pads=pads, strides=strides)
    y = y if z is None else b.scalar("add", y, fits(b, z, y.shape, "Z"))
    return _activated(b, y, activation, activation_params)


@op("NhwcConv", domain=MS)
def nhwc_conv(b, x, w, bias=None, *, auto_pad: AutoPad = "NOTSET", dilations: Ints = None,
              group: int = 1, kernel_shape: Ints = None, pads: Ints = None, strides: Ints = None):
    """A convolution of [N, spatial..., C] with the weights of Conv."""
    y = convolution.conv(b, _channels(b, x, first=True), w, bias, auto_pad=auto_pad,
                         dilations=dilations, group=group, kernel_shape=kernel_shape, pads=pads,
                         strides=strides)
    return _channels(b, y, first=False)


def _channels(b, x: Value, first: bool) -> Value:
    """Channels moved from the end to axis 1, or back."""
    if x.rank < 3:
        raise ModelError("an image has a batch, channels and spatial axes", got=str(x.type))
    perm = (0, x.rank - 1, *range(1, x.rank - 1)) if first else (0, *range(2, x.rank), 1)
    return b.transpose(x, perm)


@op("FusedGemm", domain=MS)
def fused_gemm(b, x, y, c=None, *, activation: Activation = "", activation_alpha: float = 0.0,
               activation_beta: float = 0.0, activation_gamma: float = 0.0, alpha: float = 1.0,
               beta: float = 1.0, transA: int = 0, transB: int = 0):
    z = gemm(b, x, y, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    counts = {"LeakyRelu": 1, "Elu": 1, "ThresholdedRelu": 1, "HardSigmoid": 2, "Clip": 2}
    params = (activation_alpha, activation_beta)[:counts.get(activation, 0)]
    return _activated(b, z, activation, params)


@op("ConvTransposeWithDynamicPads", domain=MS)
def conv_transpose_dynamic(b, x, w, pads=None, bias=None, *, auto_pad: AutoPad = "NOTSET",
                           dilations: Ints = None, group: int = 1, kernel_shape: Ints = None,
                           output_padding: Ints = None, strides: Ints = None):
    """ConvTranspose whose pads are an input."""
    if auto_pad not in ("NOTSET", ""):
        raise UnsupportedError("ConvTransposeWithDynamicPads with auto_pad", got=auto_pad)
    strides, dilations = window(x, strides, dilations)
    rank = x.rank - 2
    in_range("group", group, 1)
    convolution.check_kernel(b, w, kernel_shape)
    given = (0,) * (2 * rank) if pads is None else b.numbers(pads)
    if len(given) != 2 * rank:
        raise ModelError("pads has two entries for each axis", expected=2 * rank, got=len(given))
    out = []
    for k, (d, n) in enumerate(zip(x.shape[2:], w.shape[2:])):
        reach = apply("add", apply("mul", apply("sub", n, 1), dilations[k]), 1)
        full = apply("add", apply("mul", apply("sub", d, 1), strides[k]), reach)
        full = apply("add", full, (output_padding or (0,) * rank)[k])
        out.append(apply("sub", full, apply("add", given[k], given[rank + k])))
    y = b.conv(x, w, strides=strides, dilations=dilations, pads_begin=given[:rank],
               pads_end=given[rank:], groups=group, transposed=True, spatial_out=tuple(out))
    return convolution.add_channel_bias(b, y, bias)


@op("GroupNorm", domain=MS)
def group_norm(b, x, gamma, beta, *, activation: int, channels_last: int = 1,
               epsilon: float = 1e-5, groups: int):
    if channels_last:
        y = group_norm(b, _channels(b, x, first=True), gamma, beta, activation=activation,
                       channels_last=0, epsilon=epsilon, groups=groups)
        return _channels(b, y, first=False)
    in_range("activation", activation, 0, 1)
    scale, bias = (b.cast(v, x.dtype) for v in (gamma, beta))
    y = norm.group_normalization(b, x, scale, bias, num_groups=groups, epsilon=epsilon)
    return b.scalar("silu", y) if activation else y


@op("SkipGroupNorm", domain=MS)
def skip_group_norm(b, x, gamma, beta, skip, bias=None, *, activation: int,
                    channels_last: int = 1, epsilon: float = 1e-5, groups: int):
    """GroupNorm of x + skip + bias, and the sum."""
    if not channels_last:
        raise UnsupportedError("SkipGroupNorm with channels_last=0")
    if skip.rank == 2:
        skip = b.reshape(skip, (skip.shape[0], *(1,) * (x.rank - 2), skip.shape[1]))
    total = _skip_sum(b, x, skip, bias)
    y = group_norm(b, total, gamma, beta, activation=activation, epsilon=epsilon, groups=groups)
    return y, total
