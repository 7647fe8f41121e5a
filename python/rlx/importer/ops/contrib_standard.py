"""Operators of com.microsoft that became, or are small steps from, standard ones."""

from __future__ import annotations

from typing import Literal

from rlx.errors import ModelError
from rlx.importer.ops import index, movement, norm, shape, vision
from rlx.importer.ops.checks import rank_is
from rlx.importer.registry import op
from rlx.ir.build import DType, apply

MS = "com.microsoft"


@op("Trilu", domain=MS)
def trilu(b, x, k=None, *, upper: int = 1):
    return shape.trilu(b, x, k, upper=upper)


@op("ExpandDims", domain=MS)
def expand_dims(b, x, axis):
    return b.unsqueeze(x, b.structural(axis, "the axis that is inserted"))


@op("Range", domain=MS)
def range_(b, start, limit, delta=None):
    return shape.range_(b, start, limit, b.const(1, start.dtype) if delta is None else delta)


@op("Pad", domain=MS)
def pad(b, x, pads, value=None, *, mode: movement.PadMode = "constant"):
    return movement.pad(b, x, pads, value, mode=mode)


@op("GatherND", domain=MS)
def gather_nd(b, data, indices):
    return index.gather_nd(b, data, indices)


@op("Unique", domain=MS)
def unique(b, x):
    """Values in the order of their first place, for each element its value, and counts."""
    y, _, inverse, counts = b.unique(x, None, False)
    return y, inverse, counts


@op("GridSample", domain=MS)
def grid_sample(b, x, grid, *, mode: Literal["bilinear", "nearest", "bicubic"] = "bilinear",
                padding_mode: vision.Padding = "zeros", align_corners: int = 0):
    return vision.grid_sample_16(b, x, grid, mode=mode, padding_mode=padding_mode,
                                 align_corners=align_corners)


@op("CDist", domain=MS)
def cdist(b, x, y, *, metric: Literal["sqeuclidean", "euclidean"] = "sqeuclidean"):
    """Distances of every row of x from every row of y, by differences: exact for near rows."""
    rank_is(x, 2, "A")
    rank_is(y, 2, "B")
    apart = b.scalar("sub", b.unsqueeze(x, (1,)), b.unsqueeze(y, (0,)))
    kind = "l2" if metric == "euclidean" else "sum_square"
    return b.reduce(kind, apart, (2,), keepdims=False)


@op("ComplexMul", domain=MS)
def complex_mul(b, x, y):
    return _complex_product(b, x, y, conjugate=False)


@op("ComplexMulConj", domain=MS)
def complex_mul_conj(b, x, y):
    return _complex_product(b, x, y, conjugate=True)


def _complex_product(b, x, y, conjugate: bool):
    """Products of numbers whose parts lie along the last axis; y may be conjugated."""
    for v in (x, y):
        b.guard(apply("eq", v.shape[-1] if v.rank else 0, 2), "the last axis holds two parts")
    (a, c), (d, e) = (b.split(v, v.rank - 1, (1, 1)) for v in (x, y))
    if conjugate:
        e = b.scalar("neg", e)
    mul = lambda u, v: b.scalar("mul", u, v)  # noqa: E731
    parts = [b.scalar("sub", mul(a, d), mul(c, e)), b.scalar("add", mul(a, e), mul(c, d))]
    return b.concat(parts, parts[0].rank - 1)


@op("IsAllFinite", domain=MS)
def is_all_finite(b, *tensors, isinf_only: int = 0, isnan_only: int = 0):
    if isinf_only and isnan_only:
        raise ModelError("isinf_only and isnan_only exclude each other")
    found = None
    for x in tensors:
        bad = b.const(False, DType.BOOL)
        if not isinf_only:
            bad = b.scalar("or", bad, b.scalar("is_nan", x))
        if not isnan_only:
            bad = b.scalar("or", bad, b.scalar("is_pos_inf", b.scalar("abs", x)))
        worst = b.reduce("max", b.cast(bad, DType.UINT8), tuple(range(x.rank)), keepdims=False)
        found = worst if found is None else b.scalar("max", found, worst)
    return b.scalar("eq", found, b.like(0, found))


@op("GatedRMSNorm", domain=MS)
def gated_rms_norm(b, x, scale, gate, *, activation: Literal["silu", "swish", "sigmoid"] = "silu",
                   epsilon: float = 1e-5):
    """RMS norm of groups of the last axis, times an activation of the gate."""
    size = scale.shape[0]
    groups = apply("floordiv", x.shape[-1], size)
    y = norm.rms_normalization(b, b.reshape(x, (*x.shape[:-1], groups, size)), scale,
                               epsilon=epsilon)
    gate = b.scalar("sigmoid" if activation == "sigmoid" else "silu", gate)
    return b.scalar("mul", b.reshape(y, x.shape), gate)
