"""Products of dequantised operands become exact products of their integers.

DequantizeLinear of both operands of a Conv or MatMul is taken behind it: the integers are
multiplied with their zero points off, and the sums get both scales. What follows (bias,
activation, QuantizeLinear) runs on the sums as before, so requantising ends in the epilogue.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rlx.ir.expr import as_int
from rlx.ir.graph import Graph, Node, Value
from rlx.ir.prims import AxisMap, Conv, MatMul, Region, RegionOp
from rlx.ir.types import DType, TensorType
from rlx.passes.children import for_each_graph
from rlx.passes.match import binary, unary

BYTES = (DType.INT8, DType.UINT8)
# 255 * 255 times this fits into int32, which the sums must not leave.
MOST_TERMS = 32768
# A group of a convolution with fewer output channels keeps few lanes of the integer kernel busy.
LEAST_CHANNELS = 8


def integers(graph: Graph) -> Graph:
    """Every product whose operands are dequantised, children included."""
    for_each_graph(graph, _rewrite)
    return graph


@dataclass(frozen=True, slots=True)
class _Quantised:
    """scale * (x - zero): constants that broadcast to x; no zero point is 0."""

    x: Value
    scale: np.ndarray
    zero: np.ndarray | None

    def each(self, axis: int | None) -> bool:
        """Whether scale and zero point are one, or else one for each slice along axis."""
        arrays = [a for a in (self.scale, self.zero) if a is not None and a.size > 1]
        return all(axis is not None and a.ndim + axis >= 0 and a.shape[axis] == a.size
                   for a in arrays)

    def zero_value(self) -> Value | None:
        if self.zero is None or not self.zero.any():
            return None
        flat = self.zero.reshape(-1) if self.zero.size > 1 else self.zero.reshape(())
        array = np.ascontiguousarray(flat).astype(self.x.dtype.numpy)
        return Value(TensorType(self.x.dtype, array.shape), const=array)


def _dequantised(v: Value) -> _Quantised | None:
    """What v = cast(cast(x) - zero) * scale is made of, zero and scale being constants."""
    pair = binary(v, "mul")
    if pair is None or not pair[1].is_const or v.dtype is not DType.FLOAT32:
        return None
    inner, scale = unary(pair[0], "cast"), pair[1].const
    if inner is None or tuple(inner.shape) != tuple(v.shape):
        return None
    if inner.dtype in BYTES:
        return _Quantised(inner, scale, None)
    less = binary(inner, "sub")
    if less is None or inner.dtype is not DType.INT32 or not less[1].is_const:
        return None
    x = unary(less[0], "cast")
    if x is None or x.dtype not in BYTES or tuple(x.shape) != tuple(v.shape):
        return None
    return _Quantised(x, scale, less[1].const)


def _rewrite(graph: Graph) -> None:
    nodes = []
    for node in graph.nodes:
        made = None
        if isinstance(node.prim, (Conv, MatMul)) and node.outputs[0].dtype is DType.FLOAT32:
            made = _by_integers(node)
        nodes += [node] if made is None else made
    graph.nodes = nodes


def _by_integers(node: Node) -> list[Node] | None:
    """The product of integers and the Region that scales it; None where floats stay."""
    if node.prim.epilogue is not None or any(v is not None for v in node.inputs[2:]):
        return None
    axes = _conv_axes(node) if isinstance(node.prim, Conv) else _matmul_axes(node)
    left, right = (_dequantised(v) for v in node.inputs[:2])
    if axes is None or left is None or right is None or not right.x.is_const:
        return None
    weight_axis, channel = axes
    if not left.each(None) or not right.each(weight_axis):
        return None
    y = node.outputs[0]
    sums = Value(TensorType(DType.INT32, y.shape))
    prim = replace(node.prim, accumulate=DType.INT32)
    alpha = 1.0
    if isinstance(prim, MatMul):
        alpha, prim = prim.alpha, replace(prim, alpha=1.0)
    product = Node(prim, [left.x, right.x, left.zero_value(), right.zero_value()], [sums],
                   node.origin)
    return [product, _scaled(sums, y, alpha, left.scale, right.scale, channel, node.origin)]


def _conv_axes(node: Node) -> tuple[int, int] | None:
    """(axis of the weights' channels from the end, channel axis of y)."""
    prim, w = node.prim, node.inputs[1]
    terms = [as_int(d) for d in w.shape]
    if prim.transposed or None in terms or int(np.prod(terms[1:])) > MOST_TERMS:
        return None
    if prim.groups > 1 and terms[0] // prim.groups < LEAST_CHANNELS:
        return None
    return -w.rank, 1


def _matmul_axes(node: Node) -> tuple[int, int] | None:
    b = node.inputs[1]
    k = as_int(b.shape[-1 if node.prim.trans_b else -2])
    if b.rank != 2 or k is None or k > MOST_TERMS:
        return None
    return (-2 if node.prim.trans_b else -1), node.outputs[0].rank - 1


def _scaled(sums: Value, y: Value, alpha: float, left: np.ndarray, right: np.ndarray,
            channel: int, origin) -> Node:
    """y = sums * alpha * left * right, right being one number or one for each channel."""
    f, rank = DType.FLOAT32, y.rank
    ops = [RegionOp("load", DType.INT32, (0,)), RegionOp("cast", f, (0,), 1)]

    def times(op: RegionOp) -> None:
        ops.append(op)
        ops.append(RegionOp("mul", f, (len(ops) - 2, len(ops) - 1)))

    inputs = [sums]
    accesses = [tuple(AxisMap(k) for k in range(rank))]
    for number in (alpha, float(left.reshape(-1)[0])):
        if number != 1.0:
            times(RegionOp("const", f, (), number))
    if right.size == 1:
        times(RegionOp("const", f, (), float(right.reshape(-1)[0])))
    else:
        array = right.reshape(-1, *(1,) * (rank - 1 - channel))
        inputs.append(Value(TensorType(f, array.shape), const=array))
        accesses.append((AxisMap(channel), *(AxisMap(-1) for _ in array.shape[1:])))
        times(RegionOp("load", f, (1,)))
    prim = Region(tuple(y.shape), tuple(accesses), tuple(ops), (len(ops) - 1,))
    return Node(prim, inputs, [y], origin)
