"""Dims of a model's inputs: names shared between inputs, names that are sums, capacities."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from rlx.ir.expr import Expr, Number, Symbol, apply, substitute, symbol
from rlx.ir.graph import Guard, Value

_OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "floordiv",
              ast.Div: "floordiv"}


class InputDims:
    """Gives dims as the model names them to the inputs of one import.

    A name used twice, or one like "past + sequence" whose parts are names of other dims, is
    taken to hold under a guard; in `denied` are the assumptions that did not.
    `capacities` has the step of growth of a dim (input, axis), see Symbol.capacity.
    """

    def __init__(self, denied: frozenset[str], capacities: Mapping[tuple[str, int], int]):
        self.denied, self.capacities = denied, capacities
        self.named: dict[str, Expr] = {}  # the first dim of each plain name
        self.guards: list[Guard] = []
        self._growing: dict[str, int] = {}  # names whose dims have a capacity

    def resolve(self, inputs: list[tuple[Value, tuple[int | str, ...]]]) -> None:
        """Replaces each dim of each value (an int, or a name that may be empty) in its type."""
        for value, dims in inputs:
            for axis, d in enumerate(dims):
                step = self.capacities.get((value.name, axis))
                if step is not None and isinstance(d, str) and d:
                    self._growing[d] = step
        found = [[d if isinstance(d, int) else self._own(value, axis, d)
                  for axis, d in enumerate(dims)] for value, dims in inputs]
        for (value, dims), own in zip(inputs, found):
            shape = [self._assumed(value, d, x) if isinstance(x, Expr) else x
                     for d, x in zip(dims, own)]
            value.type = type(value.type)(value.dtype, tuple(shape))

    def _own(self, value: Value, axis: int, name: str) -> Expr:
        made = Symbol("dim", value, axis, name=name or f"{value.name}.{axis}")
        own = symbol(made)
        step = self.capacities.get((value.name, axis), self._growing.get(name))
        if step is not None:
            made.capacity = apply("mul", apply("add", apply("floordiv", own, step), 1), step)
        if name:
            self.named.setdefault(name, own)
        return own

    def _assumed(self, value: Value, name: str, own: Expr) -> Number:
        """What the dim is by its name, under a guard; `own` where the name says nothing."""
        told = _parse(name, self.named) if name and f"dim:{name}" not in self.denied else None
        if told is None or told is own:
            return own
        planned = substitute(told, _capacity)
        if planned is not told:
            own.args[0].capacity = planned
        message = f"dim {name!r} of input {value.name!r} must be what it is elsewhere"
        self.guards.append(Guard(apply("eq", own, told), message, None, f"dim:{name}"))
        return told


def _capacity(part: Symbol) -> Number | None:
    return part.capacity


def _parse(name: str, named: Mapping[str, Expr]) -> Number | None:
    """The number that a dim's name tells in terms of dims with plain names, or None."""
    try:
        tree = ast.parse(name, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return named.get(name)
    if isinstance(tree, (ast.Name, ast.Constant)):
        return named.get(name)
    told = _number(tree, named)
    return named.get(name) if told is None else told


def _number(tree: ast.expr, named: Mapping[str, Expr]) -> Number | None:
    if isinstance(tree, ast.Name):
        return named.get(tree.id)
    if isinstance(tree, ast.Constant):
        return tree.value if type(tree.value) is int and tree.value > 0 else None
    if isinstance(tree, ast.BinOp) and type(tree.op) in _OPERATORS:
        sides = _number(tree.left, named), _number(tree.right, named)
        if None not in sides:
            return apply(_OPERATORS[type(tree.op)], *sides)
    return None
