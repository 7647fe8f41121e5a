"""Cuts the nodes of a graph into stages, with as few cuts as runtime symbols and stages allow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rlx.errors import InternalError
from rlx.ir.expr import Number, Symbol, symbols_of
from rlx.ir.graph import STAGES, Alias, Graph, Node, Value
from rlx.ir.types import TensorType

Stage = list[Node] | Node  # the nodes of a segment, or one stage node


def schedule(graph: Graph) -> list[Stage]:
    """The stages in order. Whatever can run does so before the next cut; inside a segment the
    nodes keep the graph's order. Aliases run nowhere and are left out."""
    before = _Dependences(graph)
    pending = [n for n in graph.nodes if not isinstance(n.prim, Alias)]
    stages: list[Stage] = []
    closed: set[int] = set()  # id() of the nodes in finished stages
    while pending:
        segment, pending = _segment(pending, before, closed)
        closed.update(map(id, segment))
        alone, pending = _stage_nodes(pending, before, closed)
        if segment:
            stages.append(segment)
        stages += alone
        if not segment and not alone:
            raise InternalError(f"nodes wait for each other: {pending[0]}").at(
                node=pending[0].origin.name, op=pending[0].origin.op)
    return stages


def _segment(pending: list[Node], before: _Dependences, closed: set[int]):
    """What can run now as one segment, and the rest."""
    segment, rest, ready = [], [], set(closed)
    for node in pending:
        if (not isinstance(node.prim, STAGES) and before.values[id(node)] <= ready
                and before.numbers[id(node)] <= closed):
            segment.append(node)
            ready.add(id(node))
        else:
            rest.append(node)
    return segment, rest


def _stage_nodes(pending: list[Node], before: _Dependences, closed: set[int]):
    """The stage nodes that can run now, one after the other, and the rest. Adds to `closed`."""
    alone, rest = [], []
    for node in pending:
        needed = before.values[id(node)] | before.numbers[id(node)]
        if isinstance(node.prim, STAGES) and needed <= closed:
            alone.append(node)
            closed.add(id(node))
        else:
            rest.append(node)
    return alone, rest


class _Dependences:
    """For each node, by id(): the nodes whose values it reads, and those whose results must be
    numbers before it is bound."""

    def __init__(self, graph: Graph):
        self._makers: dict[int, Node | None] = {v.id: None for v in graph.inputs}
        self.values: dict[int, set[int]] = {}
        self.numbers: dict[int, set[int]] = {}
        for node in graph.nodes:
            if isinstance(node.prim, Alias):
                maker = self._maker(node.inputs[0])
            else:
                maker = node
            self._makers.update((v.id, maker) for v in node.outputs if v is not None)
        for node in graph.nodes:
            makers = [self._maker(v) for v in node.inputs if v is not None]
            self.values[id(node)] = {id(m) for m in makers if m is not None}
            self.numbers[id(node)] = self._needed_numbers(node)

    def _maker(self, value: Value) -> Node | None:
        """The node that computes a value, through aliases; None for inputs and constants."""
        if value.is_const and value.id not in self._makers:
            return None
        if value.id not in self._makers:
            raise InternalError(f"{value!r} is read, but nothing in the graph computes it")
        return self._makers[value.id]

    def _needed_numbers(self, node: Node) -> set[int]:
        found: set[int] = set()
        for s in _all_symbols(_numbers_at(node)):
            maker = self._maker(s.value)
            if maker is node:
                # Its own result: it is planned by the bound, which must be known instead.
                upper = () if s.upper is None else (s.upper,)
                makers = [self._maker(u.value) for u in _all_symbols(upper)]
                found.update(id(m) for m in makers if m is not None and m is not node)
            elif maker is not None:
                found.add(id(maker))
        return found


def _all_symbols(numbers: Iterable[Number]) -> frozenset[Symbol]:
    return frozenset().union(*(symbols_of(x) for x in numbers))


def _numbers_at(node: Node) -> Iterator[Number]:
    """The numbers that binding a node takes: its fields and the dims of what it touches."""
    yield from node.numbers()
    for value in (*node.inputs, *node.outputs):
        if value is not None and isinstance(value.type, TensorType):
            yield from value.shape
