"""Walks a graph and the graphs inside its stage nodes."""

from __future__ import annotations

from collections.abc import Callable

from rlx.ir.graph import Graph, If, Loop, Scan


def for_each_graph(graph: Graph, visit: Callable[[Graph], None]) -> None:
    """visit(graph) for the graph and, first, for every child graph."""
    for node in graph.nodes:
        prim = node.prim
        if isinstance(prim, If):
            for_each_graph(prim.then_graph, visit)
            for_each_graph(prim.else_graph, visit)
        elif isinstance(prim, (Loop, Scan)):
            for_each_graph(prim.body, visit)
    visit(graph)
