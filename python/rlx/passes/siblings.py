"""Products of one input by constant weights become one product, where taking its result apart
costs nothing: all that reads them is attention, which takes strides (queries, keys and values)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlx.ir.expr import as_int
from rlx.ir.graph import Alias, Graph, Node, Value
from rlx.ir.prims import Attention, MatMul, Move, MovePart
from rlx.ir.slots import slots
from rlx.ir.types import TensorType
from rlx.passes.children import for_each_graph
from rlx.passes.match import symbol_values
from rlx.passes.regions import merged_origin

FIXED = slots(MatMul()).fixed  # operands before those of the epilogue
ALIGNMENT = 16  # bytes; attention reads no part that begins elsewhere (exec/views.cpp)


def siblings(graph: Graph) -> Graph:
    """Every group of such products, children included; runs after the prune pass, since what
    nobody needs may read them too."""
    for_each_graph(graph, lambda g: _Siblings(g).run())
    return graph


class _Siblings:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.kept = {v.id for v in graph.outputs} | symbol_values(graph)
        self.readers: dict[int, list[tuple[Node, int]]] = {}
        for node in graph.nodes:
            for slot, v in enumerate(node.inputs):
                if v is not None:
                    self.readers.setdefault(v.id, []).append((node, slot))

    def run(self) -> None:
        groups: dict[tuple, list[Node]] = {}
        for node in self.graph.nodes:
            if self.fits(node):
                groups.setdefault(_kind(node), []).append(node)
        for group in groups.values():
            if len(group) > 1:
                self.merge(group)

    def fits(self, node: Node) -> bool:
        prim = node.prim
        if not isinstance(prim, MatMul) or prim.trans_a or len(node.outputs) != 1:
            return False
        w, y = node.inputs[1], node.outputs[0]
        columns = as_int(y.shape[-1])
        if any(v is not None for v in node.inputs[2:FIXED]) or not w.is_const or w.rank != 2:
            return False
        if columns is None or columns * y.dtype.numpy.itemsize % ALIGNMENT:
            return False
        return _by_columns(node, columns) and self.attended(y)

    def attended(self, v: Value) -> bool:
        """Whether only attention reads v, under other shapes or in parts."""
        readers = self.readers.get(v.id, ())
        return v.id not in self.kept and bool(readers) and all(
            slot < 3 if isinstance(node.prim, Attention)
            else (isinstance(node.prim, Alias) or isinstance(node.prim, Move)
                  and len(node.prim.parts) == 1 and node.prim.mode == "none")
            and self.attended(node.outputs[0])
            for node, slot in readers)

    def merge(self, group: list[Node]) -> None:
        first = group[0]
        widths = [int(node.outputs[0].shape[-1]) for node in group]
        axis = 0 if first.prim.trans_b else 1
        inputs: list[Value | None] = [first.inputs[0], _joined(
            [node.inputs[1] for node in group], axis), *[None] * (FIXED - 2)]
        for slot in range(FIXED, len(first.inputs)):
            parts = [node.inputs[slot] for node in group]
            inputs.append(parts[0] if parts[0].const.size == 1 else
                          _joined(parts, parts[0].rank - 1))
        old = first.outputs[0]
        shape = (*old.shape[:-1], sum(widths))
        y = Value(TensorType(old.dtype, shape))
        prim = first.prim
        if prim.epilogue is not None:
            prim = replace(prim, epilogue=replace(prim.epilogue, shape=shape))
        origin = first.origin
        for node in group[1:]:
            origin = merged_origin(node.origin, origin)
        made = [Node(prim, inputs, [y], origin)]
        for node, width, start in zip(group, widths, np.cumsum([0, *widths]).tolist()):
            made.append(Node(_part(node.outputs[0], start), [y], node.outputs, node.origin))
        nodes = self.graph.nodes
        at = nodes.index(first)
        nodes[at:at + 1] = made
        self.graph.nodes = [node for node in nodes if node not in group[1:]]


def _kind(node: Node) -> tuple:
    """What products that can be one have in common."""
    prim, w = node.prim, node.inputs[1]
    region, extras = prim.epilogue, node.inputs[FIXED:]
    body = None if region is None else (region.ops, region.accesses, region.results)
    ones = tuple(v.const.tobytes() if v.const.size == 1 else v.dtype for v in extras)
    rows = w.const.shape[1 if prim.trans_b else 0]
    return (node.inputs[0].id, replace(prim, epilogue=None), body, ones, rows, w.dtype,
            node.outputs[0].dtype)


def _by_columns(node: Node, columns: int) -> bool:
    """Whether the epilogue has operands of one value, or one for each column, only."""
    region = node.prim.epilogue
    if region is None:
        return True
    last = len(region.shape) - 1
    return len(region.results) == 1 and all(
        v.is_const and (v.const.size == 1 or (
            v.const.size == columns == v.const.shape[-1] and access[-1].axis == last
            and as_int(access[-1].div) == 1 and as_int(access[-1].mod) == 0))
        for v, access in zip(node.inputs[FIXED:], region.accesses[1:]))


def _joined(parts: list[Value], axis: int) -> Value:
    array = np.concatenate([v.const for v in parts], axis=axis)
    return Value(TensorType(parts[0].dtype, array.shape), const=array)


def _part(y: Value, start: int) -> Move:
    """The columns of a wider tensor from `start` on that y has."""
    rank = y.rank
    return Move((MovePart(0, tuple(range(rank)), (*(0,) * (rank - 1), start), (1,) * rank,
                          tuple(y.shape), (0,) * rank),))
