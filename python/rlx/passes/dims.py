"""Writes equal dims alike: where a guard says that an input's dim equals another number, that
number takes its place, so that later passes see equal shapes as equal."""

from __future__ import annotations

from rlx.ir.expr import Expr, Number, Symbol, as_int, substitute, symbol, symbols_of
from rlx.ir.graph import STAGES, Graph, Guard, Value
from rlx.ir.slots import with_numbers
from rlx.ir.types import TensorType
from rlx.passes.children import for_each_graph


def dims(graph: Graph) -> Graph:
    """Every graph by its own guards; the guards themselves stay, as they carry the assumption."""
    for_each_graph(graph, _rewrite)
    return graph


def _rewrite(graph: Graph) -> None:
    known = {v.id for v in graph.inputs}
    instead: dict[Symbol, Number] = {}
    assumed: set[Symbol] = set()
    used: list[Guard] = []
    for guard in graph.guards:
        found = _equality(guard.condition, instead, known)
        if found is not None:
            s, number = found
            if guard.assumption is not None or symbols_of(guard.condition) & assumed:
                assumed.add(s)
            for t, n in instead.items():
                if s in symbols_of(n) and s in assumed:
                    assumed.add(t)
                instead[t] = substitute(n, {s: number}.get)
            instead[s] = number
            used.append(guard)
    if instead:
        _replace(graph, instead, used, assumed)


def _equality(condition: Number, instead: dict[Symbol, Number], known: set[int]):
    """(dim symbol, what it equals) when the condition says so of numbers known from the start."""
    if not isinstance(condition, Expr) or condition.op != "eq":
        return None
    a, b = (substitute(x, instead.get) for x in condition.args)
    if any(s.value.id not in known for x in (a, b) for s in symbols_of(x)):
        return None
    for own, other in ((b, a), (a, b)):
        if isinstance(own, Expr) and own.op == "symbol" and own.args[0].kind == "dim":
            if own.args[0] not in symbols_of(other):
                return own.args[0], other
    return None


def _replace(graph: Graph, instead: dict[Symbol, Number], used: list[Guard],
             assumed: set[Symbol]) -> None:
    memo: dict[Expr, Number] = {}

    def change(x: Number) -> Number:
        if not isinstance(x, Expr):
            return x
        if x not in memo:
            memo[x] = substitute(x, instead.get)
        return memo[x]

    # An input whose dim is only assumed to be a number takes others: its guard imports anew.
    held = {symbol(s): symbol(s) for s in assumed if not isinstance(instead[s], Expr)}
    inputs = {v.id for v in graph.inputs}
    for v in graph.values():
        if v.id in inputs and held:
            _change_value(v, lambda d: held[d] if isinstance(d, Expr) and d in held else change(d))
        else:
            _change_value(v, change)
    for node in graph.nodes:
        if not isinstance(node.prim, STAGES):
            node.prim = with_numbers(node.prim, change)
    kept = []
    for guard in graph.guards:
        if not any(guard is g for g in used):
            condition = change(guard.condition)
            if as_int(condition) == 1:
                continue
            if isinstance(condition, Expr):
                guard.condition = condition
        kept.append(guard)
    graph.guards = kept


def _change_value(v: Value, change) -> None:
    if isinstance(v.type, TensorType):
        shape = tuple(map(change, v.type.shape))
        if shape != v.type.shape:
            v.type = TensorType(v.dtype, shape)
    if v.exprs is not None:
        v.exprs = tuple(map(change, v.exprs))
