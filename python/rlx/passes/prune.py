"""Drops nodes whose outputs nobody reads; child graphs too."""

from __future__ import annotations

from rlx.ir.expr import symbols_of
from rlx.ir.graph import Graph, If, Loop, Node, Scan
from rlx.ir.types import TensorType


def prune(graph: Graph) -> Graph:
    """Keeps what the outputs, and the numbers they and the guards need, depend on."""
    needed: set[int] = set()
    for v in graph.outputs:
        _need(v, needed)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if not any(v is not None and v.id in needed for v in node.outputs):
            continue
        kept.append(node)
        for v in (*node.inputs, *node.outputs):
            if v is not None:
                _need(v, needed)
        for number in node.numbers():
            for s in symbols_of(number):
                needed.add(s.value.id)
        _prune_children(node)
    graph.nodes = kept[::-1]
    alive = needed | {v.id for v in graph.inputs}
    graph.guards = [g for g in graph.guards
                    if all(s.value.id in alive for s in symbols_of(g.condition))]
    return graph


def _need(value, needed: set[int]) -> None:
    if value.id in needed:
        return
    needed.add(value.id)
    if isinstance(value.type, TensorType):
        for d in value.shape:
            for s in symbols_of(d):
                needed.add(s.value.id)


def _prune_children(node: Node) -> None:
    prim = node.prim
    if isinstance(prim, If):
        prune(prim.then_graph)
        prune(prim.else_graph)
    elif isinstance(prim, (Loop, Scan)):
        prune(prim.body)
