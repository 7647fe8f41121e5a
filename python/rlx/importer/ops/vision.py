"""Sampling and windows of images beside Conv and Pool: GridSample, regions, Col2Im, DeformConv."""

from __future__ import annotations

from rlx.errors import ModelError, UnsupportedError
from rlx.importer.ops.conv import add_channel_bias, check_kernel
from rlx.importer.registry import op
from rlx.ir.build import DType, Value, apply, product

REALS = (DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.BFLOAT16)


@op("GridSample", since=20)
def grid_sample(b, x, grid, *, mode: str = "linear", padding_mode: str = "zeros",
                align_corners: int = 0):
    if mode not in ("linear", "nearest", "cubic"):
        raise ModelError("unknown mode of GridSample", expected="linear, nearest or cubic",
                         got=mode)
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ModelError("unknown padding_mode of GridSample",
                         expected="zeros, border or reflection", got=padding_mode)
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
def grid_sample_16(b, x, grid, *, mode: str = "bilinear", padding_mode: str = "zeros",
                   align_corners: int = 0):
    names = {"bilinear": "linear", "bicubic": "cubic"}
    return grid_sample(b, x, grid, mode=names.get(mode, mode), padding_mode=padding_mode,
                       align_corners=align_corners)


@op("RoiAlign", since=16)
def roi_align(b, x, rois, batch_indices, *, coordinate_transformation_mode: str = "half_pixel",
              mode: str = "avg", output_height: int = 1, output_width: int = 1,
              sampling_ratio: int = 0, spatial_scale: float = 1.0):
    if mode not in ("avg", "max"):
        raise ModelError("unknown mode of RoiAlign", expected="avg or max", got=mode)
    if coordinate_transformation_mode not in ("half_pixel", "output_half_pixel"):
        raise ModelError("unknown coordinate_transformation_mode of RoiAlign",
                         expected="half_pixel or output_half_pixel",
                         got=coordinate_transformation_mode)
    return b.roi_align(x, rois, b.cast(batch_indices, DType.INT64), (output_height, output_width),
                       samples=sampling_ratio, maximum=mode == "max",
                       half_pixel=coordinate_transformation_mode == "half_pixel",
                       scale=spatial_scale)


@op("RoiAlign", since=10)
def roi_align_10(b, x, rois, batch_indices, *, mode: str = "avg", output_height: int = 1,
                 output_width: int = 1, sampling_ratio: int = 0, spatial_scale: float = 1.0):
    return roi_align(b, x, rois, batch_indices, mode=mode, output_height=output_height,
                     output_width=output_width, sampling_ratio=sampling_ratio,
                     spatial_scale=spatial_scale,
                     coordinate_transformation_mode="output_half_pixel")


@op("MaxRoiPool", since=1)
def max_roi_pool(b, x, rois, *, pooled_shape, spatial_scale: float = 1.0):
    if len(pooled_shape) != 2:
        raise ModelError("pooled_shape has two entries", got=list(pooled_shape))
    return b.max_roi_pool(x, rois, tuple(pooled_shape), spatial_scale)


@op("Col2Im", since=18)
def col2im(b, x, image_shape, block_shape, *, dilations=None, pads=None, strides=None):
    image, block = b.numbers(image_shape), b.numbers(block_shape)
    rank = len(image)
    pads = pads or (0,) * (2 * rank)
    if len(pads) != 2 * rank:
        raise ModelError("pads has two entries for each axis", expected=2 * rank, got=len(pads))
    if not (x.dtype in REALS or x.dtype.is_integer):
        raise UnsupportedError("Col2Im", got=x.dtype.name.lower())
    return b.col2im(x, image, block, strides=strides or (1,) * rank, pads_begin=pads[:rank],
                    dilations=dilations or (1,) * rank, pads_end=pads[rank:])


@op("MaxUnpool", since=9)
def max_unpool(b, x, indices, output_shape=None, *, kernel_shape, pads=None, strides=None):
    """Scatters x into zeros; a larger output_shape adds more zeros at the ends."""
    rank = x.rank - 2
    strides, pads = strides or (1,) * rank, pads or (0,) * (2 * rank)
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
def deform_conv(b, x, w, offset, bias=None, mask=None, *, dilations=None, group: int = 1,
                kernel_shape=None, offset_group: int = 1, pads=None, strides=None):
    """Samples at moved places, then the product with the weights of each group."""
    rank = x.rank - 2
    if w.rank != x.rank:
        raise ModelError("DeformConv takes x and w of one rank", got=f"{x.type} and {w.type}")
    strides, dilations = strides or (1,) * rank, dilations or (1,) * rank
    pads = pads or (0,) * (2 * rank)
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
def crop_and_resize(b, x, rois, batch_indices, crop_size, *, mode: str = "bilinear",
                    extrapolation_value: float = 0.0):
    if mode not in ("bilinear", "nearest"):
        raise ModelError("unknown mode of CropAndResize", expected="bilinear or nearest", got=mode)
    return b.crop_and_resize(x, rois, b.cast(batch_indices, DType.INT32), b.numbers(crop_size),
                             nearest=mode == "nearest", outside=extrapolation_value)
