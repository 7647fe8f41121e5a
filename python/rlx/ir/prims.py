"""The closed table of primitives: one dataclass each, named fields, inputs by fixed position.

Twin of cpp/program/prims.h: same names, same fields, same order of inputs (a test compares).
A Dim field is an int or an Expr. An input that is not given is None in Node.inputs.
`extra` inputs belong to the primitive's Region and follow the fixed ones.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

from rlx.ir.types import Dim, DType


@dataclass(frozen=True, slots=True)
class AxisMap:
    """Index of one axis of a Region input: (i[axis] // div) % mod; axis -1 is always index 0.

    mod 0 means no modulus. An input dim of 1 under a longer iteration axis broadcasts, which is
    decided when bound. div serves repeat and blocked scales, mod serves Tile.
    """

    axis: int
    div: Dim = 1
    mod: Dim = 0


Access = tuple[AxisMap, ...]  # one AxisMap for each axis of the input


@dataclass(frozen=True, slots=True)
class RegionOp:
    """One value of a Region in SSA order.

    op "load": args (input index,); "const": imm; "index": args (axis,), the int64 coordinate;
    "dim": imm is a Dim, the int64 or float64 value of an expression; "cast": to dtype by
    ONNX Cast, imm being 1 to saturate, +2 or +4 to round float8e8m0 down or to nearest (else
    up); else a name of kernels/include/scalar_ops.h over args.
    dtype is the value's logical ONNX type; arithmetic runs in dtype.compute and, for a small
    float, is rounded to it only by an explicit cast or a store.
    """

    op: str
    dtype: DType
    args: tuple[int, ...] = ()
    imm: int | float | Dim = 0


@dataclass(frozen=True, slots=True)
class Region:
    """An elementwise program over `shape`; one output for each of `results`, all of that shape."""

    shape: tuple[Dim, ...]
    accesses: tuple[Access, ...]
    ops: tuple[RegionOp, ...]
    results: tuple[int, ...]
    IN_PLACE: ClassVar[bool] = True  # may write over an input read by the plain identity access


@dataclass(frozen=True, slots=True)
class Reduce:
    """x -> y: `kind` over `axes` (sorted, non-negative); argmax/argmin take one axis, give int64.

    kinds: sum mean max min prod l1 l2 sum_square log_sum log_sum_exp argmax argmin.
    With a prologue the inputs are the prologue's and its only result is what is reduced.
    """

    kind: str
    axes: tuple[int, ...]
    keepdims: bool
    select_last_index: bool = False
    prologue: Region | None = None


@dataclass(frozen=True, slots=True)
class Cumulate:
    """x -> y of the same shape: running "sum" or "prod" along axis."""

    kind: str
    axis: int
    exclusive: bool = False
    reverse: bool = False


@dataclass(frozen=True, slots=True)
class MatMul:
    """a, b, a_zero, b_zero, b_scale, groups, *extra -> y: batched product over NumPy-broadcast
    leading dims.

    Both ranks are at least 2. Transposes swap the last two axes. Integer inputs (int8/uint8 with
    int32 result) are exact; a_zero is scalar or per row of a, b_zero scalar or per column of b.
    The epilogue's load 0 is the product (of type `accumulate`), loads 1.. are `extra`.

    With b_type, b [.., N, C] (trans_b) holds that type and stands for (b - b_zero) * b_scale.
    Types of less than a byte lie in uint8, the first value of a row in the lowest bits; C values
    may be more than K. b_scale is [.., ceil(N / block_n), at least ceil(K / block_k)], b_zero one
    value or of that shape. With groups, one number g for each row of a [rows, K], row i of y is
    a[i] times b[g], b having rank 3.
    """

    trans_a: bool = False
    trans_b: bool = False
    alpha: float = 1.0
    accumulate: DType = DType.FLOAT32
    epilogue: Region | None = None
    b_type: DType | None = None
    block_k: int = 1
    block_n: int = 1


@dataclass(frozen=True, slots=True)
class Conv:
    """x, w, x_zero, w_zero, *extra -> y: convolution of 1 to 3 spatial dims, or its transpose.

    w is [M, C/groups, k...] (transposed: [C, M/groups, k...]) whatever the layout. channels_last
    means that x, y and extras of the output's shape are [N, spatial..., C]. The output's spatial
    dims are those of the output type (they carry ceil, output_padding and output_shape).
    """

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads_begin: tuple[Dim, ...]
    pads_end: tuple[Dim, ...]
    groups: int = 1
    transposed: bool = False
    channels_last: bool = False
    accumulate: DType = DType.FLOAT32
    epilogue: Region | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """x -> y, [indices]: "max", "average" or "lp" windows of 1 to 3 spatial dims.

    Output dims are those of the output type (they carry ceil_mode). indices are ONNX's flat
    int64 ones, row-major or column-major by storage_order.
    """

    kind: str
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads_begin: tuple[Dim, ...]
    pads_end: tuple[Dim, ...]
    count_include_pad: bool = False
    p: int = 2
    storage_order: int = 0
    channels_last: bool = False


@dataclass(frozen=True, slots=True)
class Softmax:
    """x, *extra -> y along axis; log gives log-softmax. The prologue's result is normalised."""

    axis: int
    log: bool = False
    prologue: Region | None = None


@dataclass(frozen=True, slots=True)
class Norm:
    """x, scale, bias, *extra -> y, [mean], [inv_std], [x_in]: mean/variance or RMS normalisation.

    kinds: "layer" and "rms" over axes >= axis; "group" over each of `groups` channel groups with
    per-channel scale and bias (instance norm: groups == C). With a prologue, inputs are x, scale,
    bias, *extra, load 0 is x, and x_in is its (single) result: a residual add whose sum is kept.
    The epilogue's load 0 is the normalised value; extras of prologue come before the epilogue's.
    """

    kind: str
    epsilon: float
    axis: int = -1
    groups: int = 1
    channels_last: bool = False
    prologue: Region | None = None
    epilogue: Region | None = None


@dataclass(frozen=True, slots=True)
class Attention:
    """q, k, v, *extra -> y: softmax(score(scale * q k^T)) v without the S x T matrix.

    Each layout is "bhsd" (batch, heads, length, head dim) or "bshd". Fewer k/v heads than q heads
    is grouped-query attention. causal masks j > i + causal_offset. score is a Region over
    [batch, heads, S, T]: load 0 the scaled score, loads 1.. extras (masks, biases).
    """

    scale: float
    causal: bool = False
    causal_offset: Dim = 0
    q_layout: str = "bhsd"
    k_layout: str = "bhsd"
    v_layout: str = "bhsd"
    y_layout: str = "bhsd"
    score: Region | None = None


@dataclass(frozen=True, slots=True)
class Gather:
    """data, indices -> y: "axis" (Gather), "elements" (GatherElements), "nd" (GatherND)."""

    kind: str
    axis: int = 0
    batch_dims: int = 0


@dataclass(frozen=True, slots=True)
class Scatter:
    """data, indices, updates -> y: "elements" or "nd"; reduction none add mul max min."""

    kind: str
    axis: int = 0
    reduction: str = "none"
    IN_PLACE: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class MovePart:
    """A strided block: y[offsets + i] = transpose(x, perm)[starts + steps * i], i < extents."""

    input: int
    perm: tuple[int, ...]
    starts: tuple[Dim, ...]
    steps: tuple[Dim, ...]
    extents: tuple[Dim, ...]
    offsets: tuple[Dim, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """*inputs -> y: transpose, slice, concat and pad as strided blocks of one output.

    mode fills what no part writes (one part only, except "none" and "constant"): "none" (parts
    cover y), "constant" (input `fill`, a scalar of y's type, or zero when -1), "edge",
    "reflect", "wrap".
    """

    parts: tuple[MovePart, ...]
    mode: str = "none"
    fill: int = -1


@dataclass(frozen=True, slots=True)
class Resize:
    """x -> y over `axes`, by ONNX Resize's rules; scales are float Dims, roi per axis or empty."""

    mode: str
    axes: tuple[int, ...]
    scales: tuple[Dim, ...]
    coordinate_transformation_mode: str = "half_pixel"
    nearest_mode: str = "round_prefer_floor"
    cubic_coeff_a: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    extrapolation_value: float = 0.0
    roi: tuple[Dim, ...] = ()


@dataclass(frozen=True, slots=True)
class Sort:
    """Order and compaction; outputs by kind.

    "topk": x -> values, indices of the k first along axis (ties: lower index; NaN is largest).
    "nonzero": x -> indices [rank, n], count[1]. "compress": x, condition -> y, count[1]; axis -1
    flattens. "unique": x -> y, first_indices, inverse, counts, count[1]; axis -1 flattens.
    A data-dependent n is the element symbol of the int64 output `count`, with an upper bound.
    """

    kind: str
    axis: int = -1
    k: Dim = 0
    largest: bool = True
    sorted: bool = True


@dataclass(frozen=True, slots=True)
class NonMaxSuppression:
    """boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold
    -> selected[n, 3], count[1]."""

    center_point_box: bool = False


@dataclass(frozen=True, slots=True)
class Random:
    """[x] -> y: Philox counter stream; kinds uniform(low, high), normal(mean, scale), bernoulli(x),
    multinomial(log-probabilities x). Without a seed the Session draws one."""

    kind: str
    a: float = 0.0
    b: float = 1.0
    seed: float | None = None


@dataclass(frozen=True, slots=True)
class Recurrent:
    """x, w, r, b, sequence_lens, initial_h, initial_c, p -> y, y_h, y_c: lstm, gru, rnn as ONNX.

    direction: forward, reverse, bidirectional. Integer w and r of an lstm come with w_scale,
    w_zero, r_scale, r_zero behind p, [directions, 1 or gates]. x, and the state before each step,
    are then rounded to uint8 by their ranges, as DynamicQuantizeLinear does.
    """

    kind: str
    hidden_size: int
    direction: str = "forward"
    activations: tuple[str, ...] = ()
    activation_alpha: tuple[float, ...] = ()
    activation_beta: tuple[float, ...] = ()
    clip: float = 0.0
    input_forget: bool = False
    linear_before_reset: bool = False
    batchwise: bool = False  # ONNX layout=1


@dataclass(frozen=True, slots=True)
class Fft:
    """x -> y: discrete Fourier transform of `length` points along axis, which is not the last.

    The last axis holds a real part (1) or both parts (2). x is cut or padded with zeros to
    length; inverse divides by it. onesided keeps length // 2 + 1 points of the spectrum: of the
    result, or, inverse, of x, whose y is real.
    """

    axis: int
    length: Dim
    inverse: bool = False
    onesided: bool = False


@dataclass(frozen=True, slots=True)
class Map:
    """*inputs -> *outputs: runs the body kernels/map/<body>.h over `items` items.

    ir/bodies.py lists the bodies with their operands and what ints and floats mean.
    """

    body: str
    items: Dim
    ints: tuple[Dim, ...] = ()
    floats: tuple[Dim, ...] = ()


PRIMS: tuple[type, ...] = (
    Region, Reduce, Cumulate, MatMul, Conv, Pool, Softmax, Norm, Attention, Gather, Scatter, Move,
    Resize, Sort, NonMaxSuppression, Random, Recurrent, Fft, Map,
)


def regions_of(prim) -> list[tuple[str, Region]]:
    """The Regions inside a primitive, by field name; a Region itself gives none."""
    found = [(f.name, getattr(prim, f.name)) for f in fields(prim)]
    return [(name, r) for name, r in found if isinstance(r, Region)]
