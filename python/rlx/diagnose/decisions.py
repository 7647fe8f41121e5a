"""What became of every ONNX node: runs, fused, renamed, folded, or computed while importing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlx.importer.importer import import_model
from rlx.importer.loaded import LoadedGraph
from rlx.ir.graph import Alias, Graph
from rlx.passes import run_pipeline
from rlx.passes.children import for_each_graph


def decisions(session: Any, facts: Any) -> list[dict[str, Any]]:
    """A dict for each ONNX node of the model, in its order, subgraphs after their node.

    decision: "runs", "fused", "alias", "removed", "imported" or "expanded"; `steps` holds the
    rows of Session.explain() that it runs as, `why` the reason in words.
    """
    own: dict[str, list[dict[str, Any]]] = {}
    into: dict[str, dict[str, Any]] = {}
    for row in session.explain():
        own.setdefault(row["name"], []).append(row)
        for name in row["also"]:
            into.setdefault(name, row)
    aliases, gone = _fates(session, facts)
    found = []
    for label, op, domain, prefix in _walk(session._model.graph):
        entry = {"node": label, "op": op, "domain": domain or "ai.onnx", "steps": []}
        inner = [name for name in own if name.startswith(prefix)]
        if label in own:
            rows = own[label]
            entry |= {"decision": "runs", "steps": rows,
                      "why": "; ".join(dict.fromkeys(r["reason"] for r in rows if r["reason"]))}
        elif label in into:
            entry |= {"decision": "fused", "why": f"into {into[label]['name']!r}"}
        elif label in aliases:
            entry |= {"decision": "alias", "why": "the same bytes under another name or shape"}
        elif inner:
            entry |= {"decision": "expanded", "why": f"into {len(inner)} nodes of its function",
                      "steps": [row for name in inner for row in own[name]]}
        elif label in gone:
            entry |= {"decision": "removed", "why": f"by pass {gone[label]!r}"}
        else:
            entry |= {"decision": "imported", "why": "a constant or a shape: known before the run"}
        found.append(entry)
    return found


def _fates(session: Any, facts: Any) -> tuple[set[str], dict[str, str]]:
    """The nodes that are only aliases in the end, and which pass removed which node."""
    graph = import_model(session._model, facts)
    before, gone = _names(graph), {}

    def see(name: str, rewritten: Graph) -> None:
        nonlocal before
        after = _names(rewritten)
        gone.update(dict.fromkeys(before - after, name))
        before = after

    graph = run_pipeline(graph, session.left_out, session.options.weights, see)
    return _names(graph, aliases=True), gone


def _names(graph: Graph, aliases: bool = False) -> set[str]:
    """Names of the ONNX nodes behind a graph's nodes, or behind its aliases only."""
    found: set[str] = set()

    def look(g: Graph) -> None:
        for node in g.nodes:
            if not aliases or isinstance(node.prim, Alias):
                found.update((node.origin.name, *node.origin.also))

    for_each_graph(graph, look)
    return found


def _walk(graph: LoadedGraph) -> Iterator[tuple[str, str, str, str]]:
    for node in graph.nodes:
        # Nodes of its function's body are named after its first output.
        prefix = next(filter(None, node.output), node.label) + "/"
        yield node.label, node.op_type, node.domain, prefix
        for _, inner in node.subgraphs():
            yield from _walk(inner)
