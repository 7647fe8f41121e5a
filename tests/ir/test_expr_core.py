"""Expressions evaluate in C++ as in Python, integers modulo 2**64."""

import math

from hypothesis import given, settings, strategies as st
import pytest

from rlx import _core
from rlx.emit.tables import ExprTable
from rlx.ir.expr import OPS, Expr, Symbol, apply, is_float, symbol

MIXED = ("add", "sub", "mul", "min", "max", "eq", "ne", "lt", "le")
INTEGER_ONLY = ("truncdiv", "floordiv", "mod", "bcast")
SYMBOLS = [Symbol("element", None, k, is_float=k >= 3, name=f"s{k}") for k in range(6)]

integers = st.integers(-9, 9) | st.sampled_from([2**31, -(2**40), 2**62])
floats = st.sampled_from([-2.5, -0.5, -0.0, 0.5, 1.5, 2.5, 3.0, 1e12, math.inf, -math.inf,
                          math.nan])


# (operation, kinds of its arguments: i integer, f float, e either)
OPERATIONS = [
    *((op, kinds) for op in MIXED for kinds in ("ii", "fe", "ef")),
    *((op, "ii") for op in INTEGER_ONLY),
    *((op, kinds) for op in ("floor", "ceil", "round", "to_float") for kinds in "if"),
    ("and", "ee"), ("or", "ee"), ("not", "e"), ("to_int", "f"), ("div", "ee"), ("sqrt", "f"),
    ("to_f32", "f"), ("select", "eii"), ("select", "eff"),
]
assert {op for op, _ in OPERATIONS} == set(OPS)
steps = st.lists(st.tuples(st.sampled_from(OPERATIONS), *[st.integers(0, 99)] * 3),
                 min_size=8, max_size=24)


def grown(leaves, chosen) -> list:
    """Expressions made one after the other, each of earlier ones picked by number."""
    made = [*leaves, *map(symbol, SYMBOLS)]
    for (op, kinds), *picks in chosen:
        args = []
        for kind, pick in zip(kinds, picks):
            fitting = [x for x in made if kind == "e" or is_float(x) == (kind == "f")]
            args.append(fitting[-1 - pick % len(fitting)])
        made.append(apply(op, *args))
    return made


def expected(x, values):
    """Python's evaluators, with int64 results and mixed kinds computed as floats."""
    if not isinstance(x, Expr):
        return x if isinstance(x, float) else min(max(int(x), -(2**63)), 2**63 - 1)
    if x.op == "symbol":
        return values[x.args[0].index]
    args = [expected(a, values) for a in x.args]
    if x.op in MIXED and any(isinstance(a, float) for a in args):
        args = [float(a) for a in args]
    result = OPS[x.op][1](*args)
    return float(result) if x.is_float else (int(result) + 2**63) % 2**64 - 2**63


def in_core(xs, values) -> list:
    table = ExprTable(lambda value: 0)
    rows = [table.id(x) for x in xs]
    numbers = _core.program.evaluate(table.rows, [values[s.index] for s in table.symbols])
    return [numbers[r] for r in rows]


@settings(max_examples=400)
@given(st.tuples(integers, floats), steps,
       st.tuples(integers, integers, integers, floats, floats, floats))
def test_core_agrees_with_python(leaves, chosen, values):
    xs = grown(leaves, chosen)
    for x, got in zip(xs, in_core(xs, values)):
        wanted = expected(x, values)
        assert got == wanted or (math.isnan(got) and math.isnan(wanted)), repr(x)
        assert math.copysign(1, got) == math.copysign(1, wanted) or math.isnan(wanted), repr(x)
        assert isinstance(got, float) == is_float(x)


def test_every_operation_is_in_both():
    for op, (arity, _) in OPS.items():
        assert _core.program.ExprRow(op, False, tuple(range(arity))).op == op
        with pytest.raises(ValueError, match="number of arguments"):
            _core.program.ExprRow(op, False, (0,) * (arity + 1))
    with pytest.raises(ValueError, match="no such expression"):
        _core.program.ExprRow("land", False, (0, 1))


def test_unknown_symbols_leave_rows_unknown():
    table = ExprTable(lambda value: 0)
    a, b = symbol(SYMBOLS[0]), symbol(SYMBOLS[1])
    rows = [table.id(x) for x in (a + 1, a + b)]
    numbers = _core.program.evaluate(table.rows, [4, None])
    assert [numbers[r] for r in rows] == [5, None]


def test_equal_expressions_are_one_row():
    table = ExprTable(lambda value: 0)
    a, b = symbol(SYMBOLS[0]), symbol(SYMBOLS[1])
    assert table.id(a + b) == table.id(b + a)
    count = len(table.rows)
    table.id((b + a) + 0)
    assert len(table.rows) == count
    assert table.id(0.0) != table.id(-0.0)


def test_dims_are_not_negative():
    n, e = symbol(Symbol("dim", None, 0, name="n")), symbol(SYMBOLS[0])
    assert [apply("min", n, 0), apply("min", -3, n), apply("max", n, 0), apply("lt", n, 0),
            apply("le", 0, n)] == [0, -3, n, 0, 1]
    assert all(isinstance(x, Expr) for x in (apply("min", 0, e), apply("lt", e, 0)))


def test_deep_expressions_need_no_recursion():
    x = symbol(SYMBOLS[0])
    for k in range(5000):
        x = Expr("max", (x, k), False)
    assert in_core([x], [7]) == [4999]
