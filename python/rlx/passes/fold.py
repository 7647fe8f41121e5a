"""Computes what depends on constants only, where the result is not much bigger than its sources."""

from __future__ import annotations

import math

import numpy as np

from rlx.ir.evaluate import reference
from rlx.ir.graph import STAGES, Alias, Graph, Node, Value
from rlx.ir.prims import Region
from rlx.ir.types import TensorType
from rlx.passes.children import for_each_graph
from rlx.passes.match import sameness, symbol_values
from rlx.passes.regions import is_identity

GROWTH = 4           # a folded value may take this many times the bytes of its sources,
SMALL = 1 << 20      # or this many bytes,
BUDGET = 1 << 30     # and all of them together may grow by this (weights that are dequantised),
FROM_NOTHING = 1 << 16  # or have this size when computed from no tensor (ranges, masks)


def fold(graph: Graph) -> Graph:
    """Every graph by itself, children included."""
    for_each_graph(graph, lambda g: Folder(g).run())
    return graph


class Folder:
    """Finds the values that are constant, then computes those that the rest of the graph reads."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.constant: set[int] = set()          # ids of computed values that are constant
        self.sources: dict[int, dict[int, int]] = {}  # value id -> {source id: bytes}
        self.symbolic = symbol_values(graph, ("element",))  # their numbers need a node
        self.arrays: dict[int, np.ndarray | None] = {}
        self.computed: dict[tuple, list] = {}  # see once()
        self.grown = 0  # bytes that folded values have more than their sources

    def find(self) -> None:
        """Notes every value that is constant."""
        for node in self.graph.nodes:
            if self.foldable(node):
                sources: dict[int, int] = {}
                for v in node.inputs:
                    if v is not None:
                        sources |= {v.id: v.const.nbytes} if v.is_const else self.sources[v.id]
                for v in node.outputs:
                    if v is not None:
                        self.constant.add(v.id)
                        self.sources[v.id] = sources

    def run(self) -> None:
        self.find()
        for node in self.graph.nodes:
            if not self.is_constant(node):
                for v in node.inputs:
                    self.settle(v)
        for v in self.graph.outputs:
            self.settle(v)
        self.graph.nodes = [_decided(n) for n in self.graph.nodes if not self.is_constant(n)]

    def is_constant(self, node: Node) -> bool:
        return all(v is None or v.id in self.constant for v in node.outputs)

    def foldable(self, node: Node) -> bool:
        if isinstance(node.prim, STAGES):
            return False
        if not all(v is None or v.is_const or v.id in self.constant for v in node.inputs):
            return False
        return all(v is None or (isinstance(v.type, TensorType) and v.id not in self.symbolic
                                 and v.type.static_shape() is not None) for v in node.outputs)

    def settle(self, v: Value | None) -> None:
        """Makes v a constant if it is one and small enough; else what it is computed from."""
        if v is None or v.is_const or v.id not in self.constant:
            return
        node = v.producer
        if self.fits(node):
            array = self.array(v)
            if array is not None:
                _become(v, array)
                return
        self.constant -= {o.id for o in node.outputs if o is not None}
        for x in node.inputs:
            self.settle(x)

    def fits(self, node: Node) -> bool:
        outputs = [v for v in node.outputs if v is not None]
        size = sum(map(_bytes, outputs))
        if isinstance(node.prim, Region) and _only_spreads(node, size):
            return False  # whoever reads it can read the source instead
        known = sum(self.sources[outputs[0].id].values())
        if size > max(GROWTH * known, SMALL if known else FROM_NOTHING):
            return False
        growth = max(size - known, 0)
        if self.grown + growth > BUDGET:
            return False
        self.grown += growth
        return True

    def array(self, v: Value) -> np.ndarray | None:
        """The elements of a constant value; None where its primitive has no reference."""
        if v.is_const:
            return v.const
        if v.id not in self.arrays:
            node = v.producer
            for o in node.outputs:
                if o is not None:
                    self.arrays[o.id] = None
            inputs = [None if x is None else self.array(x) for x in node.inputs]
            if all(x is None or a is not None for x, a in zip(node.inputs, inputs)):
                self.compute(node, inputs)
        return self.arrays[v.id]

    def compute(self, node: Node, inputs: list) -> None:
        for o, array in zip(node.outputs, self.once(node, inputs)):
            if o is not None:
                self.arrays[o.id] = array

    def once(self, node: Node, inputs: list) -> list:
        """A node's results: those of an equal one of the same arrays, as each layer has for its
        mask, where there was one. All arrays live as long as this."""
        types = [None if o is None else o.type for o in node.outputs]
        same = [x if x is None else id(x) if x.dtype == object else sameness(x) for x in inputs]
        # Equal numbers may differ as constants (1, True; 0.0, -0.0): the text tells them apart.
        key = (node.prim, repr(node.prim), *same, *types)
        if key not in self.computed:
            if isinstance(node.prim, Alias):
                self.computed[key] = [inputs[0].reshape(types[0].static_shape())]
            else:
                none = [None] * len(types)
                self.computed[key] = reference(node.prim, inputs, types) or none
        return self.computed[key]


def _decided(node: Node) -> Node:
    """A choice by a constant that is the same everywhere passes on what it chooses, as where a mask
    that hides no whole row guards a softmax."""
    if not isinstance(node.prim, Region) or node.prim.ops[-1].op != "select":
        return node
    region = node.prim
    ops = [region.ops[a] for a in region.ops[-1].args]
    if len(region.results) != 1 or any(op.op != "load" for op in ops):
        return node
    condition, *sides = (node.inputs[op.args[0]] for op in ops)
    if not condition.is_const or not condition.const.size:
        return node
    first = bool(condition.const.flat[0])
    chosen, read = sides[not first], region.accesses[ops[1 + (not first)].args[0]]
    same = tuple(chosen.shape) == tuple(region.shape) and is_identity(read)
    if not same or not (condition.const == first).all():
        return node
    return Node(Alias(), [chosen], node.outputs, node.origin)


def _become(v: Value, array: np.ndarray) -> None:
    """v holds the array; bytes of a weight that are only seen under another shape stay its own."""
    node = v.producer
    if isinstance(node.prim, Alias) and node.inputs[0].is_const:
        v.weight = node.inputs[0].weight
    v.const = np.asarray(array, v.dtype.numpy)
    v.producer = None


def _bytes(v: Value) -> int:
    return math.prod(v.type.static_shape()) * v.dtype.itemsize


def _only_spreads(node: Node, size: int) -> bool:
    """Whether a Region only repeats a constant or the elements of its input."""
    if len(node.prim.ops) > 1:
        return False
    op = node.prim.ops[0].op
    return op == "const" or (op == "load" and size > _bytes(node.inputs[0]))
