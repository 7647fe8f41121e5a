"""Moves elementwise Regions into the primitive before (MatMul, Conv, Norm) or behind them (Softmax,
Reduce, Norm), and folds per-channel scales into constant weights (batch norm vanishes)."""

from __future__ import annotations

from dataclasses import replace

from rlx.ir.expr import as_int
from rlx.ir.graph import Graph, Node, Value
from rlx.ir.prims import Conv, MatMul, Norm, Reduce, Region, RegionOp, Softmax
from rlx.ir.slots import slots
from rlx.ir.types import DType
from rlx.passes.affine import fold_scale
from rlx.passes.children import for_each_graph
from rlx.passes.regions import is_identity, live, merged_origin

MAX_OPS = 64
MAX_EXTRAS = 8


def epilogues(graph: Graph) -> Graph:
    """Epilogues first, since they save more traffic, then prologues of what is left."""
    for_each_graph(graph, lambda g: _Absorber(g).run())
    return graph


class _Absorber:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.readers: dict[int, list[Node]] = {}
        for node in graph.nodes:
            for v in node.inputs:
                if v is not None:
                    self.readers.setdefault(v.id, []).append(node)
        self.kept = {v.id for v in graph.outputs}

    def run(self) -> None:
        for node in list(self.graph.nodes):
            if isinstance(node.prim, (MatMul, Conv, Norm)):
                self.epilogue(node)
        gone: set[int] = set()
        for node in self.graph.nodes:
            if isinstance(node.prim, Norm):
                self.uncast(node)
        for node in self.graph.nodes:
            if isinstance(node.prim, (Softmax, Reduce, Norm)) and node.prim.prologue is None:
                self.prologue(node, gone)
        self.graph.nodes = [n for n in self.graph.nodes if id(n) not in gone]

    def only_reader(self, v: Value) -> Node | None:
        readers = self.readers.get(v.id, [])
        return readers[0] if len(readers) == 1 and v.id not in self.kept else None

    def epilogue(self, node: Node) -> None:
        """node + the Region that alone reads it, standing where the Region stood."""
        y = node.outputs[0]
        reader = self.only_reader(y)
        if reader is None or not isinstance(reader.prim, Region) or node.prim.epilogue is not None:
            return
        region = reader.prim
        if region.shape != y.shape or len(region.results) != 1 or len(region.ops) > MAX_OPS:
            return
        places = [k for k, v in enumerate(reader.inputs) if v is y]
        extras = [k for k, v in enumerate(reader.inputs) if v is not y]
        if len(places) != 1 or not is_identity(region.accesses[places[0]]):
            return
        if len(extras) > MAX_EXTRAS or any(op.op == "index" for op in region.ops):
            return
        channel = 1 if isinstance(node.prim, Conv) else y.rank - 1
        norm = isinstance(node.prim, Norm)
        if norm and node.inputs[0] in reader.inputs:
            return  # a prologue keeps what both read
        if not norm and not all(self.simple(reader, k, channel) for k in extras):
            return
        order = [places[0], *extras]
        body = reorder(region, order, y.dtype.compute if norm else node.prim.accumulate)
        fixed = slots(node.prim).fixed
        given = [*node.inputs, *[None] * (fixed - len(node.inputs))]
        node.inputs = [*given, *(reader.inputs[k] for k in extras)]
        node.prim = replace(node.prim, epilogue=body)
        node.outputs = [reader.outputs[0], *node.outputs[1:]]
        node.outputs[0].producer = node
        node.origin = merged_origin(reader.origin, node.origin)
        if not norm:
            fold_scale(node, channel)
        self.take_place(node, reader)

    def simple(self, reader: Node, slot: int, channel: int) -> bool:
        """Whether a kernel can hand the extra to a tile: all of y, one value a channel, or one."""
        v, access = reader.inputs[slot], reader.prim.accesses[slot]
        if tuple(v.shape) == tuple(reader.prim.shape) and is_identity(access):
            return True
        plain = all(as_int(m.div) == 1 and as_int(m.mod) == 0 for m in access)
        wide = [m.axis for m, d in zip(access, v.shape) if m.axis >= 0 and as_int(d) != 1]
        shape = reader.prim.shape
        return plain and (not wide or (wide == [channel] and all(
            d == shape[channel] for m, d in zip(access, v.shape) if m.axis == channel)))

    def take_place(self, node: Node, reader: Node) -> None:
        """Puts node where reader stood."""
        nodes = self.graph.nodes
        nodes.remove(node)
        nodes[nodes.index(reader)] = node
        for v in reader.inputs:
            self.readers[v.id] = [node if n is reader else n for n in self.readers[v.id]]

    def uncast(self, node: Node) -> None:
        """A norm of halves cast to float32 reads the halves: it computes in float32 anyway."""
        x = node.inputs[0]
        maker = x.producer
        if maker is None or not isinstance(maker.prim, Region) or x.dtype is not DType.FLOAT32:
            return
        region = maker.prim
        at = next(k for k, v in enumerate(maker.outputs) if v is x)
        op = region.ops[region.results[at]]
        alone = self.only_reader(x) is node and node.prim.prologue is None and (
            len(node.outputs) < 4 or node.outputs[3] is None)
        if op.op != "cast" or not alone:
            return
        kept = op.args[0] in region.results  # what is cast is there for others too
        if kept:
            half = maker.outputs[region.results.index(op.args[0])]
        elif len(region.ops) == 2 and len(maker.inputs) == 1 and is_identity(region.accesses[0]):
            half = maker.inputs[0]
        else:
            return
        if half.dtype not in (DType.FLOAT16, DType.BFLOAT16) or half.shape != x.shape:
            return
        if kept:
            rest = [k for k in range(len(region.results)) if k != at]
            maker.prim = live(replace(region, results=tuple(region.results[k] for k in rest)))
            maker.outputs = [maker.outputs[k] for k in rest]
        node.inputs[0] = half
        self.readers.setdefault(half.id, []).append(node)

    def prologue(self, node: Node, gone: set[int]) -> None:
        """The Region that makes node's input, run inside node."""
        x = node.inputs[0]
        region_node = x.producer
        if region_node is None or not isinstance(region_node.prim, Region):
            return
        region = region_node.prim
        alone = self.only_reader(x) is node
        if len(region.results) != 1 or region.shape != x.shape or len(region.ops) > MAX_OPS:
            return
        if len(region_node.inputs) > MAX_EXTRAS or not region_node.inputs:
            return
        if isinstance(node.prim, Norm):
            self.norm_prologue(node, region_node, alone, gone)
        elif alone:
            node.inputs = list(region_node.inputs)
            node.prim = replace(node.prim, prologue=region)
            self.absorbed(node, region_node, gone)

    def norm_prologue(self, node: Node, region_node: Node, alone: bool, gone: set[int]) -> None:
        """The normalised input is read first; its value stays an output when others need it."""
        shape, dtype = tuple(region_node.prim.shape), node.inputs[0].dtype
        whole = [k for k, v in enumerate(region_node.inputs)
                 if v.dtype is dtype and tuple(v.shape) == shape
                 and is_identity(region_node.prim.accesses[k])]
        others = [r for r in self.readers.get(node.inputs[0].id, ()) if r is not node]
        nodes = self.graph.nodes
        early = any(nodes.index(r) < nodes.index(node) for r in others)
        if not whole or early or node.prim.kind == "group":
            return
        x = node.inputs[0]
        order = [whole[0], *(k for k in range(len(region_node.inputs)) if k != whole[0])]
        load = region_node.prim.ops[0].dtype
        body = reorder(region_node.prim, order, load)
        scale, bias = (*node.inputs[1:3], None, None)[:2]
        node.inputs = [region_node.inputs[order[0]], scale, bias,
                       *(region_node.inputs[k] for k in order[1:]), *node.inputs[3:]]
        node.prim = replace(node.prim, prologue=body)
        if not alone:
            node.outputs = [*node.outputs[:3], *[None] * (3 - len(node.outputs[:3])), x]
            x.producer = node
        self.absorbed(node, region_node, gone)

    def absorbed(self, node: Node, region_node: Node, gone: set[int]) -> None:
        gone.add(id(region_node))
        node.origin = merged_origin(node.origin, region_node.origin)
        for v in region_node.inputs:
            self.readers[v.id] = [node if n is region_node else n for n in self.readers[v.id]]


def reorder(region: Region, order: list[int], load0) -> Region:
    """The Region with its inputs in the given order; load 0 has the type `load0`."""
    place = {old: new for new, old in enumerate(order)}
    ops = []
    for op in region.ops:
        if op.op == "load":
            new = place[op.args[0]]
            op = RegionOp("load", load0 if new == 0 else op.dtype, (new,))
        ops.append(op)
    accesses = tuple(region.accesses[k] for k in order)
    return Region(region.shape, accesses, tuple(ops), region.results)
