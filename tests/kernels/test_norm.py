"""Layer, RMS and group norms: statistics, scales of every shape, prologues and epilogues."""

import numpy as np
import pytest

from rlx.ir.prims import Norm, RegionOp
from rlx.ir.reference.normalise import norm as reference
from rlx.ir.types import DType, TensorType
from tests.kernels.run_prim import region, run_prim
from tests.kernels.samples import FLOATS
from tests.tolerance import tolerance

TRAILING = [((64, 768), 1), ((3, 5, 33), 2), ((4, 6, 7, 9), 2), ((2, 3000), 1), ((5, 1), 1),
            ((40,), 0)]
GROUPS = [((2, 32, 6, 5), 8), ((1, 12, 700), 12), ((3, 4), 2), ((2, 64, 3, 3, 2), 1),
          ((1, 6, 1), 6), ((1, 320, 16, 16), 32)]


def check(prim: Norm, inputs, outputs, threads: int) -> list[np.ndarray]:
    want = [w for w in reference(prim, inputs, outputs, lambda dim: dim) if w is not None]
    got = run_prim(prim, inputs, outputs, threads)
    for g, w, t in zip(got, want, (t for t in outputs if t is not None)):
        np.testing.assert_allclose(g.astype(float), w.astype(float),
                                   **tolerance("norm", t.dtype.name.lower()))
    return got


def operands(shape, vector, dtype: DType, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(shape) * 2 + 1).astype(dtype.numpy)
    scale, bias = (rng.standard_normal(vector).astype(dtype.numpy) for _ in range(2))
    return [x, scale, bias]


def statistics(dtype: DType, shape) -> list[TensorType]:
    wide = DType.FLOAT64 if dtype is DType.FLOAT64 else DType.FLOAT32
    return [TensorType(wide, shape)] * 2


@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize(("shape", "axis"), TRAILING, ids=str)
def test_trailing_axes(kind, dtype, shape, axis):
    x, scale, bias = operands(shape, shape[axis:], dtype, 0)
    kept = shape[:axis] + (1,) * (len(shape) - axis)
    mean, inverse = statistics(dtype, kept)
    outputs = [TensorType(dtype, shape), mean if kind == "layer" else None, inverse]
    prim = Norm(kind, 1e-5, axis)
    for threads, vectors in ((1, [scale, bias]), (2, [scale, None]), (5, [None, bias]),
                             (1, [None, None])):
        check(prim, [x, *vectors], outputs, threads)


@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize(("shape", "groups"), GROUPS, ids=str)
def test_groups(dtype, shape, groups, last):
    channels = shape[1]
    if last:
        shape = (shape[0], *shape[2:], channels)
    x, scale, bias = operands(shape, (channels,), dtype, 1)
    outputs = [TensorType(dtype, shape), *statistics(dtype, (shape[0], groups, 1))]
    prim = Norm("group", 1e-5, 1, groups, last)
    for threads, vectors in ((1, [scale, bias]), (2, [scale, None]), (5, [None, None])):
        check(prim, [x, *vectors], outputs, threads)


@pytest.mark.parametrize("kind", ["layer", "group", "last"])
@pytest.mark.parametrize("value", [0.1, -3e4, 7.7e-12])
def test_equal_values_give_exactly_the_bias(kind, value):
    x = np.full((2, 12, 50), value, np.float32)
    bias = np.linspace(-1, 1, 50 if kind != "group" else 12, dtype=np.float32)
    prim = {"layer": Norm("layer", 1e-5, 2), "group": Norm("group", 1e-5, 1, 3),
            "last": Norm("group", 1e-5, 1, 5, True)}[kind]
    got, = run_prim(prim, [x, None, bias], [TensorType(DType.FLOAT32, x.shape)])
    along = bias[:, None] if kind == "group" else bias
    np.testing.assert_array_equal(got, np.broadcast_to(along, x.shape))


@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_a_large_mean_costs_no_precision(last):
    """Values around 1000 with a deviation of 1/8 are exact in float32."""
    x = np.round(np.random.default_rng(5).standard_normal((2, 40, 60))) / 8 + 1000
    x = x.astype(np.float32)
    out = [TensorType(DType.FLOAT32, x.shape)]
    check(Norm("layer", 0.0, 2), [x, None, None], out, 1)
    check(Norm("group", 0.0, 1, 20, last), [x, None, None], out, 2)


@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT16], ids=lambda d: d.name)
@pytest.mark.parametrize("prim", [Norm("layer", 1e-5, 2), Norm("rms", 1e-6, 2),
                                  Norm("group", 1e-5, 1, 5), Norm("group", 1e-5, 1, 7, True)],
                         ids=["layer", "rms", "group", "last"])
@pytest.mark.parametrize("parts", ["prologue", "kept", "epilogue", "all"])
def test_around_it(prim, dtype, parts):
    """A residual added before (and kept, when asked), an activation of a difference after."""
    shape = (3, 35, 28)
    channels = 28 if prim.channels_last or prim.kind != "group" else 35
    inputs = operands(shape, (channels,), dtype, 2)
    if prim.kind == "rms":
        inputs[2] = None
    rng = np.random.default_rng(6)
    outputs = [TensorType(dtype, shape), None, None, None]
    fields = {}
    if parts != "epilogue":
        inputs.append(rng.standard_normal((35, 28)).astype(dtype.numpy))
        ops = [RegionOp("load", dtype, (0,)), RegionOp("load", dtype, (1,)),
               RegionOp("add", dtype, (0, 1))]
        fields["prologue"] = region(shape, [shape, (35, 28)], ops)
    if parts in ("kept", "all"):
        outputs[3] = TensorType(dtype, shape)
    if parts in ("epilogue", "all"):
        inputs.append(rng.standard_normal(shape).astype(dtype.numpy))
        ops = [RegionOp("load", dtype, (0,)), RegionOp("load", dtype, (1,)),
               RegionOp("sub", dtype, (0, 1)), RegionOp("tanh", dtype, (2,))]
        fields["epilogue"] = region(shape, [shape, shape], ops)
    whole = Norm(prim.kind, prim.epsilon, prim.axis, prim.groups, prim.channels_last, **fields)
    for threads in (1, 2):
        check(whole, inputs, outputs, threads)


def test_scale_broadcasts_and_may_be_of_another_type():
    x = np.random.default_rng(7).standard_normal((4, 6, 10)).astype(np.float16)
    scale = np.random.default_rng(8).standard_normal((6, 1)).astype(np.float32)
    bias = np.random.default_rng(9).standard_normal((10,)).astype(np.float16)
    out = [TensorType(DType.FLOAT16, x.shape)]
    check(Norm("layer", 1e-5, 1), [x, scale, bias], out, 1)
