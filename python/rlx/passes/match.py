"""Looking backwards through a graph: what pattern passes ask about a value."""

from __future__ import annotations

from collections import Counter

import numpy as np

from rlx.ir.expr import as_int, symbols_of
from rlx.ir.graph import Alias, Graph, Node, Value
from rlx.ir.prims import Move, Region
from rlx.ir.types import DType, TensorType

_NEAR = {DType.FLOAT16: 1e-3, DType.BFLOAT16: 8e-3}  # what rounding to the type changes
COMPARED = 1 << 16  # constants up to this many bytes are compared by their bytes


class Uses:
    """How often each value of a graph is read; outputs of the graph count as read."""

    def __init__(self, graph: Graph):
        self.count = Counter(v.id for node in graph.nodes for v in node.inputs if v is not None)
        self.kept = {v.id for v in graph.outputs}
        self.reader: dict[int, Node] = {}
        for node in graph.nodes:
            for v in node.inputs:
                if v is not None:
                    self.reader[v.id] = node

    def once(self, v: Value) -> bool:
        """Whether one node reads v and nobody else."""
        return self.count[v.id] == 1 and v.id not in self.kept

    def only_reader(self, v: Value) -> Node | None:
        return self.reader.get(v.id) if self.once(v) else None


def sameness(array: np.ndarray) -> tuple:
    """Equal for arrays of numbers that hold the same while both live; large ones by their place."""
    if array.nbytes <= COMPARED:
        return array.dtype, array.shape, array.tobytes()
    place = array.__array_interface__["data"][0]
    return array.dtype, array.shape, array.strides, place


def symbol_values(graph: Graph, kinds: tuple[str, ...] = ("dim", "element")) -> set[int]:
    """Ids of the values whose dims or elements are symbols in some number of the graph."""
    numbers = [guard.condition for guard in graph.guards]
    for node in graph.nodes:
        numbers += node.numbers()
        for v in node.outputs:
            if v is not None and isinstance(v.type, TensorType):
                numbers += v.shape
    found = frozenset().union(*{symbols_of(number) for number in numbers})
    return {s.value.id for s in found if s.kind in kinds}


def scalar_op(v: Value | None, wanted: str | None = None) -> tuple[str, list[Value]] | None:
    """(op, operands) when v is one scalar op, the `wanted` one if given, of broadcast operands."""
    node = v.producer if v is not None else None
    if node is None or type(node.prim) is not Region or len(node.prim.results) != 1:
        return None
    ops = node.prim.ops
    op = ops[node.prim.results[0]]
    if wanted is not None and op.op != wanted:
        return None
    if op.op in ("load", "const", "index", "dim") or len(ops) != 1 + len(op.args):
        return None
    loads = [ops[a] for a in op.args]
    if any(load.op != "load" for load in loads) or not _broadcasts(node.prim):
        return None
    return op.op, [node.inputs[load.args[0]] for load in loads]


def _broadcasts(region: Region) -> bool:
    rank = len(region.shape)
    for access in region.accesses:
        for axis, m in enumerate(access, rank - len(access)):
            if m.axis not in (-1, axis) or as_int(m.div) != 1 or as_int(m.mod) != 0:
                return False
    return True


def constant(v: Value | None) -> float | None:
    """The number a one-element constant holds."""
    if v is None or not v.is_const or v.const.size != 1 or v.const.dtype.kind not in "fiu":
        return None
    return float(v.const.reshape(-1)[0])


def is_near(v: Value | None, number: float) -> bool:
    """Whether v is the constant `number`, as exporters round it."""
    found = constant(v)
    return found is not None and abs(found - number) <= _NEAR.get(v.dtype, 1e-4) * abs(number)


def binary(v: Value | None, op: str) -> list[Value] | None:
    """The operands of v when it is `op` of two values."""
    found = scalar_op(v, op)
    return found[1] if found is not None and len(found[1]) == 2 else None


def unary(v: Value | None, op: str) -> Value | None:
    """The operand of v when it is `op` of one value."""
    found = scalar_op(v, op)
    return found[1][0] if found is not None and len(found[1]) == 1 else None


def with_constant(v: Value | None, op: str, number: float) -> Value | None:
    """The other operand when v is a commutative `op` with the constant `number`."""
    for a, b in _both_ways(binary(v, op)):
        if is_near(b, number):
            return a
    return None


def _both_ways(pair):
    return () if pair is None else ((pair[0], pair[1]), (pair[1], pair[0]))


def pairs(v: Value | None, op: str):
    """(a, b) and (b, a) when v is a commutative op of two values."""
    return _both_ways(binary(v, op))


def squared(v: Value | None) -> Value | None:
    """x when v is x * x or x ** 2."""
    pair = binary(v, "mul")
    if pair is not None and pair[0] is pair[1]:
        return pair[0]
    found = scalar_op(v, "mul")
    if found is not None and len(set(map(id, found[1]))) == 1:
        return found[1][0]
    pair = binary(v, "pow")
    return pair[0] if pair is not None and constant(pair[1]) == 2.0 else None


def alias_source(v: Value | None) -> Value | None:
    """What v is a reshaped view of."""
    node = v.producer if v is not None else None
    return node.inputs[0] if node is not None and isinstance(node.prim, Alias) else None


def transposed(v: Value | None) -> tuple[Value, tuple[int, ...]] | None:
    """(x, perm) when v is exactly x transposed."""
    node = v.producer if v is not None else None
    if node is None or not isinstance(node.prim, Move) or len(node.prim.parts) != 1:
        return None
    part = node.prim.parts[0]
    x = node.inputs[part.input]
    whole = tuple(x.shape[p] for p in part.perm)
    if (node.prim.mode != "none" or tuple(part.extents) != whole or tuple(v.shape) != whole
            or any(as_int(s) != 0 for s in part.starts) or any(as_int(s) != 1 for s in part.steps)):
        return None
    return x, part.perm
