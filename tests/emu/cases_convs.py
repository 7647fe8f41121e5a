"""Cases of convolutions on tensor cores: ranks, layouts, odd sizes, parts of k, epilogues."""

from rlx.ir.prims import AxisMap, Conv, RegionOp
from tests.emu.case import BF16, F16, F32, Case, identity, region, typed, values

RUNG = "tensor core convolution"


def _spatial(size, kernel, n, o):
    reach = [d * (k - 1) + 1 for d, k in zip(o["dilations"], kernel)]
    total = [a + b for a, b in zip(o["pads_begin"], o["pads_end"])]
    if o.get("transposed"):
        return [(i - 1) * s + r - p for i, s, r, p in zip(size, o["strides"], reach, total)]
    return [(i + p - r) // s + 1 for i, s, r, p in zip(size, o["strides"], reach, total)]


def convolution(name, x, w, dtype=F16, *, what="sum", last=False, constant=True, weights=None,
                epilogue=None, extra=(), out=None, **options):
    """x and w are shapes as ONNX has them; weights are constants unless told."""
    n = len(x) - 2
    options = {"strides": (1,) * n, "dilations": (1,) * n, "pads_begin": (0,) * n,
               "pads_end": (0,) * n} | options
    groups = options.get("groups", 1)
    filters = w[1] * groups if options.get("transposed") else w[0]
    size = _spatial(x[2:], w[2:], n, options)
    given = (x[0], *x[2:], x[1]) if last else x
    y = (x[0], *size, filters) if last else (x[0], filters, *size)
    depth = values(w).size / filters
    prim = Conv(**options, channels_last=last, epilogue=epilogue and epilogue(y, dtype))
    forms = ["last"] * last + ["variable weights"] * (not constant)
    return Case(" ".join([name, dtype.name.lower(), *forms]), ("conv_mma",), prim,
                [values(given, dtype, 0), values(w, weights or dtype, 1, depth ** -0.5), None, None,
                 *(e(y, dtype) for e in extra)], [typed(out or dtype, *y)], what, rung=RUNG,
                constants=(1,) if constant else ())


def bias(y, dtype):
    return values((y[-1],), F32, 2)


def image(y, dtype):
    return values(y, dtype, 3)


def residual(y, dtype):
    """A bias along the last axis, SiLU, then a residual of the result's shape."""
    ops = [RegionOp("load", F32, (0,)), RegionOp("load", F32, (1,)), RegionOp("add", F32, (0, 1)),
           RegionOp("silu", F32, (2,)), RegionOp("load", dtype, (2,))]
    if dtype is not F32:
        ops.append(RegionOp("cast", F32, (4,)))
    ops.append(RegionOp("add", F32, (3, len(ops) - 1)))
    if dtype is not F32:
        ops.append(RegionOp("cast", dtype, (6,)))
    axes = identity(len(y))
    return region(y, [axes, (AxisMap(len(y) - 1),), axes], ops)


SAME = {"pads_begin": (1, 1), "pads_end": (1, 1)}
UNEVEN = {"strides": (2, 1), "dilations": (1, 2), "pads_begin": (2, 0), "pads_end": (1, 3)}


def _layouts(**every):
    yield convolution("3x3", (2, 16, 9, 7), (40, 16, 3, 3), **every, **SAME)
    # Nothing is a multiple of a tile, of what is copied as one, or of a slice.
    yield convolution("odd", (3, 7, 11, 6), (75, 7, 3, 2), constant=False, **every, **UNEVEN)
    yield convolution("groups", (1, 48, 8, 9), (72, 16, 3, 3), groups=3, **every, **SAME)
    yield convolution("parts of k", (1, 200, 5, 4), (72, 200, 3, 3), **every, **SAME)
    for name, size in (("residual", (2, 16, 6, 8)), ("parts, residual", (1, 200, 4, 8))):
        yield convolution(name, size, (24, size[1], 3, 3), extra=(bias, image),
                          epilogue=residual, **every, **SAME)


def cases():
    for last in (False, True):
        yield from _layouts(dtype=F16, last=last)
        yield convolution("odd", (3, 7, 11, 6), (75, 7, 3, 2), last=last, **UNEVEN)
        yield convolution("1d", (2, 16, 50), (8, 16, 5), dilations=(3,), pads_begin=(4,),
                          pads_end=(2,), last=last)
        yield convolution("3d", (1, 8, 4, 5, 6), (16, 8, 2, 3, 2), strides=(1, 2, 1),
                          pads_begin=(0, 1, 1), pads_end=(1, 1, 0), last=last)
        yield convolution("pointwise", (2, 40, 6, 7), (72, 40, 1, 1), strides=(2, 2), last=last)
        yield convolution("transposed", (2, 16, 5, 6), (16, 8, 4, 3), transposed=True, groups=2,
                          strides=(2, 1), pads_begin=(1, 1), pads_end=(0, 1), last=last)
        # Coordinates of 64 bits, as for an image of 2^30 rows.
        yield convolution("wide", (1, 16, 5, 9), (16, 16, 3, 3), strides=(1 << 30, 1), last=last)
    yield convolution("few filters", (1, 32, 12, 12), (3, 32, 3, 3), last=True, **SAME)
    yield convolution("pairs", (1, 6, 9, 9), (10, 6, 3, 3), BF16, last=True, **SAME)
    yield convolution("bfloat16", (1, 24, 7, 9), (20, 24, 3, 3), BF16, **SAME)
    yield convolution("float result", (1, 24, 7, 9), (48, 24, 3, 3), out=F32, what="tf32", **SAME)


def rounded_cases():
    """The same in float32 on devices that may round to TF32."""
    for last in (False, True):
        yield from _layouts(dtype=F32, last=last, what="tf32")
    yield convolution("half weights", (1, 24, 7, 9), (48, 24, 3, 3), F32, weights=F16, what="tf32",
                      last=True, **SAME)
    yield convolution("half weights", (1, 24, 7, 9), (48, 24, 1, 1), F32, weights=BF16, what="tf32")
