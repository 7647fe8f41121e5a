"""Resize and Upsample: sizes and scales become one scale a resized axis."""

from __future__ import annotations

from typing import Literal

from rlx.errors import ModelError
from rlx.importer.ops.checks import rank_at_least, scale
from rlx.importer.registry import Floats, Ints, op
from rlx.ir.build import Resize, Value, apply

Coordinates = Literal["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                      "asymmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn"]
Policy = Literal["stretch", "not_larger", "not_smaller"]
Mode = Literal["nearest", "linear", "cubic"]
OldMode = Literal["nearest", "linear", "bilinear"]
Nearest = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]

@op("Resize", since=11)
def resize(b, x, roi=None, scales=None, sizes=None, *, antialias: int = 0, axes: Ints = None,
           coordinate_transformation_mode: Coordinates = "half_pixel", cubic_coeff_a: float = -0.75,
           exclude_outside: int = 0, extrapolation_value: float = 0.0,
           keep_aspect_ratio_policy: Policy = "stretch", mode: Mode = "nearest",
           nearest_mode: Nearest = "round_prefer_floor"):
    at = tuple(range(x.rank)) if axes is None else tuple(b.axis(a, x.rank) for a in axes)
    if len(set(at)) != len(at):
        raise ModelError("axes repeat", got=list(axes))
    if scales is not None and scales.shape == (0,):
        scales = None  # an empty tensor also means "not given"
    if (scales is None) == (sizes is None):
        raise ModelError("Resize takes either scales or sizes")
    if sizes is not None:
        out, factors = _from_sizes(b, x, at, b.numbers(sizes), keep_aspect_ratio_policy)
    else:
        factors = _factors(b, b.numbers(scales), len(at))
        out = [_scaled(x.shape[k], s) for k, s in zip(at, factors)]
    crop = coordinate_transformation_mode == "tf_crop_and_resize"
    if crop:
        corners = () if roi is None else b.numbers(roi)
        if len(corners) != 2 * len(at):
            raise ModelError("roi has a start and an end for each axis", expected=2 * len(at),
                             got=len(corners))
        n = len(at)
        out = [apply("to_int", apply("floor", apply("mul", s, apply("mul", apply(
            "to_float", x.shape[k]), apply("sub", corners[n + i], corners[i])))))
            if sizes is None else out[i] for i, (k, s) in enumerate(zip(at, factors))]
    prim = Resize(mode, at, tuple(factors), coordinate_transformation_mode, nearest_mode,
                  cubic_coeff_a, bool(exclude_outside), bool(antialias), extrapolation_value,
                  tuple(corners) if crop else ())
    return _finish(b, x, prim, out)


def _factors(b, scales, count: int) -> list:
    if len(scales) != count:
        raise ModelError("scales has one entry for each axis", expected=count, got=len(scales))
    return [apply("to_float", scale(b, s)) for s in scales]


def _scaled(dim, factor):
    return apply("to_int", apply("floor", apply("mul", apply("to_float", dim), factor)))


def _from_sizes(b, x: Value, at, sizes, policy: str):
    if len(sizes) != len(at):
        raise ModelError("sizes has one entry for each axis", expected=len(at), got=len(sizes))
    for s in sizes:
        b.guard(apply("le", 0, s), f"an entry of sizes is negative: {s}")
    ratios = [apply("div", apply("to_float", s), apply("to_float", x.shape[k]))
              for k, s in zip(at, sizes)]
    if policy == "stretch":
        return list(sizes), ratios
    pick = "min" if policy == "not_larger" else "max"
    common = ratios[0]
    for r in ratios[1:]:
        common = apply(pick, common, r)
    half = 0.5
    out = [apply("to_int", apply("floor", apply("add", half, apply(
        "mul", common, apply("to_float", x.shape[k]))))) for k in at]
    return out, [common] * len(at)


def _finish(b, x: Value, prim: Resize, out) -> Value:
    shape = list(x.shape)
    for k, d in zip(prim.axes, out):
        shape[k] = d
    return b.resize(x, prim, shape)


@op("Resize", since=10)
def resize_10(b, x, scales, *, mode: OldMode = "nearest"):
    return upsample_9(b, x, scales, mode=mode)


@op("Upsample", since=9)
def upsample_9(b, x, scales, *, mode: OldMode = "nearest"):
    return _upsample(b, x, b.numbers(scales), mode)


@op("Upsample", since=7)
def upsample_7(b, x, *, scales: Floats, mode: OldMode = "nearest"):
    return _upsample(b, x, scales, mode)


@op("Upsample", since=1)
def upsample_1(b, x, *, height_scale: float, width_scale: float, mode: OldMode = "nearest"):
    rank_at_least(x, 2)
    ones = [1.0] * (x.rank - 2)
    return _upsample(b, x, [*ones, height_scale, width_scale], mode)


def _upsample(b, x: Value, scales, mode: str) -> Value:
    """Before opset 11: asymmetric coordinates, nearest by floor."""
    factors = _factors(b, scales, x.rank)
    linear = "linear" if mode in ("linear", "bilinear") else mode
    prim = Resize(linear, tuple(range(x.rank)), tuple(factors), "asymmetric", "floor")
    return _finish(b, x, prim, [_scaled(d, s) for d, s in zip(x.shape, factors)])
