"""The scalar functions of Regions: one row each, with a NumPy reference.

Twin of kernels/include/scalar_ops.h. A reference takes arrays of float64, complex128, bool or
the exact integer type, broadcast against each other, and is never used at run time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable

import numpy as np

from rlx.ir.types import DType


@dataclass(frozen=True, slots=True)
class ScalarOp:
    """result "bool", or "same": the type of the last argument. types: what it is defined for."""

    name: str
    arity: int
    result: str
    types: str  # letters: b bool, i integer, f float, c complex, s string
    reference: Callable

    def allows(self, dtype: DType) -> bool:
        """Whether the function exists for (its last argument of) this type."""
        return _letter(dtype) in self.types

    def result_dtype(self, last: DType) -> DType:
        return DType.BOOL if self.result == "bool" else last


def _letter(dtype: DType) -> str:
    if dtype is DType.BOOL:
        return "b"
    if dtype is DType.STRING:
        return "s"
    if dtype in (DType.COMPLEX64, DType.COMPLEX128):
        return "c"
    return "f" if dtype.is_float else "i"


def _is_int(a) -> bool:
    return np.asarray(a).dtype.kind in "iu"


def _quiet(function: Callable) -> Callable:
    """function without NumPy's warnings about overflow, zero divisors and NaN."""
    def wrapped(*args):
        with np.errstate(all="ignore"):
            return function(*args)
    return wrapped


def _abs(a):
    a = np.asarray(a)
    return np.abs(a).astype(a.dtype)  # a complex magnitude stays complex


_erf = np.vectorize(math.erf, otypes=[np.float64])
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def _sigmoid(a):
    return np.where(a >= 0, 1 / (1 + np.exp(-np.abs(a))), np.exp(a) / (1 + np.exp(a)))


def _gelu(a):
    return a * 0.5 * _erfc(a * -math.sqrt(0.5))


def _gelu_tanh(a):
    return a * _sigmoid(2 * math.sqrt(2 / math.pi) * (a + 0.044715 * a**3))


def _softplus(a):
    return np.logaddexp(a, 0.0)


def _div(a, b):
    if not _is_int(a):
        return np.divide(a, b)
    a, b = np.broadcast_arrays(a, b)
    wide_a, wide_b = a.astype(object), np.where(b == 0, 1, b).astype(object)
    quotient = np.abs(wide_a) // np.abs(wide_b) * np.sign(wide_a) * np.sign(wide_b)
    return _wrap(np.where(b == 0, 0, quotient), a.dtype)


def _wrap(a, dtype):
    """Python integers reduced to the two's complement range of dtype."""
    bits = dtype.itemsize * 8
    unsigned = np.asarray(np.asarray(a, object) % (1 << bits), object)
    return unsigned.astype(np.uint64).astype(f"u{dtype.itemsize}").view(dtype)


def _pow(a, b):
    if not _is_int(a):
        return np.power(a, b)
    power = np.vectorize(_integer_power, otypes=[object])
    a = np.asarray(a)
    modulus = 1 << (8 * a.dtype.itemsize)
    return _wrap(power(a.astype(object), np.asarray(b, object), modulus), a.dtype)


def _integer_power(base, exponent, modulus):
    if exponent >= 0:
        return pow(int(base), int(exponent), modulus)
    return {1: 1, -1: -1 if exponent % 2 else 1}.get(base, 0)


def _remainder(numpy_function):
    def remainder(a, b):
        if not _is_int(a):
            return numpy_function(a, b)
        safe = np.where(b == 0, 1, b).astype(np.asarray(b).dtype)
        return np.where(b == 0, 0, numpy_function(a, safe)).astype(np.asarray(a).dtype)
    return remainder


def _shift_left(a, b):
    a, b = np.broadcast_arrays(a, b)
    unsigned, count, outside = a.astype(f"u{a.dtype.itemsize}"), *_shift_count(a, b)
    moved = np.left_shift(unsigned, count.astype(unsigned.dtype))
    return np.where(outside, 0, moved).astype(unsigned.dtype).view(a.dtype)


def _shift_right(a, b):
    """The sign bit fills in from the left, and is all that is left past the width."""
    a, b = np.broadcast_arrays(a, b)
    count, outside = _shift_count(a, b)
    fill = np.where(a < 0, -1, 0) if a.dtype.kind == "i" else 0
    return np.where(outside, fill, np.right_shift(a, count.astype(a.dtype))).astype(a.dtype)


def _shift_count(a, b):
    """(counts within the width, where they are not)."""
    count = b.astype(np.int64)
    outside = (count < 0) | (count >= a.dtype.itemsize * 8)
    return np.where(outside, 0, count), outside


def _rows() -> list[ScalarOp]:
    def row(name, types, reference, arity=1, result="same"):
        return ScalarOp(name, arity, result, types, _quiet(reference))

    unary = {
        "ceil": np.ceil, "floor": np.floor, "round": np.rint, "sqrt": np.sqrt,
        "rsqrt": lambda a: 1 / np.sqrt(a), "exp": np.exp, "log": np.log, "sin": np.sin,
        "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
        "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
        "acosh": np.arccosh, "atanh": np.arctanh, "erf": _erf, "sigmoid": _sigmoid,
        "softplus": _softplus, "gelu": _gelu, "gelu_tanh": _gelu_tanh,
        "silu": lambda a: a * _sigmoid(a),
    }
    compare = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
    return [
        row("abs", "ifc", _abs), row("neg", "ifc", np.negative), row("sign", "if", np.sign),
        *(row(name, "f", function) for name, function in unary.items()),
        row("reciprocal", "fc", lambda a: 1 / a),
        row("is_nan", "f", np.isnan, result="bool"),
        row("is_pos_inf", "f", np.isposinf, result="bool"),
        row("is_neg_inf", "f", np.isneginf, result="bool"),
        row("not", "b", np.logical_not, result="bool"), row("bitwise_not", "i", np.invert),
        row("add", "ifc", np.add, 2), row("sub", "ifc", np.subtract, 2),
        row("mul", "ifc", np.multiply, 2), row("div", "ifc", _div, 2), row("pow", "if", _pow, 2),
        row("min", "bif", np.minimum, 2), row("max", "bif", np.maximum, 2),
        row("mod", "if", _remainder(np.mod), 2), row("fmod", "if", _remainder(np.fmod), 2),
        row("bitwise_and", "i", np.bitwise_and, 2), row("bitwise_or", "i", np.bitwise_or, 2),
        row("bitwise_xor", "i", np.bitwise_xor, 2),
        row("shift_left", "i", _shift_left, 2),
        row("shift_right", "i", _shift_right, 2),
        row("eq", "bifcs", np.equal, 2, "bool"), row("ne", "bifcs", np.not_equal, 2, "bool"),
        *(row(name, "if", function, 2, "bool") for name, function in compare.items()),
        row("and", "b", np.logical_and, 2, "bool"), row("or", "b", np.logical_or, 2, "bool"),
        row("xor", "b", np.logical_xor, 2, "bool"),
        row("select", "bifcs", np.where, 3),
    ]


SCALAR_OPS: dict[str, ScalarOp] = {op.name: op for op in _rows()}
