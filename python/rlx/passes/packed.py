"""Products by dequantised constant weights read the weights as they are stored.

DequantizeLinear of a constant, by one scale, one for each column or one for each block of a column,
is taken into the MatMul behind it. What a device makes of it (floats once, or bytes that every run
reads) is for its select function to say. Small weights are left to the fold pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rlx.ir.expr import as_int
from rlx.ir.graph import Graph, Node, Value
from rlx.ir.packing import is_narrow, pack_rows
from rlx.ir.prims import MatMul, Region
from rlx.ir.types import DType, TensorType
from rlx.passes.children import for_each_graph
from rlx.passes.fold import Folder
from rlx.passes.match import binary, transposed, unary

STORED = frozenset({
    DType.INT8, DType.UINT8, DType.INT4, DType.UINT4, DType.INT2, DType.UINT2, DType.FLOAT4E2M1,
    DType.FLOAT8E4M3FN, DType.FLOAT8E4M3FNUZ, DType.FLOAT8E5M2, DType.FLOAT8E5M2FNUZ})
ACTIVATIONS = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)
LEAST = 1 << 16  # elements: below, floats are as quick to read and have faster kernels


def packed(graph: Graph) -> Graph:
    """Every product by dequantised weights, children included."""
    for_each_graph(graph, lambda g: _Packer(g).run())
    return graph


@dataclass(frozen=True, slots=True)
class _Factors:
    """Scales or zero points of a matrix: each is for a tile of `tile` elements."""

    values: np.ndarray
    tile: tuple[int, int]

    def turned(self) -> _Factors:
        return _Factors(np.swapaxes(self.values, 0, 1), self.tile[::-1])


@dataclass(frozen=True, slots=True)
class _Weights:
    """(x - zero) * scale, [K, N] or turned [N, K]."""

    x: Value
    scale: _Factors
    zero: _Factors | None


class _Packer:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.folder = Folder(graph)

    def run(self) -> None:
        self.folder.find()
        for node in self.graph.nodes:
            if isinstance(node.prim, MatMul) and node.prim.b_type is None:
                self.rewrite(node)

    def rewrite(self, node: Node) -> None:
        prim, (a, b) = node.prim, node.inputs[:2]
        if any(v is not None for v in node.inputs[2:]) or prim.trans_a or a.dtype is not b.dtype:
            return
        if a.dtype not in ACTIVATIONS or b.rank != 2 or b.is_const:
            return
        rows_first = prim.trans_b  # [N, K]
        moved = transposed(b)
        if moved is not None and moved[1] == (1, 0):
            b, rows_first = moved[0], not rows_first
        found = self.weights(b)
        if found is None:
            return
        scale, zero = found.scale, found.zero
        if not rows_first:
            scale, zero = scale.turned(), zero and zero.turned()
        dtype = found.x.dtype
        node.inputs = [a, _stored(found.x, rows_first), None,
                       None if zero is None else _zeros(zero.values, dtype),
                       _constant(scale.values), None]
        node.prim = replace(prim, trans_b=True, b_type=dtype, block_n=scale.tile[0],
                            block_k=scale.tile[1])

    def weights(self, v: Value) -> _Weights | None:
        """What v = [cast](cast(x) [- zero]) * scale is made of."""
        inner = unary(v, "cast")
        pair = binary(inner if inner is not None and inner.dtype is DType.FLOAT32 else v, "mul")
        cast = unary(pair[0], "cast") if pair is not None else None
        if cast is None:
            return None
        zero = None
        less = binary(cast, "sub") if cast.dtype is DType.INT32 else None
        x = cast if less is None else unary(less[0], "cast")
        if x is None or not x.is_const or x.dtype not in STORED or x.shape != v.shape:
            return None
        if x.rank != 2 or x.const.size < LEAST:
            return None
        if pair[1].dtype is not DType.FLOAT32:
            return None  # the model rounds each weight to a smaller type
        scale = self.factors(pair[1], x.const.shape)
        if less is not None:
            zero = self.factors(less[1], x.const.shape)
            if scale is None or zero is None:
                return None
            if zero.values.size > 1 and zero.tile != scale.tile or not _fits(zero.values, x.dtype):
                return None
        return None if scale is None else _Weights(x, scale, zero)

    def factors(self, v: Value, shape: tuple[int, int]) -> _Factors | None:
        """The constant that v spreads over a matrix of `shape`."""
        steps = (1, 1)
        node = v.producer
        if node is not None and isinstance(node.prim, Region) and len(node.prim.ops) == 1:
            access = node.prim.accesses[0] if node.prim.accesses else ()
            if len(access) != 2 or any(m.axis not in (-1, k) or as_int(m.mod) != 0
                                       for k, m in enumerate(access)):
                return None
            v, steps = node.inputs[0], tuple(as_int(m.div) for m in access)
        if not v.is_const and v.id not in self.folder.constant:
            return None
        array = self.folder.array(v)
        if array is None or array.ndim > 2 or None in steps:
            return None
        array = array.reshape((1,) * (2 - array.ndim) + array.shape)
        tile = tuple(max(d, 1) if n == 1 else step
                     for d, n, step in zip(shape, array.shape, steps))
        fits = all(-(-d // t) == n for d, t, n in zip(shape, tile, array.shape))
        return _Factors(array, tile) if fits else None


def _stored(x: Value, rows_first: bool) -> Value:
    """The weights [N, K] as bytes; a value of its own only where they change."""
    if rows_first and not is_narrow(x.dtype):
        return x
    array = x.const if rows_first else np.swapaxes(x.const, 0, 1)
    if is_narrow(x.dtype):
        return _constant(pack_rows(array, x.dtype), DType.UINT8)
    return _constant(array, x.dtype)


def _byte(dtype: DType) -> DType:
    """In which type the zero points of weights are kept."""
    return DType.UINT8 if dtype.name.startswith("U") else DType.INT8


def _fits(zero: np.ndarray, dtype: DType) -> bool:
    limits = np.iinfo(_byte(dtype).numpy)
    return zero.size == 0 or (limits.min <= zero.min() and zero.max() <= limits.max)


def _zeros(zero: np.ndarray, dtype: DType) -> Value | None:
    """Zero points as bytes; none where all are 0."""
    if not zero.any():
        return None
    kept = _byte(dtype)
    array = zero.reshape(()) if zero.size == 1 else zero
    return _constant(array.astype(kept.numpy), kept)


def _constant(array: np.ndarray, dtype: DType = DType.FLOAT32) -> Value:
    array = np.ascontiguousarray(array).reshape(array.shape)
    return Value(TensorType(dtype, array.shape), const=array)
