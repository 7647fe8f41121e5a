"""Elementwise steps behind a reshaped product run on the product's own rows: Gemm -> Reshape ->
Gelu becomes Gemm -> Gelu -> Reshape, so that they can join the product."""

from __future__ import annotations

from dataclasses import replace

from rlx.ir.expr import as_int
from rlx.ir.graph import Alias, Graph, Node, Value
from rlx.ir.prims import Access, AxisMap, MatMul, Region
from rlx.ir.types import TensorType
from rlx.passes.children import for_each_graph
from rlx.passes.match import Uses, symbol_values
from rlx.passes.regions import is_identity


def rows(graph: Graph) -> Graph:
    """Every reshape of a product that only elementwise steps read, children included."""
    for_each_graph(graph, lambda g: _Rows(g).run())
    return graph


class _Rows:
    def __init__(self, graph: Graph):
        self.graph, self.uses = graph, Uses(graph)
        self.named = symbol_values(graph)
        self.of_product: set[int] = set()  # values with one row for each of a product's
        self.gone: set[int] = set()        # aliases that nobody reads any more

    def run(self) -> None:
        nodes: list[Node] = []
        for node in self.graph.nodes:
            prim = node.prim
            if isinstance(prim, Region) and len(prim.results) == 1:
                nodes.extend(self.region(node))
            else:
                if isinstance(prim, MatMul):
                    self.of_product.add(node.outputs[0].id)
                nodes.append(node)
        self.graph.nodes = [node for node in nodes if id(node) not in self.gone]

    def region(self, node: Node) -> list[Node]:
        """What stands for the Region."""
        for v, access in zip(node.inputs, node.prim.accesses):
            if v.id in self.of_product and v.shape == node.prim.shape and is_identity(access):
                self.of_product.add(node.outputs[0].id)
                return [node]
            alias = v.producer
            if (alias is not None and isinstance(alias.prim, Alias)
                    and alias.inputs[0].id in self.of_product):
                made = self.before(alias, node)
                if made:
                    return made
        return [node]

    def before(self, alias: Node, node: Node) -> list[Node]:
        """The Region on the shape of the alias's source, and its result in the old shape; nothing
        where it reads more than rows and columns."""
        y, z, region = alias.inputs[0], alias.outputs[0], node.prim
        old = node.outputs[0]
        fits = (z.rank >= 2 and y.shape[-1] == z.shape[-1] and tuple(region.shape) == tuple(z.shape)
                and self.uses.once(y) and self.uses.once(z) and old.id not in self.named)
        if not fits or any(op.op == "index" for op in region.ops):
            return []
        inputs, accesses, made = [], [], []
        for v, access in zip(node.inputs, region.accesses):
            if v is not z and _is_row(v, access, region.shape):
                access = tuple(replace(m, axis=y.rank - 1 if m.axis == z.rank - 1 else -1)
                               for m in access)
            elif tuple(v.shape) == tuple(z.shape) and is_identity(access) and not v.is_const:
                access = tuple(AxisMap(k) for k in range(y.rank))
                v = y if v is z else self.shaped(v, y, made, alias)
            else:
                return []
            inputs.append(v)
            accesses.append(access)
        moved = Node(replace(region, shape=y.shape, accesses=tuple(accesses)), inputs,
                     [Value(TensorType(old.dtype, y.shape))], node.origin)
        result = moved.outputs[0]
        self.of_product.add(result.id)
        self.uses.count[result.id] = 1
        self.gone.add(id(alias))
        return [*made, moved, Node(Alias(), [result], [old], alias.origin)]

    def shaped(self, v: Value, like: Value, made: list[Node], alias: Node) -> Value:
        seen = Value(TensorType(v.dtype, like.shape))
        made.append(Node(Alias(), [v], [seen], alias.origin))
        return seen


def _is_row(v: Value, access: Access, shape) -> bool:
    """Whether v is one value, or one for each column."""
    wide = [m.axis for m, d in zip(access, v.shape) if m.axis >= 0 and as_int(d) != 1]
    plain = all(as_int(m.div) == 1 and as_int(m.mod) == 0 for m in access)
    return plain and (not wide or (wide == [len(shape) - 1] and v.shape[-1] == shape[-1]))
