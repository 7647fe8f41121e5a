"""Quantised operators of com.microsoft that are small steps from float ones: add, mul, pool, ..."""

from __future__ import annotations

from rlx.errors import ModelError
from rlx.importer.ops import activation, pool, quant
from rlx.importer.registry import AutoPad, Ints, op
from rlx.ir.build import DType, Value

MS = "com.microsoft"


def real(b, x: Value, scale: Value, zero: Value | None) -> Value:
    """What the integers of x stand for, with one scale for all."""
    return quant.dequantize_linear(b, x, scale, zero)


def whole(b, y: Value, scale: Value, zero: Value | None, dtype: DType) -> Value:
    """y in integers of `dtype`; without a zero point it is 0."""
    return quant.quantize_linear(b, y, scale, zero, output_dtype=int(dtype.value))


def needed(**values: Value | None) -> None:
    """Inputs that stand behind optional ones must be given all the same."""
    for name, v in values.items():
        if v is None:
            raise ModelError(f"required input {name!r} is missing")


@op("QuantizeLinear", domain=MS)
def quantize_linear(b, x, scale, zero=None, *, axis: int = 1):
    return quant.quantize_linear(b, x, scale, zero, axis=axis)


@op("DequantizeLinear", domain=MS)
def dequantize_linear(b, x, scale, zero=None, *, axis: int = 1):
    return quant.dequantize_linear(b, x, scale, zero, axis=axis)


@op("QLinearConv", domain=MS)
def qlinear_conv(b, x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias=None, *,
                 auto_pad: AutoPad = "NOTSET", channels_last: int = 0, dilations: Ints = None,
                 group: int = 1, kernel_shape: Ints = None, pads: Ints = None,
                 strides: Ints = None):
    return _image(b, x, channels_last, lambda first: quant.qlinear_conv(
        b, first, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias, auto_pad=auto_pad,
        dilations=dilations, group=group, kernel_shape=kernel_shape, pads=pads, strides=strides))


def _image(b, x: Value, channels_last: int, compute) -> Value:
    """compute(x) of an image whose channels may be last."""
    if not channels_last:
        return compute(x)
    rank = x.rank
    y = compute(b.transpose(x, (0, rank - 1, *range(1, rank - 1))))
    return b.transpose(y, (0, *range(2, rank), 1))


def _binary(name: str, scalar: str) -> None:
    @op(name, domain=MS)
    def binary(b, x, x_scale, x_zero=None, y=None, y_scale=None, y_zero=None, z_scale=None,
               z_zero=None):
        needed(B=y, B_scale=y_scale, C_scale=z_scale)
        result = b.scalar(scalar, real(b, x, x_scale, x_zero), real(b, y, y_scale, y_zero))
        return whole(b, result, z_scale, z_zero, x.dtype)


_binary("QLinearAdd", "add")
_binary("QLinearMul", "mul")


@op("QLinearSigmoid", domain=MS)
def qlinear_sigmoid(b, x, x_scale, x_zero=None, y_scale=None, y_zero=None):
    needed(Y_scale=y_scale)
    y = b.scalar("sigmoid", real(b, x, x_scale, x_zero))
    return whole(b, y, y_scale, y_zero, x.dtype)


@op("QLinearLeakyRelu", domain=MS)
def qlinear_leaky_relu(b, x, x_scale, x_zero=None, y_scale=None, y_zero=None, *,
                       alpha: float = 0.01):
    needed(Y_scale=y_scale)
    y = activation.leaky_relu(b, real(b, x, x_scale, x_zero), alpha=alpha)
    return whole(b, y, y_scale, y_zero, x.dtype)


@op("QLinearSoftmax", domain=MS)
def qlinear_softmax(b, x, x_scale, x_zero=None, y_scale=None, y_zero=None, *, axis: int = -1,
                    opset: int = 13):
    needed(Y_scale=y_scale)
    softmax = activation.softmax if opset >= 13 else activation.softmax_1
    y = softmax(b, real(b, x, x_scale, x_zero), axis=axis)
    return whole(b, y, y_scale, y_zero, x.dtype)


@op("QLinearGlobalAveragePool", domain=MS)
def qlinear_global_average_pool(b, x, x_scale, x_zero, y_scale, y_zero, *,
                                channels_last: int = 0):
    axes = tuple(range(1, x.rank - 1) if channels_last else range(2, x.rank))
    y = b.reduce("mean", real(b, x, x_scale, x_zero), axes)
    return whole(b, y, y_scale, y_zero, x.dtype)


@op("QLinearAveragePool", domain=MS)
def qlinear_average_pool(b, x, x_scale, x_zero=None, y_scale=None, y_zero=None, *,
                         kernel_shape: Ints,
                         auto_pad: AutoPad = "NOTSET", ceil_mode: int = 0, channels_last: int = 0,
                         count_include_pad: int = 0, pads: Ints = None, strides: Ints = None):
    needed(Y_scale=y_scale)
    y = _image(b, real(b, x, x_scale, x_zero), channels_last, lambda first: pool.average_pool(
        b, first, kernel_shape=kernel_shape, auto_pad=auto_pad, ceil_mode=ceil_mode,
        count_include_pad=count_include_pad, pads=pads, strides=strides))
    return whole(b, y, y_scale, y_zero, x.dtype)


@op("QLinearReduceMean", domain=MS)
def qlinear_reduce_mean(b, x, x_scale, x_zero=None, y_scale=None, y_zero=None, *, axes: Ints = None,
                        keepdims: int = 1):
    needed(Y_scale=y_scale)
    axes = tuple(range(x.rank)) if axes is None else axes
    y = b.reduce("mean", real(b, x, x_scale, x_zero), axes, bool(keepdims))
    return whole(b, y, y_scale, y_zero, x.dtype)


@op("QLinearConcat", domain=MS)
def qlinear_concat(b, y_scale, y_zero, *parts, axis: int):
    """parts: x, scale and zero point of each input."""
    if not parts or len(parts) % 3:
        raise ModelError("QLinearConcat takes three inputs for each part", got=len(parts) + 2)
    xs = [real(b, *parts[k:k + 3]) for k in range(0, len(parts), 3)]
    y = b.concat(xs, b.axis(axis, xs[0].rank))
    return whole(b, y, y_scale, y_zero, y_zero.dtype)


@op("QLinearWhere", domain=MS)
def qlinear_where(b, condition, x, x_scale, x_zero, y, y_scale, y_zero, z_scale, z_zero):
    chosen = b.select(condition, real(b, x, x_scale, x_zero), real(b, y, y_scale, y_zero))
    return whole(b, chosen, z_scale, z_zero, x.dtype)
