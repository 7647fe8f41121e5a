"""Evaluates primitives on NumPy arrays: what folding uses, and the tests' float64 reference."""

from __future__ import annotations

from rlx.ir.expr import Expr
from rlx.ir.reference import REFERENCES


class _Symbolic(Exception):
    """A field of the primitive is known only when bound."""


def _constant(number):
    if isinstance(number, Expr):
        raise _Symbolic
    return number


def reference(prim, inputs, types):
    """The outputs of one primitive on constant arrays, or None when it has no static answer.

    Integers are computed exactly; floats in float64, rounded once to each output's type.
    """
    compute = REFERENCES.get(type(prim))
    if compute is None:
        return None
    try:
        return compute(prim, inputs, types, _constant)
    except _Symbolic:
        return None
