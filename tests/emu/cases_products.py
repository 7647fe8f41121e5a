"""Cases of products, convolutions, pooling, attention, resizing, order and the long tail."""

import numpy as np

from rlx.ir.prims import (
    Attention, AxisMap, Conv, Fft, Map, MatMul, NonMaxSuppression, Pool, Recurrent, RegionOp,
    Resize, Sort,
)
from tests.emu.case import (
    BF16, BOOL, F16, F32, F64, I32, I64, I8, U8, Case, chain, identity, region, typed, values,
)


def _matmuls():
    for a, b, dtype, options in [
        ((33, 70), (70, 65), F32, {}), ((2, 1, 20, 9), (3, 9, 12), F32, {}),
        ((9, 20), (30, 9), F16, {"trans_a": True, "trans_b": True}), ((1, 40), (40, 300), BF16, {}),
        ((65, 3), (3, 5), F64, {"accumulate": F64, "alpha": 0.5}),
    ]:
        x, y = values(a, dtype, 0, 0.1), values(b, dtype, 1, 0.1)
        left = np.swapaxes(x, -1, -2) if options.get("trans_a") else x
        right = np.swapaxes(y, -1, -2) if options.get("trans_b") else y
        shape = np.matmul(left.astype(float), right.astype(float)).shape
        yield Case(f"{dtype.name.lower()} {a} {b}", ("matmul",), MatMul(**options),
                   [x, y, None, None], [typed(dtype, *shape)], "sum")
    yield Case("bias and gelu", ("matmul",),
               MatMul(epilogue=chain((20, 36), F32, "add", "gelu", store=F16)),
               [values((20, 50), F16, 0, 0.2), values((50, 36), F16, 1, 0.2), *[None] * 4,
                values((36,), seed=2)], [typed(F16, 20, 36)], "sum")
    for half, options in ((F16, {}), (BF16, {"trans_b": True})):
        yield Case(f"float32 by {half.name.lower()}", ("matmul",), MatMul(**options),
                   [values((20, 70), F32, 0, 0.1),
                    values((33, 70) if options else (70, 33), half, 1, 0.1), None, None],
                   [typed(F32, 20, 33)], "sum")
    yield Case("int8", ("matmul",), MatMul(accumulate=I32),
               [values((20, 70), U8), values((70, 9), I8, 1), np.array(7, np.uint8),
                values((9,), I8, 2)], [typed(I32, 20, 9)])
    yield Case("int64", ("matmul",), MatMul(accumulate=I64),
               [values((5, 7), I64), values((7, 9), I64, 1), None, None], [typed(I64, 5, 9)])


def _conv(name, x, w, y, dtype=F32, what="sum", extra=(), **options):
    n = len(options["strides"])
    options = {"dilations": (1,) * n, "pads_begin": (0,) * n, "pads_end": (0,) * n, **options}
    return Case(f"conv {name}", ("conv",), Conv(**options),
                [values(x, dtype, 0, 0.3), values(w, dtype, 1, 0.3), None, None, *extra],
                [typed(dtype, *y)], what)


def _images():
    yield _conv("3x3", (2, 5, 9, 8), (10, 5, 3, 3), (2, 10, 9, 8), strides=(1, 1),
                pads_begin=(1, 1), pads_end=(1, 1))
    yield _conv("last", (1, 9, 8, 6), (12, 3, 3, 2), (1, 5, 7, 12), F16, strides=(2, 1), groups=2,
                pads_begin=(1, 0), pads_end=(1, 0), channels_last=True)
    yield _conv("depthwise", (1, 6, 7, 7), (6, 1, 3, 3), (1, 6, 5, 5), strides=(1, 1), groups=6)
    yield _conv("1d dilated", (2, 3, 20), (8, 3, 3), (2, 8, 16), strides=(1,), dilations=(2,))
    yield _conv("3d", (1, 2, 4, 5, 6), (9, 2, 2, 2, 2), (1, 9, 3, 4, 5), strides=(1, 1, 1))
    yield _conv("transposed", (1, 4, 5, 6), (4, 6, 3, 3), (1, 12, 9, 11), strides=(2, 2), groups=2,
                pads_begin=(1, 1), pads_end=(1, 1), transposed=True)
    # Coordinates of 64 bits, as for an image of 2^30 rows.
    for name, w in (("tiles", (9, 4, 3, 3)), ("direct", (3, 4, 3, 3))):
        yield _conv(f"wide {name}", (2, 4, 5, 9), w, (2, w[0], 1, 7), strides=(1 << 30, 1))
    yield _conv("wide transposed", (1, 4, 1, 6), (4, 9, 2, 3), (1, 9, 1, 8), strides=(1, 1),
                dilations=(1 << 30, 1), pads_begin=(0, 0), pads_end=(1 << 30, 0), transposed=True)
    yield Case("conv float32 by float16", ("conv",), Conv((1, 1), (1, 1), (0, 0), (0, 0)),
               [values((1, 3, 6, 6), F32, 0, 0.3), values((9, 3, 3, 3), F16, 1, 0.3), None, None],
               [typed(F32, 1, 9, 4, 4)], "sum")
    yield _conv("bias", (1, 4, 5, 6), (8, 4, 1, 1), (1, 8, 5, 6), strides=(1, 1),
                extra=[values((8, 1, 1), seed=3)], epilogue=region(
                    (1, 8, 5, 6), [identity(4), (AxisMap(1), AxisMap(2), AxisMap(3))],
                    [RegionOp("load", F32, (0,)), RegionOp("load", F32, (1,)),
                     RegionOp("add", F32, (0, 1)), RegionOp("silu", F32, (2,))]))
    yield Case("conv int8", ("conv",), Conv((1, 1), (1, 1), (1, 1), (1, 1), accumulate=I32),
               [values((1, 3, 6, 6), U8), values((9, 3, 3, 3), I8, 1), np.array(5, np.uint8), None],
               [typed(I32, 1, 9, 6, 6)])
    pads = {"pads_begin": (1, 0), "pads_end": (0, 1)}
    for kind, last, options in (("max", False, {}), ("max", True, {}), ("lp", False, {"p": 3}),
                                ("average", False, {"count_include_pad": True}),
                                ("average", True, {})):
        x, y = ((2, 3, 7, 8), (2, 3, 3, 4)) if not last else ((2, 7, 8, 3), (2, 3, 4, 3))
        outputs = [typed(F32, *y)] + ([typed(I64, *y)] if kind == "max" and not last else [])
        yield Case(f"pool {kind} {last}", ("pool",),
                   Pool(kind, (3, 2), (2, 2), (1, 1), channels_last=last, **pads, **options),
                   [values(x)], outputs, "sum")
    yield Case("pool uint8", ("pool",), Pool("max", (3, 2), (2, 2), (1, 1), **pads),
               [values((2, 3, 7, 8), U8)], [typed(U8, 2, 3, 3, 4)])


def _attention():
    causal = {"causal": True, "causal_offset": 3}
    for name, q, kv, dtype, options in [
        ("plain", (2, 3, 20, 40), (2, 3, 35, 40), F32, {}),
        ("causal groups", (1, 4, 17, 24), (1, 2, 20, 24), F16, causal),
        ("wide heads", (1, 2, 18, 200), (1, 2, 37, 200), F32, {}),
        ("cores", (1, 2, 70, 64), (1, 2, 150, 64), F16, {}),
        ("cores bfloat16", (2, 2, 20, 24), (2, 1, 40, 24), BF16, causal),
        ("odd half", (1, 2, 18, 15), (1, 2, 20, 15), F16, {}),
        ("cores many heads", (2, 6, 20, 40), (2, 3, 70, 40), F16, {}),
        ("cores causal rows", (1, 2, 150, 64), (1, 2, 150, 64), F16, {"causal": True}),
        ("cores wide", (1, 4, 70, 128), (1, 4, 200, 128), F16, {}),
    ]:
        cores = dtype is not F32 and q[3] % 2 == 0
        yield Case(f"attention {name}", ("attention_mma" if cores else "attention",),
                   Attention(q[3] ** -0.5, **options),
                   [values(q, dtype), values(kv, dtype, 1), values(kv, dtype, 2)],
                   [typed(dtype, *q)], "norm")
    for name, q, kv, dtype, options in [
        ("one row", (1, 4, 1, 64), (1, 2, 77, 64), F16, {}),
        ("few rows", (2, 3, 5, 40), (2, 3, 150, 40), BF16, causal),
        ("float", (2, 2, 3, 128), (2, 2, 70, 128), F32, {}),
        ("wide", (1, 2, 2, 256), (1, 1, 40, 256), F16, causal),
        ("short", (1, 2, 1, 8), (1, 2, 2, 8), F16, {}),
        ("odd", (1, 4, 2, 257), (1, 1, 20, 257), BF16, {}),
        ("odd float", (1, 3, 3, 7), (1, 1, 20, 7), F32, causal),
        ("long", (1, 4, 1, 128), (1, 1, 1000, 128), F16, {}),
        ("long float", (1, 8, 2, 64), (1, 1, 600, 64), F32, causal),
        ("long odd", (1, 1, 1, 33), (1, 1, 600, 33), F16, {}),
    ]:
        cores = "_mma" if dtype is not F32 and q[3] % 8 == 0 else ""
        join = ("attention_join",) if name.startswith("long") else ()
        yield Case(f"decode {name}", (f"attention_decode{cores}", *join),
                   Attention(q[3] ** -0.5, **options),
                   [values(q, dtype), values(kv, dtype, 1), values(kv, dtype, 2)],
                   [typed(dtype, *q)], "norm")
    for rows in (9, 18):
        yield from _masked_attention(rows)


def _masked_attention(rows):
    few = rows < 16
    mask = region((1, 2, rows, 20),
                  [identity(4), (AxisMap(0), AxisMap(-1), AxisMap(-1), AxisMap(3))],
                  [RegionOp("load", F32, (0,)), RegionOp("load", F32, (1,)),
                   RegionOp("add", F32, (0, 1))])
    yield Case(f"attention masked {rows}", ("attention_decode" if few else "attention",),
               Attention(0.25, q_layout="bshd", k_layout="bshd", y_layout="bshd", score=mask),
               [values((1, rows, 2, 16)), values((1, 20, 2, 16), seed=1),
                values((1, 2, 20, 16), seed=2),
                np.where(values((1, 1, 1, 20), BOOL, 3), 0, -1e9).astype(np.float32)],
               [typed(F32, 1, rows, 2, 16)], "norm")
    half = region((1, 2, rows, 20), mask.accesses,
                  [RegionOp("load", F32, (0,)), RegionOp("load", F16, (1,)),
                   RegionOp("cast", F32, (1,)), RegionOp("add", F32, (0, 2))])
    kernel = "attention_decode_mma" if few else "attention_mma"
    yield Case(f"attention masked half {rows}", (kernel,),
               Attention(0.25, k_layout="bshd", score=half),
               [values((1, 2, rows, 16), F16), values((1, 20, 2, 16), F16, 1),
                values((1, 2, 20, 16), F16, 2),
                np.where(values((1, 1, 1, 20), BOOL, 3), 0, -1e4).astype(np.float16)],
               [typed(F16, 1, 2, rows, 16)], "norm")


def _resizes():
    for mode, options in (("nearest", {}), ("linear", {"antialias": True}), ("cubic", {}),
                          ("linear", {"coordinate_transformation_mode": "align_corners"})):
        yield Case(f"resize {mode} {len(options)}", ("resize",),
                   Resize(mode, (1, 2), (0.5, 2.0), **options),
                   [values((2, 6, 5))], [typed(F32, 2, 3, 10)], "rounded")
    yield Case("resize crop", ("resize",),
               Resize("linear", (0, 1), (1.0, 1.0), "tf_crop_and_resize", extrapolation_value=9.0,
                      roi=(0.1, -0.2, 0.9, 1.3)),
               [values((6, 5))], [typed(F32, 6, 5)], "rounded")


def _order():
    rng = np.random.default_rng(5)
    x = rng.integers(-5, 5, (4, 100, 3)).astype(np.float32)
    for largest, shape in ((True, (4, 100, 3)), (False, (2, 2500))):
        data = x if len(shape) == 3 else rng.standard_normal(shape).astype(np.float32)
        out = (4, 7, 3) if len(shape) == 3 else (2, 7)
        yield Case(f"topk {shape}", ("sort",), Sort("topk", 1, 7, largest), [data],
                   [typed(F32, *out), typed(I64, *out)])
    tied = rng.integers(-50, 50, (2, 9000)).astype(np.int32)
    yield Case("topk of ties", ("sort",), Sort("topk", 1, 8990, True), [tied],
               [typed(I32, 2, 8990), typed(I64, 2, 8990)])


def lstm_of_bytes(batchwise, kernel="recurrent", batch=3, size=6, hidden=5):
    """Integer weights: x and, before each step, the state are rounded by their ranges."""
    rng = np.random.default_rng(7)
    n, all_gates = hidden, 4 * hidden
    weights = [rng.integers(-128, 128, (2, all_gates, k)).astype(np.int8) for k in (size, n)]
    scales = [rng.uniform(0.002, 0.004, s).astype(np.float32) * np.float32((5 / n) ** 0.5)
              for s in ((2, 1), (2, all_gates))]
    zeros = [rng.integers(-20, 20, s).astype(np.int8) for s in ((2, all_gates), (2, 1))]
    lengths = None if batchwise else np.resize([4, 2, 3], batch).astype(np.int32)
    x, h, y = (((batch, 4, size), (batch, 2, n), (batch, 4, 2, n)) if batchwise else
               ((4, batch, size), (2, batch, n), (4, 2, batch, n)))
    return Case(f"lstm of bytes {batchwise} {kernel} {batch}", (kernel,),
                Recurrent("lstm", n, "bidirectional", batchwise=batchwise),
                [values(x, seed=8), *weights, values((2, 2 * all_gates), seed=3), lengths,
                 values(h, seed=9, scale=0.3), None, None, scales[0], zeros[0], scales[1],
                 zeros[1]],
                [typed(F32, *y), typed(F32, *h), typed(F32, *h)], "rounded")


def layer(kind, gates, dtype, before=False, kernel="recurrent", batch=3, size=6, n=5, **options):
    lstm = kind == "lstm"
    peephole = values((2, 3 * n), dtype, seed=5) if lstm else None
    lengths = np.resize([4, 2, 3, 0], batch).astype(np.int32)
    scale = 0.3 * (5 / n) ** 0.5
    return Case(f"{kind} {before} {dtype.name.lower()} {kernel} {batch}", (kernel,),
                Recurrent(kind, n, "bidirectional", linear_before_reset=before, **options),
                [values((4, batch, size), dtype),
                 values((2, gates * n, size), dtype, seed=1, scale=scale),
                 values((2, gates * n, n), dtype, seed=2, scale=scale),
                 values((2, gates * 2 * n), dtype, seed=3), lengths,
                 values((2, batch, n), dtype, seed=4), None, peephole],
                [typed(dtype, 4, 2, batch, n), typed(dtype, 2, batch, n),
                 typed(dtype, 2, batch, n) if lstm else None],
                "rounded" if dtype is F32 else "sum")


def _layers_by_steps():
    """Layers with too many weights for one block; sizes with and without runs of 16 bytes."""
    kernel = "recurrent_step"
    for dtype in (F32, F16, BF16, F64):
        yield layer("lstm", 4, dtype, False, kernel, 3, 67, 152, clip=1.5, input_forget=True)
        yield layer("gru", 3, dtype, False, kernel, 1, 96, 132)
        yield layer("gru", 3, dtype, True, kernel, 2, 64, 160)
        yield layer("rnn", 1, dtype, False, kernel, 11, 1, 305)
    for batchwise, batch, size, n in ((False, 3, 35, 202), (True, 6, 48, 208)):
        yield lstm_of_bytes(batchwise, kernel, batch, size, n)


def _tail():
    for dtype in (F32, F16, BF16):
        for kind, gates in (("lstm", 4), ("gru", 3), ("rnn", 1)):
            for before in (False, True) if kind == "gru" else (False,):
                yield layer(kind, gates, dtype, before)
    yield lstm_of_bytes(False)
    yield lstm_of_bytes(True)
    yield from _layers_by_steps()
    for n, inverse, onesided in ((12, False, False), (14, False, True), (15, True, False),
                                 (9, True, True), (67, False, False), (134, True, False),
                                 (71, False, True), (73, True, True)):
        points = n // 2 + 1 if onesided and not inverse else n
        parts_in = 1 if onesided and not inverse else 2
        x = values((2, n // 2 + 1 if onesided and inverse else n, 3, parts_in))
        yield Case(f"fft {n} {inverse} {onesided}", ("fft",), Fft(1, n, inverse, onesided), [x],
                   [typed(F32, 2, points, 3, 1 if onesided and inverse else 2)], "rounded")
    for dtype in (F32, F16, BF16):
        yield Case(f"map {dtype.name.lower()}", ("map",),
                   Map("col2im", 2 * 3 * 5, (2, 4, 1, 1, 0, 2, 3, 2, 1, 0)),
                   [values((2, 12, 12), dtype)], [typed(dtype, 2, 3, 5, 6)], "sum")


def cases():
    for group in (_matmuls, _images, _attention, _resizes, _order, _tail):
        yield from group()
