"""Cases of generated Regions, copies, gathers, scatters, reductions, softmax and norms."""

import numpy as np

from rlx.ir.prims import (
    AxisMap, Cumulate, Gather, Move, Norm, Reduce, RegionOp, Scatter, Softmax,
)
from tests.emu.case import (
    BF16, BOOL, F16, F32, F64, I32, I64, I8, Case, identity, part, region, typed, values,
)


def _regions():
    load = lambda dtype, k: RegionOp("load", dtype, (k,))  # noqa: E731
    add = [load(F32, 0), load(F32, 1), RegionOp("add", F32, (0, 1))]
    yield Case("add rows", ("region",), region((5, 24), [identity(2), (AxisMap(1),)], add),
               [values((5, 24)), values((24,), seed=1)], [typed(F32, 5, 24)])
    yield Case("transposed operand", ("region",),
               region((6, 8), [identity(2), (AxisMap(1), AxisMap(0))], add),
               [values((6, 8)), values((8, 6), seed=1)], [typed(F32, 6, 8)])
    yield Case("repeat and tile", ("region",),
               region((4, 12), [(AxisMap(0), AxisMap(1, 3)), (AxisMap(1, 1, 4),)], add),
               [values((4, 4)), values((4,), seed=1)], [typed(F32, 4, 12)])
    two = [load(F16, 0), RegionOp("gelu", F16, (0,)), RegionOp("index", I64, (1,)),
           RegionOp("cast", I32, (2,))]
    yield Case("two results", ("region",), region((3, 16), [identity(2)], two, (1, 3)),
               [values((3, 16), F16)], [typed(F16, 3, 16), typed(I32, 3, 16)], "scalar function")
    casts = [load(F32, 0), RegionOp("cast", BF16, (0,)), RegionOp("cast", F32, (1,)),
             RegionOp("const", F32, (), 0.5), RegionOp("gt", BOOL, (2, 3)),
             RegionOp("select", F32, (4, 2, 3))]
    yield Case("casts and select", ("region",), region((7, 9), [identity(2)], casts),
               [values((7, 9))], [typed(F32, 7, 9)])
    yield Case("in place", ("region",), region((5, 24), [identity(2), (AxisMap(1),)], add),
               [values((5, 24)), values((24,), seed=1)], [typed(F32, 5, 24)], in_place=True)
    yield Case("integers", ("region",),
               region((50,), [identity(1), identity(1)],
                      [load(I8, 0), load(I8, 1), RegionOp("mul", I8, (0, 1))]),
               [values((50,), I8), values((50,), I8, 1)], [typed(I8, 50)])


def _moves():
    yield Case("transpose", ("move",), Move((part(0, (40, 3, 37), (2, 1, 0)),)),
               [values((37, 3, 40))], [typed(F32, 40, 3, 37)])
    yield Case("batched transpose", ("move",), Move((part(0, (3, 20, 40), (0, 2, 1)),)),
               [values((3, 40, 20), F16)], [typed(F16, 3, 20, 40)])
    yield Case("slice backwards", ("move",),
               Move((part(0, (3, 4), None, (5, 1), (-2, 2)),)), [values((6, 9), I64)],
               [typed(I64, 3, 4)])
    yield Case("concat", ("move",),
               Move((part(0, (4, 8)), part(1, (4, 3), offsets=(0, 8)))),
               [values((4, 8)), values((4, 3), seed=1)], [typed(F32, 4, 11)])
    yield Case("pad", ("move", "extend"),
               Move((part(0, (3, 4), offsets=(1, 2)),), "constant", 1),
               [values((3, 4)), np.array(2.5, np.float32)], [typed(F32, 5, 9)])
    for mode in ("edge", "reflect", "wrap"):
        yield Case(f"pad {mode}", ("extend",), Move((part(0, (3, 4), offsets=(2, 3)),), mode),
                   [values((3, 4))], [typed(F32, 7, 10)])


def _indices():
    rng = np.random.default_rng(3)
    yield Case("rows", ("gather",), Gather("axis"),
               [values((10, 16), F16), rng.integers(-10, 10, (2, 5))],
               [typed(F16, 2, 5, 16)])
    yield Case("inner axis", ("gather",), Gather("axis", 1),
               [values((3, 6, 5)), rng.integers(0, 6, (4,)).astype(np.int32)],
               [typed(F32, 3, 4, 5)])
    yield Case("elements", ("gather",), Gather("elements", 1),
               [values((4, 6)), rng.integers(-6, 6, (4, 3))], [typed(F32, 4, 3)])
    yield Case("tuples", ("gather",), Gather("nd", batch_dims=1),
               [values((2, 4, 5, 3)), rng.integers(0, 4, (2, 6, 2))], [typed(F32, 2, 6, 3)])
    yield Case("scatter elements", ("scatter", "move"), Scatter("elements", 0),
               [values((6, 5)), np.array([[1, 0, 2, 3, 5], [0, 2, 4, 1, 2]]),
                values((2, 5), seed=1)],
               [typed(F32, 6, 5)])
    yield Case("scatter add", ("scatter", "move"), Scatter("elements", 1, "add"),
               [values((3, 4), I32), rng.integers(0, 4, (3, 9)), values((3, 9), I32, 1)],
               [typed(I32, 3, 4)])
    yield Case("scatter rows", ("scatter", "move"), Scatter("nd"),
               [values((8, 4)), np.array([[3], [-1], [0]]), values((3, 4), seed=1)],
               [typed(F32, 8, 4)])
    yield Case("scatter rows max", ("scatter", "move"), Scatter("nd", reduction="max"),
               [values((8, 4)), rng.integers(0, 8, (20, 1)), values((20, 4), seed=1)],
               [typed(F32, 8, 4)], in_place=True)
    # Many updates for each target, whose results are exact in any order: whole numbers.
    for reduction in ("add", "mul", "min", "max"):
        for dtype in (F16, F32, F64, I64):
            updates = np.where(values((40, 3), BOOL, 5), 1, -2 if reduction != "mul" else -1)
            yield Case(f"scatter tuples {reduction} {dtype.name.lower()}", ("scatter", "move"),
                       Scatter("nd", reduction=reduction),
                       [values((5, 3), I8).astype(dtype.numpy), rng.integers(-5, 5, (40, 1)),
                        updates.astype(dtype.numpy)], [typed(dtype, 5, 3)])
            yield Case(f"scatter elements {reduction} {dtype.name.lower()}", ("scatter", "move"),
                       Scatter("elements", 0, reduction),
                       [values((5, 3), I8).astype(dtype.numpy), rng.integers(-5, 5, (40, 3)),
                        updates.astype(dtype.numpy)], [typed(dtype, 5, 3)])


def _reductions():
    for kind, dtype, shape, axes in [
        ("sum", F32, (6, 130), (1,)), ("sum", F32, (130, 40), (0,)), ("sum", F16, (2, 9000), (1,)),
        ("sum", F32, (5000, 3), (0,)), ("mean", BF16, (4, 5, 6, 40), (0, 2)),
        ("max", I32, (70, 33), (1,)),
        ("l2", F32, (3, 50, 7), (1,)), ("log_sum_exp", F32, (9, 300), (1,)),
        ("argmax", F32, (40, 65), (1,)), ("argmin", F64, (65, 40), (0,)),
        ("prod", I64, (5, 9), (1,)),
    ]:
        kept = tuple(d for k, d in enumerate(shape) if k not in axes)
        out = typed(I64 if kind.startswith("arg") else dtype, *kept)
        x = values(shape, dtype)
        yield Case(f"{kind} {dtype.name.lower()} {shape} {axes}", ("reduce",),
                   Reduce(kind, axes, False),
                   [np.abs(x) if kind == "sum" else x], [out],
                   "exact" if out.dtype.is_integer else "sum")
    yield Case("any", ("reduce",), Reduce("max", (1,), True), [values((6, 50), BOOL)],
               [typed(BOOL, 6, 1)])
    for axis, shape in ((1, (6, 700)), (0, (50, 33)), (1, (3, 5, 4))):
        for kind, exclusive, reverse in (("sum", False, False), ("sum", True, True),
                                         ("prod", True, False)):
            yield Case(f"running {kind} {shape} {axis} {exclusive}", ("cumulate",),
                       Cumulate(kind, axis, exclusive, reverse),
                       [values(shape, I64)], [typed(I64, *shape)])


def _rows():
    for shape, axis, dtype in (((9, 40), 1, F32), ((3, 700), 1, F16), ((2, 12000), 1, F32),
                               ((2, 30, 50), 1, F32), ((300, 7), 1, F64)):
        for log in (False, True):
            yield Case(f"softmax {shape} {axis} {dtype.name.lower()} {log}", ("softmax",),
                       Softmax(axis, log), [values(shape, dtype, scale=3)], [typed(dtype, *shape)],
                       "softmax")
    for shape, dtype in (((70, 96), F32), ((3, 1000), F16), ((2, 40000), F32)):
        n = shape[1]
        yield Case(f"layer norm {shape}", ("norm",), Norm("layer", 1e-5, 1),
                   [values(shape, dtype, 0, 2), values((n,), dtype, 1), values((n,), dtype, 2)],
                   [typed(dtype, *shape), typed(F32, shape[0], 1), typed(F32, shape[0], 1)], "norm")
    yield Case("rms norm", ("norm",), Norm("rms", 1e-6, 2),
               [values((3, 5, 33)), values((33,), seed=1), None], [typed(F32, 3, 5, 33)], "norm")
    for last in (False, True):
        shape = (2, 6, 5, 8) if last else (2, 8, 6, 5)
        yield Case(f"group norm {last}", ("norm",),
                   Norm("group", 1e-5, 1, groups=4, channels_last=last),
                   [values(shape, seed=4), values((8,), seed=1), values((8,), seed=2)],
                   [typed(F32, *shape)], "norm")


def cases():
    for group in (_regions, _moves, _indices, _reductions, _rows):
        yield from group()
