"""Half weights under float32 activations: those of the model, and float32 ones that are made half.

Products and convolutions read a weight in a half type as it is and sum in float32.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlx.ir.graph import Alias, Graph, Node, Value
from rlx.ir.prims import AxisMap, Conv, Gather, MatMul, Move, Region, RegionOp
from rlx.ir.slots import slots
from rlx.ir.types import HALF_NAMES, HALVES, DType, TensorType
from rlx.passes.children import for_each_graph
from rlx.passes.match import unary
from rlx.passes.prune import prune

_WEIGHT = 1  # its place among the inputs of a product or convolution


def halves(graph: Graph) -> Graph:
    """Weights that a model keeps in half and casts to float32 are read without the cast; children
    included. Nothing is rounded."""
    for_each_graph(graph, _skip_casts)
    return prune(graph)


def _skip_casts(graph: Graph) -> None:
    nodes: list[Node] = []
    made: dict[int, Value] = {}
    for node in graph.nodes:
        if _reads_weight(node):
            node.inputs[_WEIGHT] = _without_cast(node.inputs[_WEIGHT], nodes, made)
        nodes.append(node)
    graph.nodes = nodes


def _reads_weight(node: Node) -> bool:
    """Whether the node multiplies float32 by a float32 weight, without zero points or groups."""
    return (isinstance(node.prim, (MatMul, Conv)) and node.inputs[0].dtype is DType.FLOAT32
            and node.inputs[_WEIGHT].dtype is DType.FLOAT32
            and not any(v is not None for v in node.inputs[2:slots(node.prim).fixed]))


def _without_cast(v: Value, nodes: list[Node], made: dict[int, Value]) -> Value:
    """v in the half type of the constant it is cast from, moved as v is; v itself for others."""
    moves: list[Node] = []
    x = v
    while x.producer is not None and _only_moves(x.producer):
        moves.append(x.producer)
        x = x.producer.inputs[0]
    half = unary(x, "cast")
    if half is None or half.dtype not in HALVES or not half.is_const:
        return v
    if tuple(half.shape) != tuple(x.shape):
        return v
    for node in reversed(moves):
        y = node.outputs[0]
        if y.id not in made:
            made[y.id] = Value(TensorType(half.dtype, y.shape))
            nodes.append(Node(node.prim, [half], [made[y.id]], node.origin))
        half = made[y.id]
    return half


def _only_moves(node: Node) -> bool:
    prim = node.prim
    return isinstance(prim, Alias) or (
        isinstance(prim, Move) and len(prim.parts) == 1 and prim.mode == "none")


def narrow(graph: Graph, weights: str = "") -> Graph:
    """Float32 weights of products and convolutions become `weights`, a name of HALF_NAMES; "": they
    stay. Children included.

    One that anything but these and Gather reads too stays, since it would then be held twice, and
    so does one with values beyond the type's range.
    """
    if not weights:
        return graph
    dtype = HALF_NAMES[weights]
    made: dict[int, Value | None] = {}
    for_each_graph(graph, lambda g: _Narrower(g, dtype, made).run())
    return graph


class _Narrower:
    def __init__(self, graph: Graph, dtype: DType, made: dict[int, Value | None]):
        self.graph, self.dtype = graph, dtype
        self.made = made  # by the id of the float32 constant; None: it stays
        self.kept = {v.id for v in graph.outputs}
        self.read: set[int] = set()  # by products and convolutions
        for node in graph.nodes:
            for slot, v in enumerate(node.inputs):
                if v is None or not v.is_const:
                    continue
                if slot == _WEIGHT and _reads_weight(node):
                    self.read.add(v.id)
                elif not (slot == 0 and isinstance(node.prim, Gather)):
                    self.kept.add(v.id)

    def run(self) -> None:
        nodes: list[Node] = []
        for node in self.graph.nodes:
            nodes.append(node)
            slot = 0 if isinstance(node.prim, Gather) else _WEIGHT
            half = self.half(node.inputs[slot]) if slot < len(node.inputs) else None
            if half is None:
                continue
            node.inputs[slot] = half
            if slot == 0:
                nodes.append(self.widened(node))
        self.graph.nodes = nodes

    def half(self, v: Value | None) -> Value | None:
        """The constant v in the half type; None where it is to stay."""
        if v is None or v.id not in self.read or v.id in self.kept:
            return None
        if v.id not in self.made:
            self.made[v.id] = self.rounded(v)
        return self.made[v.id]

    def rounded(self, v: Value) -> Value | None:
        with np.errstate(over="ignore"):
            array = v.const.astype(self.dtype.numpy)
        if not np.isfinite(array).all() and np.isfinite(v.const).all():
            return None
        made = Value(TensorType(self.dtype, v.shape), v.name, const=array)
        if v.weight is not None and v.weight.source is not None:
            made.weight = replace(
                v.weight, dtype=self.dtype, data=array.reshape(-1).view(np.uint8), mapped=False,
                source=f"{v.weight.source} {self.dtype.name.lower()}")
        return made

    def widened(self, node: Node) -> Node:
        """Makes the Gather give half values; the cast of them to what it gave."""
        y = node.outputs[0]
        half = Value(TensorType(self.dtype, y.shape))
        node.outputs, half.producer = [half], node
        access = tuple(AxisMap(axis) for axis in range(y.rank))
        ops = (RegionOp("load", self.dtype, (0,)), RegionOp("cast", y.dtype, (0,)))
        return Node(Region(tuple(y.shape), (access,), ops, (1,)), [half], [y], node.origin)
