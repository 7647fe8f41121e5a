"""Builder methods of the computing primitives: reductions, products, windows, norms, recurrence."""

from __future__ import annotations

from rlx.errors import ModelError, UnsupportedError
from rlx.ir.builders.core import CoreBuilder
from rlx.ir.expr import Number, apply, as_int
from rlx.ir.graph import Value
from rlx.ir.prims import (
    Attention, Conv, Cumulate, MatMul, Norm, Pool, Recurrent, Reduce, Region, Softmax,
)
from rlx.ir.types import DType, TensorType


class ComputeBuilder(CoreBuilder):
    """Primitives that compute; each method applies the primitive's type rule."""

    def reduce(self, kind: str, x: Value, axes, keepdims: bool = True, *,
               select_last_index: bool = False) -> Value:
        """Reduce over axes (none given: nothing is reduced, but the kind still maps elements)."""
        axes = self.axes(axes, x.rank)
        kept = tuple(1 if k in axes else d for k, d in enumerate(x.shape))
        shape = kept if keepdims else tuple(d for k, d in enumerate(x.shape) if k not in axes)
        dtype = DType.INT64 if kind in ("argmax", "argmin") else x.dtype
        prim = Reduce(kind, axes, bool(keepdims), bool(select_last_index))
        return self.node(prim, [x], [TensorType(dtype, shape)])[0]

    def cumulate(self, kind: str, x: Value, axis: int, exclusive=False, reverse=False) -> Value:
        """Running sum or product along axis."""
        prim = Cumulate(kind, self.axis(axis, x.rank), bool(exclusive), bool(reverse))
        return self.node(prim, [x], [x.type])[0]

    def matmul(self, a: Value, b: Value, *, trans_a=False, trans_b=False, alpha: float = 1.0,
               a_zero: Value | None = None, b_zero: Value | None = None,
               dtype: DType | None = None) -> Value:
        """Batched product of tensors of rank >= 2; integer inputs give int32 when dtype says so."""
        if a.rank < 2 or b.rank < 2:
            raise ModelError("a matrix product takes matrices", expected="rank 2 or more",
                             got=f"{a.type} and {b.type}")
        (m, ka), (kb, n) = a.shape[-2:], b.shape[-2:]
        if trans_a:
            m, ka = ka, m
        if trans_b:
            kb, n = n, kb
        self.same_dim(ka, kb, "the inner dims of a matrix product")
        self.zero_point(a_zero, m, "the zero point of the left operand and its rows")
        self.zero_point(b_zero, n, "the zero point of the right operand and its columns")
        batch = self.broadcast(a.shape[:-2], b.shape[:-2])
        dtype = dtype if dtype is not None else a.dtype
        prim = MatMul(bool(trans_a), bool(trans_b), float(alpha), accumulate_type(dtype))
        inputs = [a, b, a_zero, b_zero]
        return self.node(prim, inputs, [TensorType(dtype, (*batch, m, n))])[0]

    def dequantised_matmul(self, a: Value, b: Value, scale: Value, zero: Value | None = None, *,
                           b_type: DType, n: Number, block_k: int, block_n: int = 1,
                           groups: Value | None = None) -> Value:
        """a times the transpose of (b - zero) * scale; layouts as MatMul in ir/prims.py says."""
        prim = MatMul(trans_b=True, accumulate=DType.FLOAT32, b_type=b_type, block_k=block_k,
                      block_n=block_n)
        self.same_dim(b.shape[-2], n, "the rows of quantised weights")
        self._scales_of(b, scale, zero)
        batch = () if groups is not None else self.broadcast(a.shape[:-2], b.shape[:-2])
        type = TensorType(a.dtype, (*batch, a.shape[-2], n))
        return self.node(prim, [a, b, None, zero, scale, groups], [type])[0]

    def _scales_of(self, b: Value, scale: Value, zero: Value | None) -> None:
        """Each matrix of b has scales, or all have the same, and each scale a zero point or all
        the same (guarded)."""
        if scale.rank != b.rank:
            raise ModelError("scales have the rank of the weights that they scale",
                             expected=f"rank {b.rank}", got=str(scale.type))
        if any(d != 1 for d in scale.shape[:-2]):
            for given, wanted in zip(scale.shape[:-2], b.shape[:-2]):
                self.same_dim(given, wanted, "the matrices of quantised weights and their scales")
        if zero is not None and zero.type.static_shape() not in ((), (1,)):
            if zero.rank != scale.rank:
                raise ModelError("zero points have the rank of their scales",
                                 expected=f"rank {scale.rank}", got=str(zero.type))
            for given, wanted in zip(zero.shape, scale.shape):
                self.same_dim(given, wanted, "the zero points and scales of quantised weights")

    def grouped_matmul(self, a: Value, b: Value, groups: Value) -> Value:
        """Row i of a [rows, K] times the transpose of b[groups[i]], b being [groups, N, K]."""
        self.same_dim(a.shape[1], b.shape[2], "the inner dims of a grouped product")
        prim = MatMul(trans_b=True, accumulate=accumulate_type(a.dtype))
        type = TensorType(a.dtype, (a.shape[0], b.shape[1]))
        return self.node(prim, [a, b, None, None, None, groups], [type])[0]

    def zero_point(self, zero: Value | None, size: Number, what: str) -> None:
        """A zero point is one value or one for each of `size` slices (guarded)."""
        if zero is None or zero.rank == 0 or zero.type.static_shape() == (1,):
            return
        if zero.rank != 1:
            raise UnsupportedError("zero points are scalars or vectors", got=str(zero.type))
        self.same_dim(zero.shape[0], size, what)

    def conv(self, x: Value, w: Value, *, strides, dilations, pads_begin, pads_end, groups: int = 1,
             transposed: bool = False, spatial_out=None, x_zero: Value | None = None,
             w_zero: Value | None = None, dtype: DType | None = None) -> Value:
        """NCHW convolution; spatial_out overrides the output's spatial dims (for transposed)."""
        rank = x.rank - 2
        if rank < 1 or w.rank != x.rank:
            raise ModelError("convolution takes x and w of one rank, at least 3",
                             got=f"{x.type} and {w.type}")
        channels = apply("mul", w.shape[0 if transposed else 1], 1 if transposed else groups)
        self.same_dim(x.shape[1], channels, "the channels of x and w")
        features = apply("mul", w.shape[1], groups) if transposed else w.shape[0]
        self.zero_point(x_zero, 1, "the zero point of x")
        self.zero_point(w_zero, features, "the zero point of w and its features")
        if spatial_out is None:
            spatial_out = tuple(
                window_out(x.shape[2 + k], w.shape[2 + k], strides[k], dilations[k],
                           pads_begin[k], pads_end[k]) for k in range(rank))
        cut = channels if transposed else features
        self.guard(apply("eq", apply("mod", cut, groups), 0),
                   f"{groups} groups do not divide {cut} channels")
        for d in spatial_out:
            self.guard(apply("le", 0, d), f"the window does not fit {list(x.shape)}")
        dtype = dtype if dtype is not None else x.dtype
        prim = Conv(tuple(strides), tuple(dilations), tuple(pads_begin), tuple(pads_end), groups,
                    transposed, accumulate=accumulate_type(dtype))
        shape = (x.shape[0], features, *spatial_out)
        return self.node(prim, [x, w, x_zero, w_zero], [TensorType(dtype, shape)])[0]

    def pool(self, kind: str, x: Value, *, kernel, strides, dilations, pads_begin, pads_end,
             spatial_out, count_include_pad=False, p: int = 2, storage_order: int = 0,
             indices: bool = False) -> list[Value | None]:
        """Windows over the spatial dims of NCHW x -> [y, indices or None]."""
        shape = (*x.shape[:2], *spatial_out)
        for d in spatial_out:
            self.guard(apply("le", 0, d), f"the window does not fit {list(x.shape)}")
        prim = Pool(kind, tuple(kernel), tuple(strides), tuple(dilations), tuple(pads_begin),
                    tuple(pads_end), bool(count_include_pad), p, storage_order)
        places = TensorType(DType.INT64, shape) if indices else None
        return self.node(prim, [x], [TensorType(x.dtype, shape), places])

    def softmax(self, x: Value, axis: int, *, log: bool = False) -> Value:
        """Softmax or log-softmax along one axis."""
        return self.node(Softmax(self.axis(axis, x.rank), log), [x], [x.type])[0]

    def norm(self, kind: str, x: Value, scale: Value | None, bias: Value | None, epsilon: float, *,
             axis: int = -1, groups: int = 1, stash: DType | None = None) -> list[Value | None]:
        """Normalisation -> [y, mean, inv_std]; mean and inv_std only with a stash type."""
        axis = self.axis(axis, x.rank) if kind != "group" else 1
        stats = None
        if stash is not None:
            stats = TensorType(stash, (*x.shape[:axis], *(1,) * (x.rank - axis)))
        prim = Norm(kind, float(epsilon), axis, groups)
        mean = stats if kind == "layer" else None
        return self.node(prim, [x, scale, bias], [x.type, mean, stats, None])[:3]

    def attention(self, q: Value, k: Value, v: Value, extras=(), *, scale: float,
                  causal: bool = False, causal_offset: Number = 0, layouts=("bhsd",) * 4,
                  score: Region | None = None) -> Value:
        """softmax(score(scale q k^T)) v; shapes and layouts as Attention in ir/prims.py says."""
        heads, length = (1, 2) if layouts[0] == "bhsd" else (2, 1)
        size = v.shape[3]
        batch = q.shape[0]
        by_layout = {"bhsd": (batch, q.shape[heads], q.shape[length], size),
                     "bshd": (batch, q.shape[length], q.shape[heads], size)}
        prim = Attention(float(scale), causal, causal_offset, *layouts, score)
        return self.node(prim, [q, k, v, *extras], [TensorType(q.dtype, by_layout[layouts[3]])])[0]

    def recurrent(self, prim: Recurrent, x: Value, w: Value, r: Value, b=None, sequence_lens=None,
                  initial_h=None, initial_c=None, p=None,
                  scales: tuple[Value, ...] = ()) -> list[Value | None]:
        """ONNX LSTM, GRU or RNN -> [y, y_h, y_c or None]; scales: see ir/prims.py."""
        directions = 2 if prim.direction == "bidirectional" else 1
        steps, batch = (x.shape[1], x.shape[0]) if prim.batchwise else (x.shape[0], x.shape[1])
        h = prim.hidden_size
        y = (batch, steps, directions, h) if prim.batchwise else (steps, directions, batch, h)
        state = (batch, directions, h) if prim.batchwise else (directions, batch, h)
        gates = {"lstm": 4, "gru": 3, "rnn": 1}[prim.kind] * h
        operands = {"W": (w, (directions, gates, x.shape[2])), "R": (r, (directions, gates, h)),
                    "B": (b, (directions, 2 * gates)), "sequence_lens": (sequence_lens, (batch,)),
                    "initial_h": (initial_h, state), "initial_c": (initial_c, state),
                    "P": (p, (directions, 3 * h))}
        for name, (v, shape) in operands.items():
            if v is not None:
                self._has_shape(name, v, shape)
        for v in scales:
            self._has_shape("scales", v, (directions, 1 if as_int(v.shape[-1]) == 1 else gates))
        types = [TensorType(x.dtype, y), TensorType(x.dtype, state), None]
        if prim.kind == "lstm":
            types[2] = TensorType(x.dtype, state)
        return self.node(prim, [x, w, r, b, sequence_lens, initial_h, initial_c, p, *scales], types)

    def _has_shape(self, name: str, v: Value, shape: tuple[Number, ...]) -> None:
        self.has_rank(v, len(shape), name)
        for k, (got, wanted) in enumerate(zip(v.shape, shape)):
            self.same_dim(got, wanted, f"axis {k} of {name}")


def accumulate_type(dtype: DType) -> DType:
    """The type a product accumulates in: float32 for the small floats, else its own."""
    return DType.FLOAT32 if dtype.is_float and dtype is not DType.FLOAT64 else dtype


def window_out(size: Number, kernel: Number, stride: int, dilation: int, begin: Number,
               end: Number, ceil: bool = False) -> Number:
    """Output extent of a sliding window over one axis (ONNX Conv and pooling)."""
    reach = apply("add", apply("mul", apply("sub", kernel, 1), dilation), 1)
    padded = apply("add", apply("add", size, begin), end)
    room = apply("sub", padded, reach)
    if not ceil:
        return apply("add", apply("floordiv", room, stride), 1)
    full = apply("add", apply("floordiv", apply("add", room, stride - 1), stride), 1)
    # A window that would start in the end padding is dropped.
    late = apply("le", apply("add", size, begin), apply("mul", apply("sub", full, 1), stride))
    return apply("sub", full, late)
