"""NumPy references of the primitives: float64 inside, exact integers, one file a family."""

from __future__ import annotations

from typing import Callable

# primitive class -> f(prim, inputs, types, value_of) -> list of arrays, one for each output.
# inputs are arrays or None; types TensorTypes with static shapes or None; value_of(Number) gives
# the number behind a Dim field.
REFERENCES: dict[type, Callable] = {}
