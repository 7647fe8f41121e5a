"""Runs images channels last from one convolution to the next, with as few transposes as possible.

Which nodes do is a minimum cut: a transpose costs the size of what it moves, a convolution that
stays channels first the two transposes that it makes itself. Inputs and outputs of a graph, and
nodes without a channels-last form, stay as they are; a Transpose that leads to or from channels
last becomes another name of the image.
"""

from __future__ import annotations

import math

from rlx.ir.expr import as_int, evaluate
from rlx.ir.graph import Alias, Graph, Node, Origin, Value
from rlx.ir.prims import Conv, Move, MovePart, Pool, Resize
from rlx.ir.types import TensorType
from rlx.passes.channels_last import (
    can_move, first_perm, image_inputs, is_image, keeps_layout, last_form, last_perm, last_type,
)
from rlx.passes.children import for_each_graph
from rlx.passes.cut import NO, YES, Cut
from rlx.passes.match import symbol_values, transposed

_GUESS = 256  # stands for a spatial dim that is known only at run time


def layout(graph: Graph) -> Graph:
    """Every graph that has a convolution, child graphs by themselves."""
    for_each_graph(graph, lambda g: _Layout(g).run())
    return graph


class _Layout:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.named = symbol_values(graph)       # dims of these are numbers of the program
        self.cut = Cut()
        self.reads: dict[int, int] = {}         # id(node) -> the choice "reads channels last"
        self.gives: dict[int, int] = {}         # value id -> the choice "is channels last"
        self.near_conv: set[int] = set()        # values that a convolution leads to
        self.firsts: dict[int, Value] = {}      # value id -> the form that exists
        self.lasts: dict[int, Value] = {}
        self.nodes: list[Node] = []

    def run(self) -> None:
        if not any(isinstance(n.prim, Conv) for n in self.graph.nodes):
            return
        for node in self.graph.nodes:
            self.choose(node)
        self.lay_costs()
        self.chosen = self.cut.solve()
        self.firsts |= {v.id: v for v in self.graph.inputs}
        if not self.graph.output_names:
            self.graph.output_names = [v.name for v in self.graph.outputs]
        for node in self.graph.nodes:
            self.emit(node)
        self.graph.outputs = [self.first(v, None) for v in self.graph.outputs]
        self.graph.nodes = self.nodes

    # -- choices ---------------------------------------------------------------------------------

    def choose(self, node: Node) -> None:
        """Makes the choices of a node and of its outputs."""
        if any(v is not None and v.id in self.named for v in node.outputs):
            return
        turn = self.turn(node)
        if turn is not None:
            choice = self.cut.choice()
            self.cut.costs(YES, choice, _size(node.outputs[0]))
            if turn == "to last":
                self.reads[id(node)] = choice
            else:
                self.gives[node.outputs[0].id] = choice
        elif can_move(node):
            choice = self.reads[id(node)] = self.cut.choice()
            if isinstance(node.prim, Conv):
                amount = _size(node.inputs[0]) + _size(node.outputs[0])
                self.cut.costs(YES, choice, amount)
            if keeps_layout(node):
                self.gives |= {v.id: choice for v in node.outputs if v is not None}
                if isinstance(node.prim, (Conv, Pool, Resize)) or any(
                        node.inputs[k].id in self.near_conv for k in image_inputs(node)):
                    self.near_conv |= {v.id for v in node.outputs if v is not None}

    def turn(self, node: Node) -> str | None:
        """Whether the node is a Transpose to or from channels last."""
        y = node.outputs[0]
        if not isinstance(node.prim, Move) or not is_image(y):
            return None
        found = transposed(y)
        if found is None:
            return None
        x, perm = found
        to_last, from_last = perm == last_perm(y.rank), perm == first_perm(y.rank)
        if to_last and from_last:  # [N, C, L] or [N, L, C]: what comes before tells
            return "to last" if x.id in self.near_conv else "from last"
        return "to last" if to_last else "from last" if from_last else None

    def lay_costs(self) -> None:
        """A value that exists in one layout and is read in the other costs a transpose."""
        readers: dict[int, list[int]] = {}
        values: dict[int, Value] = {}
        for node in self.graph.nodes:
            choice = self.reads.get(id(node), NO)
            images = image_inputs(node) if choice != NO and can_move(node) else [0]
            for k, v in enumerate(node.inputs):
                if is_image(v) and not v.is_const:
                    values[v.id] = v
                    readers.setdefault(v.id, []).append(choice if k in images else NO)
        for v in self.graph.outputs:
            if is_image(v) and not v.is_const:
                values[v.id] = v
                readers.setdefault(v.id, []).append(NO)
        for i, v in values.items():
            if not _same_bytes(v, last_perm(v.rank)):
                self.cut.differs(self.gives.get(i, NO), readers[i], _size(v))

    # -- the new nodes ---------------------------------------------------------------------------

    def emit(self, node: Node) -> None:
        turn, y = self.turn(node), node.outputs[0]
        reads_last = self.reads.get(id(node), NO) in self.chosen
        if turn == "to last" and reads_last:
            self.firsts[y.id] = self.last(node.inputs[0], node.origin)
        elif turn == "from last" and self.gives.get(y.id, NO) in self.chosen:
            self.lasts[y.id] = self.first(node.inputs[0], node.origin)
        elif turn is None and reads_last:
            self.emit_last(node)
        else:
            node.inputs = [self.first(v, node.origin) for v in node.inputs]
            self.nodes.append(node)
            self.firsts |= {v.id: v for v in node.outputs if v is not None}

    def emit_last(self, node: Node) -> None:
        prim, images = last_form(node), image_inputs(node)
        inputs = [self.last(v, node.origin) if k in images else self.first(v, node.origin)
                  for k, v in enumerate(node.inputs)]
        outputs = list(node.outputs)
        if keeps_layout(node):
            outputs = [v and Value(last_type(v.type), v.name) for v in outputs]
            self.lasts |= {v.id: w for v, w in zip(node.outputs, outputs) if v is not None}
        else:
            self.firsts |= {v.id: v for v in outputs if v is not None}
        self.nodes.append(Node(prim, inputs, outputs, node.origin))

    def first(self, v: Value | None, origin: Origin | None) -> Value | None:
        """v as the model has it, transposed back when it exists channels last only."""
        if v is None or v.is_const:
            return v
        source = self.lasts.get(v.id)
        if v.id in self.firsts or source is None:
            return self.firsts.get(v.id, v)
        self.transpose(source, v, first_perm(v.rank), origin or source.producer.origin)
        self.firsts[v.id] = v
        return v

    def last(self, v: Value, origin: Origin) -> Value:
        """v channels last, transposed when it exists channels first only."""
        if v.id not in self.lasts:
            y = Value(last_type(v.type), v.name)
            if v.is_const:
                y.const = v.const.transpose(last_perm(v.rank))
            else:
                self.transpose(self.firsts[v.id], y, last_perm(v.rank), origin)
            self.lasts[v.id] = y
        return self.lasts[v.id]

    def transpose(self, x: Value, y: Value, perm: tuple[int, ...], origin: Origin) -> None:
        if _same_bytes(x, perm):
            self.nodes.append(Node(Alias(), [x], [y], origin))
            return
        zeros, ones = (0,) * x.rank, (1,) * x.rank
        part = MovePart(0, perm, zeros, ones, tuple(y.shape), zeros)
        self.nodes.append(Node(Move((part,)), [x], [y], origin))


def _same_bytes(x: Value, perm: tuple[int, ...]) -> bool:
    """Whether a transpose of x only gives dims of 1 other places."""
    moved = [p for p in perm if as_int(x.shape[p]) != 1]
    return moved == sorted(moved)


def _size(v: Value) -> int:
    """Elements of v, with a guess for what is not known."""
    if not isinstance(v.type, TensorType):
        return 1
    guess = [max(int(evaluate(d, lambda s: 1 if s.index == 0 else _GUESS)), 1) for d in v.shape]
    return math.prod(guess)
