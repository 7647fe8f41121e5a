"""The bodies of Map on the CPU against their float64 references, in every element type."""

import ml_dtypes
import numpy as np
import pytest

from rlx.errors import InputError
from rlx.ir.prims import Map
from rlx.ir.reference.mapping import BODY_REFERENCES
from rlx.ir.types import DType, TensorType, dtype_of
from tests.kernels.run_prim import run_prim
from tests.tolerance import tolerance

REALS = [DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.BFLOAT16]


def check(prim, inputs, outputs, threads=2, count=1):
    """The first `count` outputs match the reference; returns them."""
    inputs = [None if x is None else np.asarray(x) for x in inputs]
    wanted = BODY_REFERENCES[prim.body](prim, inputs, outputs, lambda n: n)
    found = run_prim(prim, inputs, outputs, threads=threads)
    for y, expected, type in list(zip(found, wanted, outputs))[:count]:
        assert np.any(np.asarray(expected) != 0), "a test of zeros proves nothing"
        if type.dtype.is_float:
            assert np.isfinite(y.astype(np.float64)).all()
            np.testing.assert_allclose(y.astype(np.float64), expected.astype(np.float64),
                                       **tolerance("norm", type.dtype.name.lower()))
        else:
            np.testing.assert_array_equal(y, expected)
    return found


def normal(rng, shape, dtype=DType.FLOAT32, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(dtype.numpy)


def of(x, shape):
    return TensorType(dtype_of(x.dtype), tuple(shape))


@pytest.mark.parametrize("dtype", REALS, ids=lambda d: d.name)
@pytest.mark.parametrize("points", [2, 4])
@pytest.mark.parametrize("size", [(9,), (7, 11), (4, 5, 6), (1, 1)], ids=str)
def test_grid_sample(dtype, points, size):
    rng = np.random.default_rng(len(size))
    x = normal(rng, (2, 19, *size), dtype, 0.3)
    out = (5, 4, 3)[:len(size)]
    # Coarse steps: coordinates are exact in every type, as they decide which points are read.
    grid = (rng.integers(-48, 49, (2, *out, len(size))) / 16).astype(dtype.numpy)
    for padding in (0, 1, 2):
        for align in (0, 1):
            prim = Map("grid_sample", 4 * int(np.prod(out)), (points, padding, align))
            found, = run_prim(prim, [x, grid], [of(x, (2, 19, *out))], threads=2)
            expected = BODY_REFERENCES["grid_sample"](
                prim, [x.astype(np.float64), grid.astype(np.float64)],
                [TensorType(DType.FLOAT64, (2, 19, *out))], lambda n: n)[0]
            rounded = {DType.FLOAT32: "float32", DType.FLOAT64: "float64"}.get(dtype, "bfloat16")
            np.testing.assert_allclose(found.astype(np.float64), expected,
                                       **tolerance("norm", rounded))


@pytest.mark.parametrize("dtype", [DType.BOOL, DType.UINT8, DType.INT64, DType.FLOAT16,
                                   DType.FLOAT32, DType.COMPLEX128], ids=lambda d: d.name)
def test_grid_nearest(dtype):
    rng = np.random.default_rng(2)
    x = rng.integers(0, 100, (2, 19, 5, 6)).astype(dtype.numpy)
    grid = rng.uniform(-2, 2, (2, 7, 4, 2)).astype(np.float32)
    for padding in (0, 1, 2):
        for align in (0, 1):
            check(Map("grid_nearest", 112, (padding, align)), [x, grid], [of(x, (2, 19, 7, 4))])


def test_grid_without_a_place():
    """NaN and endless coordinates read nothing outside the image."""
    x = np.arange(1, 13, dtype=np.float32).reshape(1, 1, 3, 4)
    grid = np.array([np.nan, np.inf, -np.inf, 1e30], np.float32)
    grid = np.stack(np.meshgrid(grid, grid), -1)[None]
    for padding in (0, 1, 2):
        y, = run_prim(Map("grid_nearest", 16, (padding, 0)), [x, grid], [of(x, (1, 1, 4, 4))])
        assert np.isin(y, [0.0] if padding == 0 else x).all()
        run_prim(Map("grid_sample", 16, (2, padding, 0)), [x, grid], [of(x, (1, 1, 4, 4))])
        run_prim(Map("grid_sample", 16, (4, padding, 0)), [x, grid], [of(x, (1, 1, 4, 4))])


@pytest.mark.parametrize("dtype", REALS[:2], ids=lambda d: d.name)
@pytest.mark.parametrize("channels", [1, 8, 19])
@pytest.mark.parametrize("samples", [0, 1, 3])
@pytest.mark.parametrize("maximum", [0, 1])
def test_roi_align(dtype, channels, samples, maximum):
    rng = np.random.default_rng(channels)
    x = normal(rng, (2, channels, 12, 10), dtype)
    low = rng.uniform(-4, 14, (6, 2))
    rois = np.concatenate([low, low + rng.uniform(0, 15, (6, 2))], 1).astype(dtype.numpy)
    images = rng.integers(0, 2, 6)
    blocks = (channels + 7) // 8
    for half in (0, 1):
        prim = Map("roi_align", 6 * blocks * 12, (samples, maximum, half), (0.75,))
        check(prim, [x, rois, images], [of(x, (6, channels, 4, 3))])


@pytest.mark.parametrize("dtype", REALS[2:], ids=lambda d: d.name)
def test_roi_align_of_small_floats(dtype):
    rng = np.random.default_rng(3)
    x = normal(rng, (1, 4, 8, 8), dtype)
    rois = np.array([[1, 1, 6, 5], [0, 2, 3, 7]], dtype.numpy)
    prim = Map("roi_align", 2 * 9, (2, 0, 1), (1.0,))
    check(prim, [x, rois, np.zeros(2, np.int64)], [of(x, (2, 4, 3, 3))])


def test_regions_that_are_wrong():
    x = np.ones((2, 1, 4, 4), np.float32)
    rois = np.array([[0, 0, 3, 3]], np.float32)
    prim = Map("roi_align", 4, (0, 0, 1), (1.0,))
    for index in (2, -1, 2**40):
        with pytest.raises(InputError, match="batch index is out of range"):
            run_prim(prim, [x, rois, np.array([index])], [of(x, (1, 1, 2, 2))])
    # A region of any size ends, and what is outside counts as zero.
    for box in ([0, 0, 1e9, 1e9], [-1e30, 0, 1e30, 1], [np.nan] * 4, [np.inf, 0, -np.inf, 1]):
        rois[0] = box
        y, = run_prim(prim, [x, rois, np.array([1])], [of(x, (1, 1, 2, 2))])
        assert y.shape == (1, 1, 2, 2)
    pool = Map("max_roi_pool", 4, (), (1.0,))
    for entry in ([0, -1e30, 0, 1e30, np.nan], [0, 1, 1, 0, 0]):
        run_prim(pool, [x, np.array([entry], np.float32)], [of(x, (1, 1, 2, 2))])
    with pytest.raises(InputError, match="batch index is out of range"):
        run_prim(pool, [x, np.array([[2, 0, 0, 1, 1]], np.float32)], [of(x, (1, 1, 2, 2))])


@pytest.mark.parametrize("dtype", REALS, ids=lambda d: d.name)
def test_max_roi_pool(dtype):
    rng = np.random.default_rng(4)
    x = normal(rng, (2, 3, 9, 9), dtype)
    rois = np.array([[0, 1, 2, 7, 6], [1, 0, 0, 8, 8], [1, 5, 5, 4, 4], [0, 7, 7, 12, 15]],
                    dtype.numpy)
    check(Map("max_roi_pool", 4 * 3 * 6, (), (0.8,)), [x, rois], [of(x, (4, 3, 2, 3))])


@pytest.mark.parametrize("nearest", [0, 1])
@pytest.mark.parametrize("size", [(1, 1), (3, 5)], ids=str)
def test_crop_and_resize(nearest, size):
    rng = np.random.default_rng(5)
    x = normal(rng, (2, 3, 9, 8))
    rois = rng.uniform(-0.2, 1.2, (5, 4)).astype(np.float32)
    prim = Map("crop_and_resize", 5 * size[0] * size[1], (nearest,), (0.5,))
    check(prim, [x, rois, rng.integers(0, 2, 5).astype(np.int32)], [of(x, (5, 3, *size))])


@pytest.mark.parametrize("dtype", [*REALS, DType.INT8, DType.UINT16, DType.INT64],
                         ids=lambda d: d.name)
def test_col2im(dtype):
    rng = np.random.default_rng(6)
    # block, count, stride, dilation, pad of each axis; the image follows.
    for axes, image in (([(3, 4, 2, 1, 1)], [7]), ([(2, 3, 1, 2, 0), (3, 2, 2, 1, 1)], [5, 4]),
                        ([(1, 2, 1, 1, 0), (2, 2, 2, 1, 0), (2, 3, 1, 1, 1)], [2, 4, 2]),
                        ([(3, 40, 1, 1, 1)], [40]), ([(50, 6, 7, 1, 3)], [79]),
                        ([(9, 20, 5, 3, 2)], [115])):
        block, count = (int(np.prod([a[k] for a in axes])) for k in (0, 1))
        x = rng.integers(-9 if not dtype.name.startswith("U") else 0, 9,
                         (2, 3 * block, count)).astype(dtype.numpy)
        items = 6 * int(np.prod(image[:-1])) * ((image[-1] + 31) // 32)
        prim = Map("col2im", items, sum(axes, ()))
        check(prim, [x], [of(x, (2, 3, *image))])


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.FLOAT32, DType.FLOAT64],
                         ids=lambda d: d.name)
def test_frames(dtype):
    x = normal(np.random.default_rng(8), (2, 300, 2), dtype)
    for count, size, step in ((5, 200, 20), (1, 300, 7), (31, 33, 8), (300, 1, 1)):
        runs = (2 * size + 63) // 64
        check(Map("frames", 2 * count * runs, (step,)), [x], [of(x, (2, count, size, 2))])


@pytest.mark.parametrize("dtype", REALS, ids=lambda d: d.name)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("masked", [False, True])
def test_deform_columns(dtype, groups, masked):
    rng = np.random.default_rng(7)
    # Sizes, then kernel, stride, dilation and pad of each axis, then the places of the output.
    for size, axes, out in (((6, 7), [(3, 1, 1, 1), (2, 2, 1, 0)], (6, 3)),
                            ((9,), [(3, 2, 2, 2)], (5,)),
                            ((3, 4, 5), [(1, 1, 1, 0), (2, 1, 1, 1), (2, 1, 1, 0)], (3, 5, 4))):
        taps = int(np.prod([a[0] for a in axes]))
        x = normal(rng, (2, 4, *size), dtype)
        offset = (rng.integers(-24, 25, (2, groups * taps * len(size), *out)) / 16).astype(
            dtype.numpy)
        mask = normal(rng, (2, groups * taps, *out), dtype, 0.3) if masked else None
        items = 2 * groups * taps * int(np.prod(out))
        prim = Map("deform_columns", items, (groups, *sum(axes, ())))
        check(prim, [x, offset, mask], [of(x, (2, 4, taps, *out))])


@pytest.mark.parametrize("dtype", [d for d in REALS if d is not DType.FLOAT64],
                         ids=lambda d: d.name)
@pytest.mark.parametrize("rule", ["linear", "gated", "gated rows", "delta", "gated delta"])
def test_linear_attention(dtype, rule):
    rng = np.random.default_rng(9)
    heads, queries, depth, width, length = 2, 4, 6, 19, 5
    q, k, v = (normal(rng, (2, length, n), dtype, 0.3)
               for n in (queries * depth, heads * depth, heads * width))
    past = normal(rng, (2, heads, depth, width), scale=0.3) if "gated" in rule else None
    decay = beta = None
    if "gated" in rule:
        rows = heads * (depth if "rows" in rule else 1)
        decay = (-rng.random((2, length, rows))).astype(dtype.numpy)
    if "delta" in rule:
        beta = rng.random((2, length, 1 if rule == "delta" else heads)).astype(dtype.numpy)
    prim = Map("linear_attention", 2 * heads * 3, (queries, heads), (0.7,))
    state = TensorType(DType.FLOAT32, (2, heads, depth, width))
    check(prim, [q, k, v, past, decay, beta], [of(q, (2, length, queries * width)), state],
          count=2)


@pytest.mark.parametrize("dtype", REALS, ids=lambda d: d.name)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_det_and_inverse(dtype, n):
    rng = np.random.default_rng(n)
    x = (rng.standard_normal((3, 2, n, n)) / n + np.eye(n)[::-1]).astype(dtype.numpy)
    check(Map("det", 6), [x], [of(x, (3, 2)), TensorType(DType.FLOAT64, x.shape)])
    room = TensorType(DType.FLOAT64, (3, 2, n, 2 * n))
    found = check(Map("inverse", 6), [x], [of(x, x.shape), room])[0]
    if dtype is DType.FLOAT64:
        np.testing.assert_allclose(x @ found, np.broadcast_to(np.eye(n), x.shape),
                                   **tolerance("exact order", "float64"))


def test_a_singular_matrix():
    x = np.array([[[1, 2], [2, 4]], [[0, 0], [0, 0]], [[1, 2], [3, 4]]], np.float32)
    y = run_prim(Map("det", 3), [x], [of(x, (3,)), TensorType(DType.FLOAT64, x.shape)])[0]
    np.testing.assert_allclose(y, [0, 0, -2], **tolerance("norm", "float32"))


@pytest.mark.parametrize("source, target", [
    (np.float32, np.int32), (np.float16, np.uint16), (ml_dtypes.bfloat16, np.int16),
    (np.float64, np.complex64), (np.uint8, ml_dtypes.float8_e4m3fn), (np.complex128, None)],
    ids=lambda t: getattr(t, "__name__", "same"))
def test_bit_cast(source, target):
    x = np.arange(1, 5001).astype(source)
    target = dtype_of(target or source)
    y, = run_prim(Map("bit_cast", x.size), [x], [TensorType(target, x.shape)], threads=3)
    assert y.tobytes() == x.tobytes()
