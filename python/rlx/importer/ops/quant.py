"""Quantisation: QuantizeLinear, DequantizeLinear and the QLinear products, in exact integers."""

from __future__ import annotations

import numpy as np

from rlx.errors import ModelError
from rlx.importer.ops.checks import fits, in_range, same_type, single, window
from rlx.importer.ops.conv import add_channel_bias, check_kernel, window_pads
from rlx.importer.ops.matmul import of_matrices, quantised_product, slices
from rlx.importer.registry import AutoPad, Ints, op
from rlx.ir.build import AxisMap, DType, Value, apply

_RANGES = {
    DType.UINT8: (0, 255), DType.INT8: (-128, 127), DType.UINT16: (0, 65535),
    DType.INT16: (-32768, 32767), DType.UINT4: (0, 15), DType.INT4: (-8, 7),
    DType.UINT2: (0, 3), DType.INT2: (-2, 1),
}


@op("QuantizeLinear", since=23)
def quantize_linear_23(b, x, scale, zero=None, *, axis: int = 1, block_size: int = 0,
                       output_dtype: int = 0, precision: int = 0, saturate: int = 1):
    """The division has the precision of the scale, unless `precision` says else."""
    if not precision and scale.dtype in (DType.FLOAT16, DType.BFLOAT16):
        precision = int(scale.dtype.value)
    return quantize_linear(b, x, scale, zero, axis=axis, block_size=block_size,
                           output_dtype=output_dtype, precision=precision, saturate=saturate)


@op("QuantizeLinear", since=10)
def quantize_linear(b, x, scale, zero=None, *, axis: int = 1, block_size: int = 0,
                    output_dtype: int = 0, precision: int = 0, saturate: int = 1):
    """saturate(round(x / scale) + zero), the division in float32 unless `precision` says else."""
    dtype = DType(output_dtype) if output_dtype else DType.UINT8 if zero is None else zero.dtype
    same_type(zero, dtype, "the output")
    compute = DType(precision) if precision else DType.FLOAT32
    if compute not in (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT64):
        raise ModelError("a division cannot have this precision", got=compute.name.lower(),
                         expected="float32, float16, bfloat16 or float64")
    if x.dtype is DType.FLOAT64:
        compute = DType.FLOAT64
    wide = DType.FLOAT64 if compute is DType.FLOAT64 else DType.FLOAT32
    x, scale = (b.cast(b.cast(v, compute), wide) for v in (x, scale))
    ratio = b.scalar("div", x, _spread(b, scale, x, axis, block_size))
    ratio = b.cast(b.cast(ratio, compute), wide)  # regions keep more than halves hold
    if zero is not None:
        zero = _spread(b, zero, x, axis, block_size)
    return _quantised(b, ratio, zero, dtype, bool(saturate))


def _quantised(b, ratio: Value, zero: Value | None, dtype: DType, saturate: bool = True) -> Value:
    """Integers: round to even, add the zero point, cut to dtype's range. float8: add and cast."""
    if dtype not in _RANGES and not dtype.is_float:
        raise ModelError("cannot quantise to this type", got=dtype.name.lower())
    y = ratio if dtype.is_float else b.scalar("round", ratio)
    if zero is not None and not _is_zero(zero):
        y = b.scalar("add", y, b.cast(zero, y.dtype))
    if not dtype.is_float:
        low, high = _RANGES[dtype]
        y = b.scalar("min", b.scalar("max", y, b.like(low, y)), b.like(high, y))
    return b.cast(y, dtype, saturate=saturate)


def _is_zero(zero: Value) -> bool:
    return zero.is_const and not zero.const.astype(np.float32).any()


@op("DequantizeLinear", since=10)
def dequantize_linear(b, x, scale, zero=None, *, axis: int = 1, block_size: int = 0,
                      output_dtype: int = 0):
    """(x - zero) * scale in the type of scale."""
    same_type(zero, x.dtype, "x")
    target = DType(output_dtype) if output_dtype else scale.dtype
    wide = DType.INT32 if zero is not None and x.dtype.is_integer else DType.FLOAT32
    y = b.cast(x, wide)
    if zero is not None and not (x.dtype.is_float and _is_zero(zero)):
        y = b.scalar("sub", y, _spread(b, b.cast(zero, wide), x, axis, block_size))
    y = b.cast(y, DType.FLOAT32)
    factor = _spread(b, b.cast(scale, DType.FLOAT32), x, axis, block_size)
    return b.cast(b.scalar("mul", y, factor), target)


def _spread(b, v: Value, x: Value, axis: int, block_size: int) -> Value:
    """A scale or zero point as it broadcasts to x: one for all, for each slice, or for a block."""
    if v.rank == 0 or v.shape == (1,):
        return b.reshape(v, ())
    axis = b.axis(axis, x.rank)
    in_range("block_size", block_size, 0)
    if block_size:
        b.has_rank(v, x.rank, "the scale or zero point of blocks")
        for k, (d, n) in enumerate(zip(x.shape, v.shape)):
            blocks = apply("floordiv", apply("add", d, block_size - 1), block_size)
            b.same_dim(n, blocks if k == axis else d, f"axis {k} of the scale or zero point")
        access = tuple(AxisMap(k, block_size if k == axis else 1) for k in range(x.rank))
        return b.read(v, x.shape, access)
    if v.rank != 1:
        raise ModelError("scale is a scalar or a vector unless block_size is given",
                         got=str(v.type))
    b.same_dim(v.shape[0], x.shape[axis], "scale and the quantised axis")
    return b.reshape(v, (v.shape[0], *(1,) * (x.rank - 1 - axis)))


@op("QLinearMatMul", since=10)
def qlinear_matmul(b, x, x_scale, x_zero, y, y_scale, y_zero, z_scale, z_zero):
    same_type(x_zero, x.dtype, "a")
    same_type(y_zero, y.dtype, "b")

    def product(x: Value, y: Value) -> Value:
        sums = b.cast(quantised_product(b, x, y, x_zero, y_zero), DType.FLOAT32)
        rows = b.cast(slices(b, x, x_scale, -2, "the scale of a"), DType.FLOAT32)
        if rows.rank == 1:
            rows = b.unsqueeze(rows, (1,))
        columns = b.cast(slices(b, y, y_scale, -1, "the scale of b"), DType.FLOAT32)
        scale = b.cast(fits(b, single(b, z_scale), sums.shape, "the scale of y"), DType.FLOAT32)
        zero = fits(b, single(b, z_zero), sums.shape, "the zero point of y")
        factor = b.scalar("div", b.scalar("mul", rows, columns), scale)
        return _quantised(b, b.scalar("mul", sums, factor), zero, zero.dtype)

    return of_matrices(b, x, y, product)


@op("QLinearConv", since=10)
def qlinear_conv(b, x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias=None, *,
                 auto_pad: AutoPad = "NOTSET", dilations: Ints = None, group: int = 1,
                 kernel_shape: Ints = None, pads: Ints = None, strides: Ints = None):
    same_type(x_zero, x.dtype, "x")
    same_type(w_zero, w.dtype, "w")
    strides, dilations = window(x, strides, dilations)
    rank = x.rank - 2
    in_range("group", group, 1)
    check_kernel(b, w, kernel_shape)
    begin, end = window_pads(x.shape[2:], w.shape[2:], strides, dilations, pads, auto_pad)
    total = b.conv(x, w, strides=strides, dilations=dilations, pads_begin=begin, pads_end=end,
                   groups=group, x_zero=x_zero, w_zero=w_zero, dtype=DType.INT32)

    total = add_channel_bias(b, total, bias)
    w_scale = single(b, w_scale)
    if w_scale.rank:
        b.same_dim(w_scale.shape[0], w.shape[0], "the scale of w and its features")
        w_scale = b.reshape(w_scale, (w_scale.shape[0], *(1,) * rank))
    factor = b.scalar("mul", b.reshape(x_scale, ()), w_scale)
    factor = b.scalar("div", factor, b.reshape(y_scale, ()))
    ratio = b.scalar("mul", b.cast(total, DType.FLOAT32), factor)
    return _quantised(b, ratio, b.reshape(y_zero, ()), y_zero.dtype)
