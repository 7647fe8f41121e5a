"""Operators that ONNX tried out and dropped with its opset 10; models from before have them."""

from __future__ import annotations

from rlx.errors import ModelError
from rlx.importer.ops import activation, movement
from rlx.importer.ops.checks import all_in_range, rank_is
from rlx.importer.registry import Floats, Ints, op
from rlx.ir.build import DType, Value, apply


def _times(b, factor: float, x: Value) -> Value:
    return b.scalar("mul", x, b.like(factor, x))


@op("Affine", until=10)
def affine(b, x, *, alpha: float = 1.0, beta: float = 0.0):
    return b.scalar("add", _times(b, alpha, x), b.like(beta, x))


@op("Scale", until=10)
def scale_1(b, x, *, scale: float = 1.0):
    return _times(b, scale, x)


@op("ScaledTanh", until=10)
def scaled_tanh(b, x, *, alpha: float, beta: float):
    return _times(b, alpha, b.scalar("tanh", _times(b, beta, x)))


@op("ParametricSoftplus", until=10)
def parametric_softplus(b, x, *, alpha: float, beta: float):
    return _times(b, alpha, b.scalar("softplus", _times(b, beta, x)))


@op("ThresholdedRelu")
def thresholded_relu_1(b, x, *, alpha: float = 1.0):
    return activation.thresholded_relu(b, x, alpha=alpha)


@op("ImageScaler", until=10)
def image_scaler(b, x, *, scale: float = 1.0, bias: Floats = ()):
    """scale * x and, where it is given, a bias for each channel of NCHW x."""
    rank_is(x, 4, "the image")
    y = _times(b, scale, x)
    if not bias:
        return y
    b.same_dim(len(bias), x.shape[1], "bias and the channels")
    offset = b.cast(b.reshape(b.const(bias, DType.FLOAT32), (len(bias), 1, 1)), x.dtype)
    return b.scalar("add", y, offset)


@op("Crop", until=10)
def crop(b, x, *, border: Ints = (0, 0, 0, 0), scale: Ints = None):
    """NCHW x without (left, top, right, bottom); with `scale` (height, width) from left and top."""
    rank_is(x, 4, "the image")
    left, top, right, bottom = all_in_range("border", border, 4, 0)
    height, width = scale or (apply("sub", x.shape[2], top + bottom),
                              apply("sub", x.shape[3], left + right))
    if scale:
        all_in_range("scale", scale, 2, 0)
    for axis, start, extent in ((2, top, height), (3, left, width)):
        fits = apply("and", apply("le", 0, extent),
                     apply("le", apply("add", start, extent), x.shape[axis]))
        b.guard(fits, f"axis {axis} of the image, {x.shape[axis]}, is too small for border and "
                      f"scale")
        x = b.narrow(x, axis, start, extent)
    return x


@op("DynamicSlice", until=10)
def dynamic_slice(b, x, starts, ends, axes=None):
    return movement.slice_(b, x, starts, ends, axes)
