"""Symbolic scalar expressions over dims and small values; evaluated in C++ (core/expr.h).

An Expr is immutable and interned, so equal expressions are the same object. Integer sums are
kept in a linear normal form, which proves the equalities that shape arithmetic needs.
"""

from __future__ import annotations

import weakref
from typing import Callable, Iterable, Union

from rlx.ir.expr_ops import FLOAT_OPS, INT_OPS, OPS

Scalar = Union[int, float]


class Symbol:
    """A number known only when a program is bound: a dim or an element of a value.

    kind "dim": extent of axis `index` of `value`; kind "element": flat element `index` of it.
    `upper` bounds it from above where the primitive states one; `name` is the model's dim name.
    `capacity` marks a symbol that may change from run to run without a new plan.
    """

    __slots__ = ("kind", "value", "index", "is_float", "upper", "name", "capacity")

    def __init__(self, kind, value, index, *, is_float=False, upper=None, name=None, capacity=None):
        self.kind, self.value, self.index = kind, value, index
        self.is_float, self.upper, self.name, self.capacity = is_float, upper, name, capacity

    def __repr__(self) -> str:
        return self.name or f"{self.kind}({getattr(self.value, 'name', self.value)},{self.index})"


class Expr:
    """One interned node: a symbol, or an operation on Exprs and numbers.

    `natural`: whether it is surely an integer and not negative, as dims are. `symbols`: all that
    it depends on; kept, since every pass asks for them.
    """

    __slots__ = ("op", "args", "is_float", "natural", "symbols", "_order", "__weakref__")
    _table: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
    _count = 0

    def __new__(cls, op: str, args: tuple, is_float: bool):
        key = (op, args, is_float, tuple(type(a) for a in args))
        found = cls._table.get(key)
        if found is None:
            found = object.__new__(cls)
            found.op, found.args, found.is_float = op, args, is_float
            found.natural = not is_float and _gives_natural(op, args)
            found.symbols = _symbols_in(op, args)
            found._order = cls._count
            cls._count += 1
            cls._table[key] = found
        return found

    def __repr__(self) -> str:
        return self._text(4)

    def _text(self, depth: int) -> str:
        """Readable text; deep parts are cut, since shared parts could make it endless."""
        if self.op == "symbol":
            return repr(self.args[0])
        if depth == 0:
            return "..."
        parts = [a._text(depth - 1) if isinstance(a, Expr) else str(a) for a in self.args]
        infix = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%", "eq": "==",
                 "lt": "<"}
        if self.op in infix:
            return f"({parts[0]} {infix[self.op]} {parts[1]})"
        return f"{self.op}({', '.join(parts)})"

    def __add__(self, other):
        return apply("add", self, other)

    __radd__ = __add__

    def __sub__(self, other):
        return apply("sub", self, other)

    def __rsub__(self, other):
        return apply("sub", other, self)

    def __mul__(self, other):
        return apply("mul", self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other):
        return apply("floordiv", self, other)

    def __mod__(self, other):
        return apply("mod", self, other)

    def __bool__(self):
        raise TypeError(f"the truth of the symbolic expression {self} is known only when bound")


Number = Union[int, float, Expr]


def symbol(sym: Symbol) -> Expr:
    """The Expr that stands for a symbol."""
    return Expr("symbol", (sym,), sym.is_float)


def as_int(x: Number) -> int | None:
    """The integer that x is, or None when it is symbolic."""
    return None if isinstance(x, Expr) else int(x)


def is_float(x: Number) -> bool:
    return x.is_float if isinstance(x, Expr) else isinstance(x, float)


def symbols_of(x: Number) -> frozenset[Symbol]:
    """Every Symbol that x depends on."""
    return x.symbols if isinstance(x, Expr) else frozenset()


def _symbols_in(op: str, args: tuple) -> frozenset[Symbol]:
    if op == "symbol":
        return frozenset(args)
    parts = [a.symbols for a in args if isinstance(a, Expr)]
    # Mostly one part holds the others: then its set serves.
    largest = max(parts, key=len, default=frozenset())
    return largest if all(p <= largest for p in parts) else largest.union(*parts)


def apply(op: str, *args: Number) -> Number:
    """op of the arguments: a number when all are numbers, else a simplified Expr."""
    count, evaluate = OPS[op]
    if len(args) != count:
        raise TypeError(f"{op} takes {count} arguments, got {len(args)}")
    if not any(isinstance(a, Expr) for a in args):
        return evaluate(*args)
    floating = op in FLOAT_OPS or (
        op not in INT_OPS and any(is_float(a) for a in args[op == "select":]))
    if not floating and op in ("add", "sub", "mul"):
        linear = _linear_result(op, args)
        if linear is not None:
            return linear
    simple = _simplify(op, args)
    return simple if simple is not None else Expr(op, args, floating)


def _simplify(op: str, args: tuple) -> Number | None:
    a = args[0]
    b = args[1] if len(args) > 1 else None
    if op in ("min", "max", "and", "or", "bcast") and a is b:
        return a
    if op in ("eq", "le") and a is b:
        return 1
    if op == "max" and 0 in args:
        other = b if not isinstance(a, Expr) else a
        if is_natural(other):
            return other
    if op == "min":
        for low, high in (args, args[::-1]):
            if isinstance(low, int) and low <= 0 and is_natural(high):
                return low
    if op == "le" and isinstance(a, int) and a <= 0 and is_natural(b):
        return 1
    if op == "lt" and isinstance(b, int) and b <= 0 and is_natural(a):
        return 0
    if op in ("ne", "lt") and a is b:
        return 0
    if op == "bcast":
        if not isinstance(a, Expr):
            return b if a == 1 else a
        if not isinstance(b, Expr):
            return a if b == 1 else b
    if op == "select":
        if not isinstance(a, Expr):
            return args[1] if a else args[2]
        if args[1] is args[2] or (not isinstance(args[1], Expr) and args[1] == args[2]):
            return args[1]
    if op in ("floordiv", "truncdiv", "mod") and not isinstance(b, Expr):
        if b == 1:
            return 0 if op == "mod" else a
        terms, constant = _linear(a)
        if b > 0 and constant % b == 0 and all(c % b == 0 for c in terms.values()):
            return 0 if op == "mod" else _from_linear({t: c // b for t, c in terms.items()},
                                                      constant // b)
    if op == "floordiv" and isinstance(a, Expr) and a.op == "mul" and b in a.args:
        return a.args[1] if a.args[0] is b else a.args[0]
    if op == "to_int" and not is_float(a):
        return a
    roundings = ("floor", "ceil", "round")
    if op in roundings and isinstance(a, Expr) and (a.op in roundings or _whole(a) is not None):
        return a
    return _whole(a) if op == "to_int" else None


def _whole(x: Number) -> Number | None:
    """The integer that a float is, when it is one: a dim, maybe times a whole number."""
    if not isinstance(x, Expr):
        return None
    if x.op == "to_float" and isinstance(x.args[0], Expr) and not x.args[0].is_float:
        return x.args[0]
    if x.op == "mul":
        for dim, scale in (x.args, x.args[::-1]):
            inner = _whole(dim)
            if isinstance(scale, float) and scale.is_integer() and is_natural(inner):
                return apply("mul", inner, int(scale))
    return None


def is_natural(x: Number) -> bool:
    """Whether x is surely an integer that is not negative."""
    return x.natural if isinstance(x, Expr) else isinstance(x, int) and x >= 0


def _gives_natural(op: str, args: tuple) -> bool:
    if op == "symbol":
        return args[0].kind == "dim"
    if op == "max":
        return any(map(is_natural, args))
    if op == "select":
        return all(map(is_natural, args[1:]))
    return op in ("add", "mul", "min", "floordiv", "bcast") and all(map(is_natural, args))


def _linear(x: Number) -> tuple[dict, int]:
    """x as {term: coefficient} and a constant."""
    if not isinstance(x, Expr):
        return {}, int(x)
    if x.op == "add" and not x.is_float:
        left, c = _linear(x.args[0])
        right, d = _linear(x.args[1])
        for t, k in right.items():
            left[t] = left.get(t, 0) + k
        return left, c + d
    if x.op == "mul" and not x.is_float and not isinstance(x.args[1], Expr):
        terms, c = _linear(x.args[0])
        return {t: k * x.args[1] for t, k in terms.items()}, c * x.args[1]
    return {x: 1}, 0


def _from_linear(terms: dict, constant: int) -> Number:
    result: Number | None = None
    for t in sorted((t for t, c in terms.items() if c), key=lambda t: t._order):
        part = t if terms[t] == 1 else Expr("mul", (t, terms[t]), False)
        result = part if result is None else Expr("add", (result, part), False)
    if result is None:
        return constant
    return result if constant == 0 else Expr("add", (result, constant), False)


def _linear_result(op: str, args: tuple) -> Number | None:
    (ta, ca), (tb, cb) = _linear(args[0]), _linear(args[1])
    if op in ("add", "sub"):
        sign = 1 if op == "add" else -1
        for t, c in tb.items():
            ta[t] = ta.get(t, 0) + sign * c
        return _from_linear(ta, ca + sign * cb)
    if not tb:
        return _from_linear({t: c * cb for t, c in ta.items()}, ca * cb)
    if not ta:
        return _from_linear({t: c * ca for t, c in tb.items()}, cb * ca)
    left, right = sorted(args, key=lambda e: e._order)  # a canonical order for products
    return Expr("mul", (left, right), False)


def product(dims: Iterable[Number]) -> Number:
    """The product of dims: the element count of a shape."""
    result: Number = 1
    for d in dims:
        result = apply("mul", result, d)
    return result


def evaluate(x: Number, known: Callable[[Symbol], Scalar]) -> Scalar:
    """The value of x, with known(symbol) giving the symbols' values."""
    return _mapped(x, known, lambda op, args: OPS[op][1](*args), {})


def substitute(x: Number, replace: Callable[[Symbol], Number | None]) -> Number:
    """x with symbols exchanged; replace gives None for one that stays."""
    def exchanged(s: Symbol) -> Number:
        other = replace(s)
        return symbol(s) if other is None else other
    return _mapped(x, exchanged, lambda op, args: apply(op, *args), {})


def _mapped(x: Number, on_symbol: Callable, on_operation: Callable, memo: dict) -> Number:
    """x computed anew from its symbols, each shared part once."""
    if not isinstance(x, Expr):
        return x
    if x not in memo:
        if x.op == "symbol":
            memo[x] = on_symbol(x.args[0])
        else:
            args = [_mapped(a, on_symbol, on_operation, memo) for a in x.args]
            memo[x] = on_operation(x.op, args)
    return memo[x]
