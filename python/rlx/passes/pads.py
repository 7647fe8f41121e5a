"""Zeros that a Pad puts around the images of a convolution become padding of the convolution."""

from __future__ import annotations

from dataclasses import replace
from operator import add

from rlx.ir.expr import as_int
from rlx.ir.graph import Graph, Node, Value
from rlx.ir.prims import Conv, Move
from rlx.passes.children import for_each_graph
from rlx.passes.prune import prune


def pads(graph: Graph) -> Graph:
    """Every Conv behind such a Pad reads what was padded; children included."""
    absorbed = 0

    def absorb(each: Graph) -> None:
        nonlocal absorbed
        absorbed += _absorb(each)

    for_each_graph(graph, absorb)
    return prune(graph) if absorbed else graph


def _absorb(graph: Graph) -> int:
    """How many Convs of the graph took a Pad's zeros."""
    absorbed = 0
    for node in graph.nodes:
        if not isinstance(node.prim, Conv) or node.prim.transposed or node.inputs[2] is not None:
            continue
        found = _zero_padding(node.inputs[0].producer)
        if found is None:
            continue
        x, begin, end = found
        conv = node.prim
        node.inputs[0] = x
        node.prim = replace(
            conv, pads_begin=tuple(map(add, conv.pads_begin, begin)),
            pads_end=tuple(map(add, conv.pads_end, end)))
        absorbed += 1
    return absorbed


def _zero_padding(node: Node | None) -> tuple[Value, list[int], list[int]] | None:
    """(x, pads before, pads behind) along the spatial axes when the node pads x with zeros there,
    channels first."""
    if node is None or not isinstance(node.prim, Move) or len(node.prim.parts) != 1:
        return None
    move, part = node.prim, node.prim.parts[0]
    x, y = node.inputs[part.input], node.outputs[0]
    rank = len(y.shape)
    plain = (part.perm == tuple(range(rank)) and part.extents == tuple(x.shape)
             and all(as_int(start) == 0 for start in part.starts)
             and all(as_int(step) == 1 for step in part.steps))
    if move.mode != "constant" or not plain or not _is_zero(node, move.fill):
        return None
    begin = [as_int(offset) for offset in part.offsets]
    whole = [as_int(n - m) for n, m in zip(y.shape, x.shape)]
    if None in begin or None in whole:
        return None
    end = [w - b for w, b in zip(whole, begin)]
    if min(begin + end) < 0 or any(begin[:2] + end[:2]):
        return None
    return x, begin[2:], end[2:]


def _is_zero(node: Node, fill: int) -> bool:
    if fill < 0:
        return True
    value = node.inputs[fill]
    return value.is_const and not value.const.any()
