"""Convolutions: Conv, ConvTranspose, ConvInteger; pads are worked out here."""

from __future__ import annotations

from rlx.errors import ModelError
from rlx.importer.ops.checks import all_in_range, in_range, same_type, window
from rlx.importer.registry import AutoPad, Ints, op
from rlx.ir.build import DType, Value, apply


@op("Conv", since=1)
def conv(b, x, w, bias=None, *, auto_pad: AutoPad = "NOTSET", dilations: Ints = None,
         group: int = 1, kernel_shape: Ints = None, pads: Ints = None, strides: Ints = None):
    y = _conv(b, x, w, auto_pad, dilations, group, kernel_shape, pads, strides)
    return add_channel_bias(b, y, bias)


@op("ConvInteger", since=10)
def conv_integer(b, x, w, x_zero=None, w_zero=None, *, auto_pad: AutoPad = "NOTSET",
                 dilations: Ints = None, group: int = 1, kernel_shape: Ints = None,
                 pads: Ints = None, strides: Ints = None):
    same_type(x_zero, x.dtype, "x")
    same_type(w_zero, w.dtype, "w")
    return _conv(b, x, w, auto_pad, dilations, group, kernel_shape, pads, strides,
                 x_zero=x_zero, w_zero=w_zero, dtype=DType.INT32)


def _conv(b, x, w, auto_pad, dilations, group, kernel_shape, pads, strides, **more) -> Value:
    strides, dilations = window(x, strides, dilations)
    in_range("group", group, 1)
    check_kernel(b, w, kernel_shape)
    begin, end = window_pads(x.shape[2:], w.shape[2:], strides, dilations, pads, auto_pad)
    return b.conv(x, w, strides=strides, dilations=dilations, pads_begin=begin, pads_end=end,
                  groups=group, **more)


def check_kernel(b, w: Value, kernel_shape) -> None:
    """kernel_shape, if given, must be the weights' own."""
    if kernel_shape:
        all_in_range("kernel_shape", kernel_shape, w.rank - 2, 1)
    for d, k in zip(w.shape[2:], kernel_shape or ()):
        b.guard(apply("eq", d, k), f"kernel_shape {list(kernel_shape)} is not that of the weights")


def add_channel_bias(b, y: Value, bias: Value | None) -> Value:
    """y + bias, one value a channel of NCHW y."""
    if bias is None:
        return y
    b.has_rank(bias, 1, "the bias")
    b.same_dim(bias.shape[0], y.shape[1], "the bias and the channels")
    return b.scalar("add", y, b.reshape(bias, (bias.shape[0], *(1,) * (y.rank - 2))))


def window_pads(spatial, kernel, strides, dilations, pads, auto_pad: str):
    """(begin, end) pads of a sliding window by ONNX's pads and auto_pad."""
    rank = len(spatial)
    if auto_pad in ("NOTSET", ""):
        pads = all_in_range("pads", pads or (0,) * (2 * rank), 2 * rank, 0)
        return tuple(pads[:rank]), tuple(pads[rank:])
    if auto_pad == "VALID":
        return (0,) * rank, (0,) * rank
    begin, end = [], []
    for d, k, s, r in zip(spatial, kernel, strides, dilations):
        out = apply("floordiv", apply("add", d, s - 1), s)
        reach = apply("add", apply("mul", apply("sub", k, 1), r), 1)
        need = apply("add", apply("mul", apply("sub", out, 1), s), reach)
        total = apply("max", 0, apply("sub", need, d))
        small = apply("floordiv", total, 2)
        large = apply("sub", total, small)
        upper = auto_pad == "SAME_UPPER"
        begin.append(small if upper else large)
        end.append(large if upper else small)
    return tuple(begin), tuple(end)


@op("ConvTranspose", since=1)
def conv_transpose(b, x, w, bias=None, *, auto_pad: AutoPad = "NOTSET", dilations: Ints = None,
                   group: int = 1, kernel_shape: Ints = None, output_padding: Ints = None,
                   output_shape: Ints = None, pads: Ints = None, strides: Ints = None):
    strides, dilations = window(x, strides, dilations)
    rank = x.rank - 2
    in_range("group", group, 1)
    extra = all_in_range("output_padding", output_padding or (0,) * rank, rank, 0)
    check_kernel(b, w, kernel_shape)
    if w.rank != x.rank:
        raise ModelError("x and w differ in rank", got=f"{x.type} and {w.type}")
    full = []  # the extent with no pads
    for d, k, s, r, e in zip(x.shape[2:], w.shape[2:], strides, dilations, extra):
        reach = apply("add", apply("mul", apply("sub", k, 1), r), 1 + e)
        full.append(apply("add", apply("mul", apply("sub", d, 1), s), reach))
    if output_shape is not None:
        # Older models also list the batch and the channels.
        whole = x.rank if len(output_shape) == x.rank else rank
        out = all_in_range("output_shape", output_shape, whole, 0)[-rank:]
        begin, end = _transposed_pads(full, out, auto_pad)
    elif auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        out = tuple(apply("mul", d, s) for d, s in zip(x.shape[2:], strides))
        begin, end = _transposed_pads(full, out, auto_pad)
    else:
        pads = pads if pads and auto_pad in ("NOTSET", "") else (0,) * (2 * rank)
        pads = all_in_range("pads", pads, 2 * rank, 0)
        begin, end = tuple(pads[:rank]), tuple(pads[rank:])
        out = tuple(apply("sub", f, p + q) for f, p, q in zip(full, begin, end))
    y = b.conv(x, w, strides=strides, dilations=dilations, pads_begin=begin, pads_end=end,
               groups=group, transposed=True, spatial_out=out)
    return add_channel_bias(b, y, bias)


def _transposed_pads(full, out, auto_pad: str):
    """Pads that cut the full extents down to `out`; the odd one goes to the end for SAME_UPPER."""
    begin, end = [], []
    for f, o in zip(full, out):
        total = apply("sub", f, o)
        small = apply("floordiv", total, 2)
        large = apply("sub", total, small)
        begin.append(small if auto_pad == "SAME_UPPER" else large)
        end.append(large if auto_pad == "SAME_UPPER" else small)
    return tuple(begin), tuple(end)
