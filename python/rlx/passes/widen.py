"""Half images between convolutions are held as float32, where the device computes in that anyway.

Each step would narrow its results only for the next one to widen them; without that, a run is
faster and nearer to the exact result. Inputs, outputs and what other primitives read stay half.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlx.ir.graph import Alias, Graph, Node, Value
from rlx.ir.prims import (
    AxisMap, Conv, MatMul, Move, Norm, Pool, Reduce, Region, RegionOp, Resize, Softmax,
)
from rlx.ir.types import HALVES, DType, TensorType
from rlx.passes.children import for_each_graph
from rlx.passes.match import symbol_values

# What has the same meaning in a wider type.
FLOATING = (Alias, Conv, MatMul, Move, Norm, Pool, Reduce, Region, Resize, Softmax)


def widen(graph: Graph) -> Graph:
    """Every chain of steps with a convolution of halves in it, children included."""
    for_each_graph(graph, lambda g: _Widen(g).run())
    return graph


def _is_floating(node: Node) -> bool:
    """Whether a step means the same in a wider type. One that casts does not: the model asks for
    the rounding."""
    if isinstance(node.prim, Region):
        return all(op.op != "cast" for op in node.prim.ops)
    return isinstance(node.prim, FLOATING)


class _Widen:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.kept = symbol_values(graph, ("element",))
        self.root: dict[int, int] = {}       # the union of values that steps connect
        self.chosen: dict[int, DType] = {}   # values that become float32 -> their half type
        self.wide: dict[int, Value] = {}     # halves from elsewhere -> their float32 form
        self.narrow: dict[int, Value] = {}   # chosen values -> their half form for other readers
        self.nodes: list[Node] = []

    def run(self) -> None:
        free: dict[int, DType] = {}
        for node in self.graph.nodes:
            if _is_floating(node):
                connected = [v for v in (*node.inputs, *node.outputs) if self.is_free(v)]
                for v in connected:
                    self.root[self.find(v.id)] = self.find(connected[0].id)
                    free[v.id] = v.dtype
        seeds = {self.find(node.outputs[0].id) for node in self.graph.nodes
                 if isinstance(node.prim, Conv) and node.outputs[0].id in free}
        self.chosen = {v: dtype for v, dtype in free.items() if self.find(v) in seeds}
        if self.chosen:
            for node in self.graph.nodes:
                self.rewrite(node)
            self.graph.outputs = [self.as_stated(v) for v in self.graph.outputs]
            self.graph.nodes = self.nodes

    def is_free(self, v: Value | None) -> bool:
        """Whether v is a half tensor that a floating step computes."""
        return (v is not None and v.producer is not None and v.id not in self.kept
                and _is_floating(v.producer) and v.dtype in HALVES)

    def find(self, v: int) -> int:
        self.root.setdefault(v, v)
        while self.root[v] != v:
            self.root[v] = v = self.root[self.root[v]]
        return v

    def rewrite(self, node: Node) -> None:
        if not _is_floating(node) or not any(
                v is not None and v.id in self.chosen for v in (*node.inputs, *node.outputs)):
            node.inputs = [self.as_stated(v) for v in node.inputs]
            self.nodes.append(node)
            return
        # Constant weights are widened when they are packed.
        weights = node.inputs[1] if isinstance(node.prim, (Conv, MatMul)) else None
        node.inputs = [v if v is not None and v is weights and v.is_const
                       else self.as_float(v, node)
                       for v in node.inputs]
        for v in node.outputs:
            if v is not None and v.id in self.chosen:
                v.type = TensorType(DType.FLOAT32, v.shape)
        if isinstance(node.prim, Region):
            node.prim = replace(node.prim, ops=tuple(
                replace(op, dtype=DType.FLOAT32) if op.dtype in HALVES else op
                for op in node.prim.ops))
        self.nodes.append(node)

    def as_float(self, v: Value | None, reader: Node) -> Value | None:
        """What a widened step reads for v."""
        if v is None or not isinstance(v.type, TensorType) or v.dtype not in HALVES:
            return v
        if v.id not in self.wide:
            if v.is_const:
                array = np.asarray(v.const).astype(np.float32)
                self.wide[v.id] = Value(TensorType(DType.FLOAT32, v.shape), v.name, const=array)
            else:
                self.wide[v.id] = self.cast(v, DType.FLOAT32, reader)
        return self.wide[v.id]

    def as_stated(self, v: Value | None) -> Value | None:
        """What any other step, or the caller, reads for v: the type that the model gives it."""
        if v is None or v.id not in self.chosen:
            return v
        if v.id not in self.narrow:
            self.narrow[v.id] = self.cast(v, self.chosen[v.id], v.producer)
        return self.narrow[v.id]

    def cast(self, v: Value, dtype: DType, beside: Node) -> Value:
        access = tuple(AxisMap(k) for k in range(v.rank))
        ops = (RegionOp("load", v.dtype, (0,)), RegionOp("cast", dtype, (0,), 1))
        result = Value(TensorType(dtype, v.shape), v.name)
        self.nodes.append(Node(Region(v.shape, (access,), ops, (1,)), [v], [result],
                               beside.origin))
        return result
