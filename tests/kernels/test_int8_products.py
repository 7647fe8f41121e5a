"""Integer products of 8-bit tensors: every sum exact in int32, whatever zero points and strides."""

import numpy as np
import pytest

from rlx.ir.prims import Conv, MatMul, RegionOp
from rlx.ir.types import DType, TensorType
from tests.kernels.run_prim import region, run_prim

TYPES = [(np.uint8, np.int8), (np.int8, np.int8), (np.uint8, np.uint8), (np.int8, np.uint8)]
SIZES = [(1, 1, 1), (1, 37, 2000), (7, 19, 3), (64, 96, 10000), (130, 70, 517), (5, 1, 64),
         (300, 16, 768)]


def full_range(dtype, shape, rng) -> np.ndarray:
    """Random values, a quarter of them the two limits, which saturate narrow sums."""
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, shape, endpoint=True)
    return np.where(rng.random(shape) < 0.25, rng.choice([info.min, info.max], shape),
                    x).astype(dtype)


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.int64)


def zero_points(kind: str, dtype, count: int, rng):
    if kind == "none":
        return None
    return full_range(dtype, () if kind == "one" else (count,), rng)


def product(a, b, a_zero=None, b_zero=None, *, threads=2, **more) -> np.ndarray:
    """The product by rlx, of a and b as they are stored."""
    prim = MatMul(accumulate=DType.INT32, **more)
    m, n = a.shape[-1 if prim.trans_a else -2], b.shape[-2 if prim.trans_b else -1]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return run_prim(prim, [a, b, a_zero, b_zero], [TensorType(DType.INT32, (*batch, m, n))],
                    threads)[0]


@pytest.mark.parametrize("zeros", ["none", "one", "each"])
@pytest.mark.parametrize("types", TYPES, ids=lambda t: "".join(np.dtype(d).name[:-1] for d in t))
def test_products_are_exact(types, zeros):
    rng = np.random.default_rng(0)
    for m, n, k in SIZES:
        a, b = full_range(types[0], (m, k), rng), full_range(types[1], (k, n), rng)
        az = zero_points(zeros, types[0], m, rng)
        bz = zero_points(zeros, types[1], n, rng)
        left = wide(a) - (0 if az is None else wide(az).reshape(-1, 1))
        right = wide(b) - (0 if bz is None else wide(bz).reshape(1, -1))
        np.testing.assert_array_equal(product(a, b, az, bz), left @ right, str((m, n, k)))


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
def test_batches_and_transposes(trans_a, trans_b):
    rng = np.random.default_rng(1)
    a, b = full_range(np.uint8, (3, 1, 11, 45), rng), full_range(np.int8, (2, 45, 29), rng)
    expected = (wide(a) - 77) @ wide(b)
    stored_a = np.ascontiguousarray(np.swapaxes(a, -1, -2)) if trans_a else a
    stored_b = np.ascontiguousarray(np.swapaxes(b, -1, -2)) if trans_b else b
    y = product(stored_a, stored_b, np.uint8(77), trans_a=trans_a, trans_b=trans_b)
    np.testing.assert_array_equal(y, expected)


def requantise(shape, channels_shape):
    """An epilogue: the sums times a factor for each channel, rounded and cut to int8."""
    f, last = DType.FLOAT32, len(shape)
    ops = [RegionOp("load", DType.INT32, (0,)), RegionOp("load", f, (1,)),
           RegionOp("cast", f, (0,)), RegionOp("mul", f, (2, 1)), RegionOp("round", f, (3,)),
           RegionOp("const", f, (), -128.0), RegionOp("const", f, (), 127.0),
           RegionOp("max", f, (4, 5)), RegionOp("min", f, (7, 6)),
           RegionOp("cast", DType.INT8, (8,))]
    assert last >= len(channels_shape)
    return region(shape, [shape, channels_shape], ops)


def test_requantising_inside_a_product():
    rng = np.random.default_rng(2)
    m, n, k = 70, 45, 301
    a, b = full_range(np.uint8, (m, k), rng), full_range(np.int8, (k, n), rng)
    factor = (2.0 ** rng.integers(-20, -12, n)).astype(np.float32)
    zero = full_range(np.int8, (n,), rng)
    prim = MatMul(accumulate=DType.INT32, epilogue=requantise((m, n), (n,)))
    (y,) = run_prim(prim, [a, b, np.uint8(3), zero, None, None, factor],
                    [TensorType(DType.INT8, (m, n))], 2)
    sums = (wide(a) - 3) @ (wide(b) - wide(zero))
    np.testing.assert_array_equal(y, np.clip(np.rint(sums * factor.astype(float)), -128, 127))


CONVS = {
    "3x3": dict(shape=(2, 16, 9, 10), w=(24, 16, 3, 3), pads=(1, 1)),
    "1x1": dict(shape=(1, 33, 6, 5), w=(17, 33, 1, 1)),
    "stride": dict(shape=(1, 8, 11, 12), w=(8, 8, 3, 2), pads=(2, 1), strides=(2, 3)),
    "dilated": dict(shape=(1, 8, 14, 13), w=(5, 8, 3, 3), pads=(2, 2), dilations=(2, 3)),
    "groups": dict(shape=(2, 12, 7, 7), w=(18, 4, 3, 3), pads=(1, 1), groups=3),
    "depthwise": dict(shape=(1, 40, 12, 9), w=(40, 1, 3, 3), pads=(1, 1), groups=40),
    "multiplier": dict(shape=(1, 6, 8, 8), w=(12, 1, 5, 5), pads=(2, 2), groups=6),
    "deep": dict(shape=(1, 700, 4, 4), w=(3, 700, 3, 3), pads=(1, 1)),
    "1-D": dict(shape=(2, 10, 50), w=(7, 10, 5), pads=(3,), strides=(2,)),
    "3-D": dict(shape=(1, 3, 5, 6, 4), w=(4, 3, 2, 3, 3), pads=(1, 0, 1)),
}


def convolved(x, w, strides, dilations, pads, groups) -> np.ndarray:
    """x less its zero point against w less its own, both wide; padding is 0."""
    rank = len(strides)
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in pads)])
    windows = np.lib.stride_tricks.sliding_window_view(
        x, [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations)], tuple(range(2, 2 + rank)))
    steps = (*(slice(None, None, s) for s in strides), *(slice(None, None, d) for d in dilations))
    windows = windows[(slice(None), slice(None), *steps)]
    each = w.shape[1]
    per_group = np.split(w, groups)
    axes = [1, *range(2 + rank, 2 + 2 * rank)]
    parts = [np.tensordot(windows[:, g * each:(g + 1) * each], part, (axes, range(1, w.ndim)))
             for g, part in enumerate(per_group)]
    return np.moveaxis(np.concatenate(parts, -1), -1, 1)


@pytest.mark.parametrize("last", [False, True], ids=["nchw", "nhwc"])
@pytest.mark.parametrize("types", TYPES, ids=lambda t: "".join(np.dtype(d).name[:-1] for d in t))
@pytest.mark.parametrize("case", CONVS)
def test_convolutions_are_exact(case, types, last):
    rng = np.random.default_rng(3)
    spec = dict(CONVS[case])
    x, w = full_range(types[0], spec["shape"], rng), full_range(types[1], spec["w"], rng)
    rank = x.ndim - 2
    strides, dilations = spec.get("strides", (1,) * rank), spec.get("dilations", (1,) * rank)
    pads, groups = spec.get("pads", (0,) * rank), spec.get("groups", 1)
    for zeros in ("none", "one", "each"):
        xz = None if zeros == "none" else full_range(types[0], (), rng)
        wz = zero_points(zeros, types[1], w.shape[0], rng)
        expected = convolved(
            wide(x) - (0 if xz is None else wide(xz)),
            wide(w) - (0 if wz is None else wide(wz).reshape(-1, *(1,) * (rank + 1))),
            strides, dilations, pads, groups)
        prim = Conv(strides, dilations, pads, pads, groups, channels_last=last,
                    accumulate=DType.INT32)
        given = np.ascontiguousarray(np.moveaxis(x, 1, -1)) if last else x
        shape = np.moveaxis(expected, 1, -1).shape if last else expected.shape
        (y,) = run_prim(prim, [given, w, xz, wz], [TensorType(DType.INT32, shape)], 2)
        np.testing.assert_array_equal(np.moveaxis(y, -1, 1) if last else y, expected, zeros)
