"""Cases of products on tensor cores and of few rows: each tile, layout, split and epilogue."""

import numpy as np

from rlx.ir.prims import AxisMap, MatMul, RegionOp
from tests.emu.case import BF16, F16, F32, Case, chain, identity, region, typed, values

LAYOUTS = [{}, {"trans_a": True}, {"trans_b": True}, {"trans_a": True, "trans_b": True}]


def product(rung, name, a, b, dtype, out=None, what="sum", kernels=None, extra=(), right=None,
            **options):
    """[.., m, k] by [.., k, n], stored transposed as the options say."""
    x, y = values(a, dtype, 0, a[-1] ** -0.5), values(b, right or dtype, 1)
    shape = np.matmul(x.astype(float), y.astype(float)).shape
    if options.get("trans_a"):
        x = np.ascontiguousarray(x.swapaxes(-1, -2))
    if options.get("trans_b"):
        y = np.ascontiguousarray(y.swapaxes(-1, -2))
    file = {"tensor cores": "matmul_mma", "gemv": "gemv"}[rung]
    forms = " ".join(k for k, v in options.items() if v is True)
    return Case(f"{name} {dtype.name.lower()} {a} {b} {forms}", kernels or (file,),
                MatMul(**options), [x, y, *[None] * 4, *extra], [typed(out or dtype, *shape)], what,
                rung=rung)


def residual(shape, dtype):
    """Bias, SiLU, then a residual of the product's shape."""
    ops = [RegionOp("load", F32, (0,)), RegionOp("load", F32, (1,)), RegionOp("add", F32, (0, 1)),
           RegionOp("silu", F32, (2,)), RegionOp("load", dtype, (2,)),
           RegionOp("cast", F32, (4,)), RegionOp("add", F32, (3, 5)), RegionOp("cast", dtype, (6,))]
    last = (AxisMap(len(shape) - 1),)
    return region(shape, [identity(len(shape)), last, identity(len(shape))], ops)


def _tensor_cores():
    for layout in LAYOUTS:
        yield product("tensor cores", "layout", (40, 72), (72, 56), F16, **layout)
        # Nothing is aligned: elements are copied one by one.
        yield product("tensor cores", "odd", (35, 45), (45, 37), BF16, **layout)
        # Tiles of 128 x 128, not all of them full.
        yield product("tensor cores", "many rows", (200, 264), (264, 232), F16, **layout)
        yield product("tensor cores", "few rows", (8, 136), (136, 72), BF16, **layout)
    yield product("tensor cores", "pairs", (18, 70), (70, 34), F16)
    yield product("tensor cores", "many slices", (16, 300), (300, 150), F16)
    for m, n in ((200, 300), (300, 90), (130, 120), (70, 60), (16, 64)):
        yield product("tensor cores", "tile", (m, 64), (64, n), F16)
    yield product("tensor cores", "one row", (1, 48), (48, 24), BF16)
    yield product("tensor cores", "batch", (2, 1, 20, 40), (3, 40, 24), F16)
    yield product("tensor cores", "shared b", (2, 3, 9, 40), (40, 24), F16)
    yield product("tensor cores", "float result", (33, 64), (64, 24), F16, F32, "tf32", alpha=0.5)
    yield product("tensor cores", "k split", (16, 2048), (2048, 24), F16, alpha=0.5,
                  kernels=("matmul_mma",))
    yield product("tensor cores", "epilogue", (36, 64), (64, 40), F16,
                  extra=[values((40,), seed=2)],
                  epilogue=chain((36, 40), F32, "add", "gelu", store=F16))
    yield product("tensor cores", "residual", (2, 20, 64), (64, 48), BF16,
                  extra=[values((48,), seed=2), values((2, 20, 48), BF16, 3)],
                  epilogue=residual((2, 20, 48), BF16))
    yield product("tensor cores", "split residual", (9, 1536), (1536, 37), F16,
                  kernels=("matmul_mma",),
                  extra=[values((37,), seed=2), values((9, 37), F16, 3)],
                  epilogue=residual((9, 37), F16))


def _few_rows():
    for trans_b in (False, True):
        for m in (1, 2, 3, 7, 16):
            yield product("gemv", "rows", (m, 80), (80, 72), F16, trans_b=trans_b)
        yield product("gemv", "float", (4, 129), (129, 65), F32, what="sum",
                      trans_b=trans_b)
        yield product("gemv", "half weights", (2, 96), (96, 40), F32, F32, right=F16,
                      what="sum", trans_b=trans_b)
        yield product("gemv", "odd", (5, 37), (37, 51), BF16, trans_b=trans_b)
        yield product("gemv", "k split", (3, 4096), (4096, 24), F16, trans_b=trans_b,
                      kernels=("gemv",))
        yield product("gemv", "epilogue", (2, 64), (64, 40), F16, trans_b=trans_b,
                      extra=[values((40,), seed=2), values((2, 40), F16, 3)],
                      epilogue=residual((2, 40), F16))
    yield product("gemv", "transposed rows", (3, 64), (64, 40), F16, trans_a=True, trans_b=True)
    yield product("gemv", "batch", (3, 2, 64), (3, 64, 40), F16, alpha=2.0)
    yield product("gemv", "shared b", (4, 1, 64), (64, 40), F16)


def cases():
    yield from _tensor_cores()
    yield from _few_rows()


def rounded_cases():
    """The same in float32 on devices that may round to TF32."""
    for layout in LAYOUTS:
        yield product("tensor cores", "layout", (40, 72), (72, 56), F32, what="tf32", **layout)
        yield product("tensor cores", "odd", (35, 45), (45, 37), F32, what="tf32", **layout)
        yield product("tensor cores", "many rows", (200, 132), (132, 232), F32, what="tf32",
                      **layout)
        yield product("tensor cores", "few rows", (8, 136), (136, 72), F32, what="tf32", **layout)
    yield product("tensor cores", "tile", (200, 64), (64, 300), F32, what="tf32")
    yield product("tensor cores", "batch", (2, 1, 20, 40), (3, 40, 24), F32, what="tf32")
    yield product("tensor cores", "epilogue", (20, 64), (64, 48), F32, what="tf32",
                  extra=[values((48,), seed=2)], epilogue=chain((20, 48), F32, "add", "silu"))
