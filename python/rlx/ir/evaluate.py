"""Evaluates primitives and whole Graphs with NumPy: the reference, and what folding uses."""

from __future__ import annotations

from rlx.ir.reference import REFERENCES


def reference(prim, inputs, types):
    """The outputs of one primitive on constant arrays, or None when it has no static answer.

    Integers are computed exactly; floats in float64, rounded once to each output's type.
    """
    compute = REFERENCES.get(type(prim))
    return None if compute is None else compute(prim, inputs, types)
