"""The operations of symbolic expressions on numbers, by name; C++ twin: core/expr.h."""

from __future__ import annotations

import math
from typing import Callable

import numpy as np

# op -> (number of arguments, evaluator).
OPS: dict[str, tuple[int, Callable]] = {
    "add": (2, lambda a, b: a + b),
    "sub": (2, lambda a, b: a - b),
    "mul": (2, lambda a, b: a * b),
    "min": (2, min),
    "max": (2, max),
    "eq": (2, lambda a, b: int(a == b)),
    "ne": (2, lambda a, b: int(a != b)),
    "lt": (2, lambda a, b: int(a < b)),
    "le": (2, lambda a, b: int(a <= b)),
    "and": (2, lambda a, b: int(bool(a) and bool(b))),
    "or": (2, lambda a, b: int(bool(a) or bool(b))),
    "not": (1, lambda a: int(not a)),
    "select": (3, lambda c, a, b: a if c else b),
    # Integer division; a zero divisor gives 0 (guards keep it from being used).
    "truncdiv": (2, lambda a, b: 0 if b == 0
                 else int(abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)),
    "floordiv": (2, lambda a, b: 0 if b == 0 else a // b),
    "mod": (2, lambda a, b: 0 if b == 0 else a % b),  # floor modulo, sign of the divisor
    "div": (2, lambda a, b: float(a) / float(b) if b
            else math.copysign(math.inf, a) if a else math.nan),
    "floor": (1, lambda a: float(math.floor(a)) if math.isfinite(a) else a),
    "ceil": (1, lambda a: float(math.ceil(a)) if math.isfinite(a) else a),
    "round": (1, lambda a: float(round(a)) if math.isfinite(a) else a),  # half to even
    "sqrt": (1, lambda a: math.sqrt(a) if a >= 0 else math.nan),
    # Truncates and saturates to int64.
    "to_int": (1, lambda a: min(max(int(a), -2**63), 2**63 - 1) if math.isfinite(a) else 0),
    "to_float": (1, float),
    "to_f32": (1, lambda a: float(np.float32(a))),  # a float64 rounded to float32
    # Broadcast of two dims: 1 gives way, else they must be equal (a guard checks that).
    "bcast": (2, lambda a, b: b if a == 1 else a),
}
# Operations whose result is always a float, or always an integer.
FLOAT_OPS = {"div", "floor", "ceil", "round", "sqrt", "to_float", "to_f32"}
INT_OPS = {"eq", "ne", "lt", "le", "and", "or", "not", "truncdiv", "floordiv", "mod", "to_int",
            "bcast"}
