"""Makes equal computations one: same primitive, same inputs, same output types."""

from __future__ import annotations

from rlx.ir.graph import STAGES, Alias, Graph, Node, Value
from rlx.ir.prims import Random
from rlx.ir.types import DType
from rlx.passes.children import for_each_graph
from rlx.passes.match import sameness, symbol_values
from rlx.passes.regions import merged_origin


def dedupe(graph: Graph) -> Graph:
    """Every graph by itself, children included."""
    for_each_graph(graph, lambda g: _Deduper(g).run())
    return graph


class _Deduper:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.instead: dict[int, Value] = {}  # value id -> the equal value to read
        self.seen: dict[tuple, list[Node]] = {}
        self.constants: dict = {}
        self.named = symbol_values(graph)    # values that numbers depend on keep their node

    def run(self) -> None:
        graph = self.graph
        kept: list[Node] = []
        for node in graph.nodes:
            node.inputs = [self.value(v) for v in node.inputs]
            if not self.replace(node):
                kept.append(node)
        graph.nodes = kept
        if not graph.output_names:
            graph.output_names = [v.name for v in graph.outputs]
        graph.outputs = [self.value(v) for v in graph.outputs]

    def value(self, v: Value | None) -> Value | None:
        if v is None:
            return None
        if v.is_const:
            return self.constant(v)
        return self.instead.get(v.id, v)

    def constant(self, v: Value) -> Value:
        """The first constant with these elements."""
        if v.dtype is DType.STRING:
            return v
        return self.constants.setdefault((v.dtype, *sameness(v.const)), v)  # packed types: uint8

    def replace(self, node: Node) -> bool:
        """Whether the node is not needed: an earlier one gives the same."""
        if isinstance(node.prim, (*STAGES, Random)):
            return False
        if any(v is not None and v.id in self.named for v in node.outputs):
            return False
        if isinstance(node.prim, Alias) and self.shorter(node):
            return True
        key = (node.prim, tuple(v and v.id for v in node.inputs),
               tuple(v and v.type for v in node.outputs))
        equal = self.seen.setdefault(key, [])
        # Equal numbers may differ as constants (1, True; 0.0, -0.0): the text tells them apart.
        first = next((n for n in equal if repr(n.prim) == repr(node.prim)), None)
        if first is None:
            equal.append(node)
            return False
        for mine, theirs in zip(node.outputs, first.outputs):
            if mine is not None:
                self.instead[mine.id] = theirs
        first.origin = merged_origin(first.origin, node.origin)
        return True

    def shorter(self, node: Node) -> bool:
        """An alias of an alias looks at the source; one of the source's own shape is the source."""
        (x,), (y,) = node.inputs, node.outputs
        while x.producer is not None and isinstance(x.producer.prim, Alias):
            x = x.producer.inputs[0]
        node.inputs = [x]
        if tuple(x.shape) == tuple(y.shape):
            self.instead[y.id] = x
            return True
        return False
