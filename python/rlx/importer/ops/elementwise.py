"""Elementwise arithmetic, comparison, logic and mathematical functions."""

from __future__ import annotations

from typing import Literal

from rlx.errors import ModelError, UnsupportedError
from rlx.importer.ops.checks import fits, single
from rlx.importer.ops.text import cast_text
from rlx.importer.registry import Ints, op
from rlx.ir.build import DType, Value

RoundMode = Literal["up", "down", "nearest"]


def _register(table: dict[str, tuple[str, int]], make) -> None:
    for name, (scalar, since) in table.items():
        op(name, since=since)(make(scalar))


def _unary(scalar: str):
    def function(b, x):
        return b.scalar(scalar, x)
    return function


def _binary(scalar: str):
    def function(b, x, y):
        return b.scalar(scalar, x, y)
    return function


def _variadic(scalar: str):
    def function(b, x, *rest):
        for y in rest:
            x = b.scalar(scalar, x, y)
        return x
    return function


def _legacy_unary(scalar: str):
    def function(b, x, *, consumed_inputs: Ints = None):
        return b.scalar(scalar, x)
    return function


def _legacy_binary(scalar: str):
    """Opsets 1 to 6: y broadcasts only when asked, along `axis`."""
    def function(b, x, y, *, broadcast: int = 0, axis: int | None = None,
                 consumed_inputs: Ints = None):
        return b.scalar(scalar, x, place_at_axis(b, x, y, axis) if broadcast else y)
    return function


def _legacy_variadic(scalar: str):
    def function(b, x, *rest, consumed_inputs: Ints = None):
        for y in rest:
            x = b.scalar(scalar, x, y)
        return x
    return function


def place_at_axis(b, x: Value, y: Value, axis: int | None) -> Value:
    """y with ones behind it so that its first dim stands at `axis` of x (legacy broadcast)."""
    if axis is None:
        return y
    behind = x.rank - b.axis(axis, x.rank) - y.rank
    if behind < 0 and any(d != 1 for d in y.shape):
        raise ModelError("B has more axes than A has from `axis` on", got=f"{y.type}, axis {axis}",
                         expected=f"at most {x.rank - b.axis(axis, x.rank)} axes")
    return b.reshape(y, (*y.shape, *(1,) * behind)) if behind > 0 else y


_register({
    "Abs": ("abs", 6), "Neg": ("neg", 6), "Ceil": ("ceil", 6), "Floor": ("floor", 6),
    "Sqrt": ("sqrt", 6), "Exp": ("exp", 6), "Log": ("log", 6), "Reciprocal": ("reciprocal", 6),
    "Sigmoid": ("sigmoid", 6), "Tanh": ("tanh", 6), "Sign": ("sign", 9), "Round": ("round", 11),
    "Erf": ("erf", 9), "Sin": ("sin", 7), "Cos": ("cos", 7), "Tan": ("tan", 7),
    "Asin": ("asin", 7), "Acos": ("acos", 7), "Atan": ("atan", 7), "Sinh": ("sinh", 9),
    "Cosh": ("cosh", 9), "Asinh": ("asinh", 9), "Acosh": ("acosh", 9), "Atanh": ("atanh", 9),
    "Not": ("not", 1), "IsNaN": ("is_nan", 9), "BitwiseNot": ("bitwise_not", 18),
}, _unary)
_register({
    "Abs": ("abs", 1), "Neg": ("neg", 1), "Ceil": ("ceil", 1), "Floor": ("floor", 1),
    "Sqrt": ("sqrt", 1), "Exp": ("exp", 1), "Log": ("log", 1), "Reciprocal": ("reciprocal", 1),
    "Sigmoid": ("sigmoid", 1), "Tanh": ("tanh", 1),
}, _legacy_unary)
_register({
    "Add": ("add", 7), "Sub": ("sub", 7), "Mul": ("mul", 7), "Div": ("div", 7),
    "And": ("and", 7), "Or": ("or", 7), "Xor": ("xor", 7),
    "Equal": ("eq", 7), "Greater": ("gt", 7), "Less": ("lt", 7),
    "GreaterOrEqual": ("ge", 12), "LessOrEqual": ("le", 12),
    "BitwiseAnd": ("bitwise_and", 18), "BitwiseOr": ("bitwise_or", 18),
    "BitwiseXor": ("bitwise_xor", 18),
}, _binary)
_register({
    "Add": ("add", 1), "Sub": ("sub", 1), "Mul": ("mul", 1), "Div": ("div", 1),
    "And": ("and", 1), "Or": ("or", 1), "Xor": ("xor", 1),
    "Equal": ("eq", 1), "Greater": ("gt", 1), "Less": ("lt", 1),
}, _legacy_binary)
_register({"Max": ("max", 8), "Min": ("min", 8), "Sum": ("add", 8)}, _variadic)
_register({"Max": ("max", 1), "Min": ("min", 1), "Sum": ("add", 1)}, _legacy_variadic)


@op("Mean", since=8)
def mean(b, x, *rest):
    total = _variadic("add")(b, x, *rest)
    return b.scalar("div", total, b.like(1 + len(rest), x))


@op("Mean", since=1)
def mean_1(b, x, *rest, consumed_inputs: Ints = None):
    return mean(b, x, *rest)


@op("Pow", since=7)
def pow_(b, x, y):
    """The result has x's type; integers by integers stay exact."""
    if x.dtype.is_integer and y.dtype.is_float:
        return b.cast(b.scalar("pow", b.cast(x, y.dtype), y), x.dtype)
    return b.scalar("pow", x, b.cast(y, x.dtype), dtype=x.dtype)


@op("Pow", since=1)
def pow_1(b, x, y, *, broadcast: int = 0, axis: int | None = None):
    return pow_(b, x, place_at_axis(b, x, y, axis) if broadcast else y)


@op("Mod", since=10)
def mod(b, x, y, *, fmod: int = 0):
    return b.scalar("fmod" if fmod else "mod", x, y)


@op("BitShift", since=11)
def bit_shift(b, x, y, *, direction: Literal["LEFT", "RIGHT"]):
    return b.scalar("shift_left" if direction == "LEFT" else "shift_right", x, y)


@op("IsInf", since=10)
def is_inf(b, x, *, detect_negative: int = 1, detect_positive: int = 1):
    positive, negative = b.scalar("is_pos_inf", x), b.scalar("is_neg_inf", x)
    if detect_positive and detect_negative:
        return b.scalar("or", positive, negative)
    if detect_positive or detect_negative:
        return positive if detect_positive else negative
    return b.scalar("and", positive, negative)  # never both: false everywhere


@op("Where", since=9)
def where(b, condition, x, y):
    return b.select(condition, x, y)


@op("Cast", since=6)
def cast(b, x, *, to: int, saturate: int = 1, round_mode: RoundMode = "up"):
    dtype = DType(to)
    if (x.dtype is DType.STRING) != (dtype is DType.STRING):
        return cast_text(b, x, dtype)
    return b.cast(x, dtype, saturate=bool(saturate), round_mode=round_mode)


@op("Cast", since=1)
def cast_1(b, x, *, to: str):
    names = {"FLOAT": DType.FLOAT32, "DOUBLE": DType.FLOAT64}
    if to not in names and to not in DType.__members__:
        raise UnsupportedError("unknown element type of Cast", got=to)
    return cast(b, x, to=names[to] if to in names else DType[to])


@op("CastLike", since=15)
def cast_like(b, x, target, *, saturate: int = 1, round_mode: RoundMode = "up"):
    return cast(b, x, to=target.dtype, saturate=saturate, round_mode=round_mode)


@op("Clip", since=11)
def clip(b, x, low=None, high=None):
    if low is not None:
        x = b.scalar("max", x, fits(b, single(b, low), x.shape, "min"))
    return x if high is None else b.scalar("min", x, fits(b, single(b, high), x.shape, "max"))


@op("Clip", since=6)
def clip_6(b, x, *, min: float = -3.4028234663852886e38, max: float = 3.4028234663852886e38):
    """Infinities become the largest float32: the defaults are numbers."""
    return clip(b, x, b.like(min, x), b.like(max, x))


@op("Clip", since=1)
def clip_1(b, x, *, min: float | None = None, max: float | None = None,
           consumed_inputs: Ints = None):
    low = None if min is None else b.like(min, x)
    high = None if max is None else b.like(max, x)
    return clip(b, x, low, high)


@op("Identity", since=1)
def identity(b, x):
    return b.identity(x)
