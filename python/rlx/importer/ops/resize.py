"""Resize and Upsample: sizes and scales become one scale a resized axis."""

from __future__ import annotations

from rlx.errors import ModelError
from rlx.importer.registry import op
from rlx.ir.build import Resize, Value, apply


@op("Resize", since=11)
def resize(b, x, roi=None, scales=None, sizes=None, *, antialias: int = 0, axes=None,
           coordinate_transformation_mode: str = "half_pixel", cubic_coeff_a: float = -0.75,
           exclude_outside: int = 0, extrapolation_value: float = 0.0,
           keep_aspect_ratio_policy: str = "stretch", mode: str = "nearest",
           nearest_mode: str = "round_prefer_floor"):
    at = tuple(range(x.rank)) if axes is None else tuple(b.axis(a, x.rank) for a in axes)
    if scales is not None and scales.shape == (0,):
        scales = None  # an empty tensor also means "not given"
    if (scales is None) == (sizes is None):
        raise ModelError("Resize takes either scales or sizes")
    if sizes is not None:
        out, factors = _from_sizes(b, x, at, b.numbers(sizes), keep_aspect_ratio_policy)
    else:
        factors = [apply("to_float", s) for s in b.numbers(scales)]
        out = [_scaled(x.shape[k], s) for k, s in zip(at, factors)]
    crop = coordinate_transformation_mode == "tf_crop_and_resize"
    if crop:
        corners = b.numbers(roi)
        n = len(at)
        out = [apply("to_int", apply("floor", apply("mul", s, apply("mul", apply(
            "to_float", x.shape[k]), apply("sub", corners[n + i], corners[i])))))
            if sizes is None else out[i] for i, (k, s) in enumerate(zip(at, factors))]
    prim = Resize(mode, at, tuple(factors), coordinate_transformation_mode, nearest_mode,
                  cubic_coeff_a, bool(exclude_outside), bool(antialias), extrapolation_value,
                  tuple(corners) if crop else ())
    return _finish(b, x, prim, out)


def _scaled(dim, scale):
    return apply("to_int", apply("floor", apply("mul", apply("to_float", dim), scale)))


def _from_sizes(b, x: Value, at, sizes, policy: str):
    if len(sizes) != len(at):
        raise ModelError("sizes has one entry for each axis", expected=len(at), got=len(sizes))
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
def resize_10(b, x, scales, *, mode: str = "nearest"):
    return upsample_9(b, x, scales, mode=mode)


@op("Upsample", since=9)
def upsample_9(b, x, scales, *, mode: str = "nearest"):
    return _upsample(b, x, [apply("to_float", s) for s in b.numbers(scales)], mode)


@op("Upsample", since=7)
def upsample_7(b, x, *, scales, mode: str = "nearest"):
    return _upsample(b, x, list(scales), mode)


@op("Upsample", since=1)
def upsample_1(b, x, *, height_scale: float, width_scale: float, mode: str = "nearest"):
    ones = [1.0] * (x.rank - 2)
    return _upsample(b, x, [*ones, height_scale, width_scale], mode)


def _upsample(b, x: Value, factors, mode: str) -> Value:
    """Before opset 11: asymmetric coordinates, nearest by floor."""
    linear = "linear" if mode in ("linear", "bilinear") else mode
    prim = Resize(linear, tuple(range(x.rank)), tuple(factors), "asymmetric", "floor")
    return _finish(b, x, prim, [_scaled(d, s) for d, s in zip(x.shape, factors)])
