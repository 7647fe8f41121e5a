"""Sampling and windows of images beside Conv and Pool: GridSample, regions, Col2Im, DeformConv."""

from __future__ import annotations

from typing import Literal

from rlx.errors import ModelError, UnsupportedError
from rlx.importer.ops.checks import all_in_range, in_range, rank_is, window
from rlx.importer.ops.conv import add_channel_bias, check_kernel
from rlx.importer.registry import Ints, op
from rlx.ir.build import DType, Value, apply, product

Padding = Literal["zeros", "border", "reflection"]
REALS = (DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.BFLOAT16)


@op("GridSample", since=20)
def grid_sample(b, x, grid, *, mode: Literal["linear", "nearest", "cubic"] = "linear",
                padding_mode: Padding = "zeros", align_corners: int = 0):
    if x.dtype is DType.STRING:
        raise UnsupportedError("GridSample of strings")
    sample = lambda v: b.grid_sample(v, grid, mode, padding_mode, bool(align_corners))  # noqa: E731
    if mode == "nearest" or x.dtype in REALS:
        return sample(x)
    if not (x.dtype.is_integer or x.dtype is DType.BOOL):
        raise UnsupportedError(f"GridSample in mode {mode}", got=x.dtype.name.lower())
    # Integers are computed as floats and cast to integers at the end.
    return b.cast(sample(b.cast(x, DType.FLOAT64)), x.dtype)


@op("GridSample", since=16)
def grid_sample_16(b, x, grid, *, mode: Literal["bilinear", "nearest", "bicubic"] = "bilinear",
                   padding_mode: Padding = "zeros", align_corners: int = 0):
    names = {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}
    return grid_sample(b, x, grid, mode=names[mode], padding_mode=padding_mode,
                       align_corners=align_corners)


@op("RoiAlign", since=16)
def roi_align(b, x, rois, batch_indices, *,
              coordinate_transformation_mode: Literal["half_pixel", "output_half_pixel"] =
              "half_pixel", mode: Literal["avg", "max"] = "avg", output_height: int = 1,
              output_width: int = 1, sampling_ratio: int = 0, spatial_scale: float = 1.0):
    for name, n in (("output_height", output_height), ("output_width", output_width)):
        in_range(name, n, 1)
    in_range("sampling_ratio", sampling_ratio, 0)
    return b.roi_align(x, rois, b.cast(batch_indices, DType.INT64), (output_height, output_width),
                       samples=sampling_ratio, maximum=mode == "max",
                       half_pixel=coordinate_transformation_mode == "half_pixel",
                       scale=spatial_scale)


@op("RoiAlign", since=10)
def roi_align_10(b, x, rois, batch_indices, *, mode: Literal["avg", "max"] = "avg",
                 output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0,
                 spatial_scale: float = 1.0):
    return roi_align(b, x, rois, batch_indices, mode=mode, output_height=output_height,
                     output_width=output_width, sampling_ratio=sampling_ratio,
                     spatial_scale=spatial_scale,
                     coordinate_transformation_mode="output_half_pixel")


@op("MaxRoiPool", since=1)
def max_roi_pool(b, x, rois, *, pooled_shape: Ints, spatial_scale: float = 1.0):
    size = all_in_range("pooled_shape", pooled_shape, 2, 1)
    return b.max_roi_pool(x, rois, size, spatial_scale)


@op("Col2Im", since=18)
def col2im(b, x, image_shape, block_shape, *, dilations: Ints = None,
           pads: Ints = None, strides: Ints = None):
    image, block = b.numbers(image_shape), b.numbers(block_shape)
    rank = len(image)
    ones = (1,) * rank
    pads = all_in_range("pads", pads or (0,) * (2 * rank), 2 * rank, 0)
    if not (x.dtype in REALS or x.dtype.is_integer):
        raise UnsupportedError("Col2Im", got=x.dtype.name.lower())
    return b.col2im(x, image, block, strides=all_in_range("strides", strides or ones, rank, 1),
                    dilations=all_in_range("dilations", dilations or ones, rank, 1),
                    pads_begin=pads[:rank], pads_end=pads[rank:])


@op("MaxUnpool", since=9)
def max_unpool(b, x, indices, output_shape=None, *, kernel_shape: Ints,
               pads: Ints = None, strides: Ints = None):
    """Scatters x into zeros; a larger output_shape adds more zeros at the ends."""
    strides, _ = window(x, strides, None, kernel_shape, most=None)
    rank_is(indices, x.rank, "the indices")
    rank = x.rank - 2
    pads = all_in_range("pads", pads or (0,) * (2 * rank), 2 * rank, 0)
    inferred = list(x.shape[:2])
    for k, d in enumerate(x.shape[2:]):
        reach = apply("mul", apply("sub", d, 1), strides[k])
        inferred.append(apply("add", reach, kernel_shape[k] - pads[k] - pads[rank + k]))
    for d, given in zip(x.shape, indices.shape):
        b.same_dim(d, given, "the dims of MaxUnpool's operands")
    zeros = b.fill((product(inferred),), 0.0, x.dtype)
    count = (product(x.shape),)
    y = b.scatter("elements", zeros, b.reshape(indices, count), b.reshape(x, count))
    y = b.reshape(y, inferred)
    if output_shape is None:
        return y
    wanted = b.numbers(output_shape)
    if len(wanted) != x.rank:
        raise ModelError("output_shape has one entry for each axis", expected=x.rank,
                         got=len(wanted))
    ends = [apply("sub", d, n) for d, n in zip(wanted, inferred)]
    for d, e in zip(wanted, ends):
        b.guard(apply("le", 0, e), f"output_shape is smaller than the unpooled tensor: {d}")
    return b.pad(y, (0,) * x.rank, ends)


@op("DeformConv", since=19)
def deform_conv(b, x, w, offset, bias=None, mask=None, *, dilations: Ints = None,
                group: int = 1, kernel_shape: Ints = None, offset_group: int = 1,
                pads: Ints = None, strides: Ints = None):
    """Samples at moved places, then the product with the weights of each group."""
    strides, dilations = window(x, strides, dilations, most=None)
    rank_is(w, x.rank, "w")
    rank_is(offset, x.rank, "offset")
    rank = x.rank - 2
    in_range("group", group, 1)
    in_range("offset_group", offset_group, 1)
    pads = all_in_range("pads", pads or (0,) * (2 * rank), 2 * rank, 0)
    kernel = tuple(w.shape[2:])
    check_kernel(b, w, kernel_shape)
    for k in range(rank):
        reach = apply("add", apply("mul", apply("sub", kernel[k], 1), dilations[k]), 1)
        room = apply("sub", apply("add", x.shape[2 + k], pads[k] + pads[rank + k]), reach)
        b.same_dim(offset.shape[2 + k], apply("add", apply("floordiv", room, strides[k]), 1),
                   "the places of offset and of the output")
    b.same_dim(x.shape[1], apply("mul", w.shape[1], group), "the channels of x and w")
    b.guard(apply("eq", apply("mod", w.shape[0], group), 0),
            f"{w.shape[0]} features do not split into {group} groups")
    columns = b.deform_columns(x, offset, mask, kernel=kernel, strides=strides,
                               dilations=dilations, pads_begin=pads[:rank], groups=offset_group)
    return add_channel_bias(b, _grouped_product(b, columns, w, group), bias)


def _grouped_product(b, columns: Value, w: Value, group: int) -> Value:
    """columns [N, C, taps, E...] by w [M, C / group, k...] -> [N, M, E...]."""
    n, _, taps, *out = columns.shape
    depth = apply("mul", w.shape[1], taps)
    features = apply("floordiv", w.shape[0], group)
    left = b.reshape(w, (group, features, depth) if group > 1 else (features, depth))
    lead = (n, group) if group > 1 else (n,)
    right = b.reshape(columns, (*lead, depth, product(out)))
    return b.reshape(b.matmul(left, right), (n, w.shape[0], *out))


@op("Det", since=11)
def det(b, x):
    return b.det(x)


@op("BitCast", since=26)
def bit_cast(b, x, *, to: int):
    return b.bit_cast(x, DType(to))


@op("Inverse", since=1, domain="com.microsoft")
def inverse(b, x):
    return b.inverse(x)


@op("CropAndResize", since=1, domain="com.microsoft")
def crop_and_resize(b, x, rois, batch_indices, crop_size, *,
                    mode: Literal["bilinear", "nearest"] = "bilinear",
                    extrapolation_value: float = 0.0):
    return b.crop_and_resize(x, rois, b.cast(batch_indices, DType.INT32), b.numbers(crop_size),
                             nearest=mode == "nearest", outside=extrapolation_value)
