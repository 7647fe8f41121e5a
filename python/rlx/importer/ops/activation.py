"""Activations, written as compositions of scalar ops; the regions pass makes them one step."""

from __future__ import annotations

from typing import Literal

from rlx.importer.ops.checks import fits
from rlx.importer.ops.elementwise import place_at_axis
from rlx.importer.registry import Ints, op


@op("Relu", since=6)
def relu(b, x):
    return b.scalar("max", x, b.like(0, x))


@op("Relu", since=1)
def relu_1(b, x, *, consumed_inputs: Ints = None):
    return relu(b, x)


@op("LeakyRelu", since=6)
def leaky_relu(b, x, *, alpha: float = 0.01):
    negative = b.scalar("lt", x, b.like(0, x))
    return b.select(negative, b.scalar("mul", x, b.like(alpha, x)), x)


@op("LeakyRelu", since=1)
def leaky_relu_1(b, x, *, alpha: float = 0.01, consumed_inputs: Ints = None):
    return leaky_relu(b, x, alpha=alpha)


@op("PRelu", since=7)
def prelu(b, x, slope):
    fits(b, slope, x.shape, "the slope")
    return b.select(b.scalar("lt", x, b.like(0, x)), b.scalar("mul", x, slope), x)


@op("PRelu", since=1)
def prelu_1(b, x, slope, *, consumed_inputs: Ints = None):
    if slope.rank == 1 and x.rank > 1:
        slope = place_at_axis(b, x, slope, 1)  # one slope a channel
    return prelu(b, x, slope)


@op("ThresholdedRelu", since=10)
def thresholded_relu(b, x, *, alpha: float = 1.0):
    return b.select(b.scalar("gt", x, b.like(alpha, x)), x, b.like(0, x))


@op("Elu", since=6)
def elu(b, x, *, alpha: float = 1.0):
    return _exponential(b, x, alpha, 1.0)


@op("Elu", since=1)
def elu_1(b, x, *, alpha: float = 1.0, consumed_inputs: Ints = None):
    return _exponential(b, x, alpha, 1.0)


@op("Selu", since=6)
def selu(b, x, *, alpha: float = 1.67326319217681884765625,
         gamma: float = 1.05070102214813232421875):
    return _exponential(b, x, alpha, gamma)


@op("Selu", since=1)
def selu_1(b, x, *, alpha: float = 1.6732, gamma: float = 1.0507, consumed_inputs: Ints = None):
    return _exponential(b, x, alpha, gamma)


def _exponential(b, x, alpha: float, gamma: float):
    """gamma * (x if x > 0 else alpha * (exp(x) - 1))."""
    below = b.scalar("sub", b.scalar("exp", b.scalar("min", x, b.like(0, x))), b.like(1, x))
    y = b.select(b.scalar("gt", x, b.like(0, x)), x, b.scalar("mul", below, b.like(alpha, x)))
    return y if gamma == 1.0 else b.scalar("mul", y, b.like(gamma, x))


@op("Celu", since=12)
def celu(b, x, *, alpha: float = 1.0):
    inner = b.scalar("div", b.scalar("min", x, b.like(0, x)), b.like(alpha, x))
    below = b.scalar("mul", b.scalar("sub", b.scalar("exp", inner), b.like(1, x)), b.like(alpha, x))
    return b.scalar("add", b.scalar("max", x, b.like(0, x)), below)


@op("Gelu", since=20)
def gelu(b, x, *, approximate: Literal["none", "tanh"] = "none"):
    return b.scalar("gelu_tanh" if approximate == "tanh" else "gelu", x)


@op("Softplus", since=1)
def softplus(b, x):
    return b.scalar("softplus", x)


@op("Softsign", since=1)
def softsign(b, x):
    return b.scalar("div", x, b.scalar("add", b.scalar("abs", x), b.like(1, x)))


@op("HardSigmoid", since=6)
def hard_sigmoid(b, x, *, alpha: float = 0.2, beta: float = 0.5):
    y = b.scalar("add", b.scalar("mul", x, b.like(alpha, x)), b.like(beta, x))
    return b.scalar("max", b.scalar("min", y, b.like(1, x)), b.like(0, x))


@op("HardSigmoid", since=1)
def hard_sigmoid_1(b, x, *, alpha: float = 0.2, beta: float = 0.5, consumed_inputs: Ints = None):
    return hard_sigmoid(b, x, alpha=alpha, beta=beta)


@op("HardSwish", since=14)
def hard_swish(b, x):
    return b.scalar("mul", x, hard_sigmoid(b, x, alpha=1 / 6, beta=0.5))


@op("Swish", since=24)
def swish(b, x, *, alpha: float = 1.0):
    if alpha == 1.0:
        return b.scalar("silu", x)
    return b.scalar("mul", x, b.scalar("sigmoid", b.scalar("mul", x, b.like(alpha, x))))


@op("Mish", since=18)
def mish(b, x):
    return b.scalar("mul", x, b.scalar("tanh", b.scalar("softplus", x)))


@op("Shrink", since=9)
def shrink(b, x, *, bias: float = 0.0, lambd: float = 0.5):
    high = b.scalar("sub", x, b.like(bias, x))
    low = b.scalar("add", x, b.like(bias, x))
    middle = b.select(b.scalar("lt", x, b.like(-lambd, x)), low, b.like(0, x))
    return b.select(b.scalar("gt", x, b.like(lambd, x)), high, middle)


@op("Softmax", since=13)
def softmax(b, x, *, axis: int = -1):
    return _softmax(b, x, axis, log=False)


@op("LogSoftmax", since=13)
def log_softmax(b, x, *, axis: int = -1):
    return _softmax(b, x, axis, log=True)


def _softmax(b, x, axis: int, *, log: bool):
    if x.rank == 0:  # counts as one element
        return b.reshape(b.softmax(b.reshape(x, (1,)), axis, log=log), ())
    return b.softmax(x, axis, log=log)


@op("Softmax", since=1)
def softmax_1(b, x, *, axis: int = 1):
    return _flattened(b, x, axis, log=False)


@op("LogSoftmax", since=1)
def log_softmax_1(b, x, *, axis: int = 1):
    return _flattened(b, x, axis, log=True)


def _flattened(b, x, axis: int, *, log: bool):
    """Before opset 13: over all axes from `axis` on together."""
    axis = _first_flat_axis(b, x, axis)
    if axis == x.rank - 1:
        return b.softmax(x, axis, log=log)
    return b.reshape(b.softmax(b.flatten2d(x, axis), 1, log=log), x.shape)


def _first_flat_axis(b, x, axis: int) -> int:
    return x.rank if axis == x.rank else b.axis(axis, x.rank)


@op("Hardmax", since=13)
def hardmax(b, x, *, axis: int = -1):
    """One at the first maximum along axis, zero elsewhere."""
    if x.rank == 0:
        return b.reshape(hardmax(b, b.reshape(x, (1,)), axis=axis), ())
    axis = b.axis(axis, x.rank)
    first = b.reduce("argmax", x, (axis,))
    return b.cast(b.scalar("eq", b.iota(x.shape, axis), first), x.dtype)


@op("Hardmax", since=1)
def hardmax_1(b, x, *, axis: int = 1):
    flat = b.flatten2d(x, _first_flat_axis(b, x, axis))
    return b.reshape(hardmax(b, flat), x.shape)
