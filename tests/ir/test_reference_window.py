"""References of Conv, Pool and Resize against the operator text written out as loops."""

import itertools

import numpy as np
import pytest

from rlx.ir.evaluate import reference
from rlx.ir.prims import Conv, Pool, Resize
from rlx.ir.types import DType, TensorType
from tests.tolerance import tolerance


def value(prim, inputs, *shapes, dtype=DType.FLOAT64):
    types = [TensorType(d, s) for d, s in zip((dtype, DType.INT64), shapes)]
    return reference(prim, inputs, types)


def naive_conv(x, w, strides, dilations, begin, groups, out):
    """The sum over channels and window of the text, one output value at a time."""
    n, c, *size = x.shape
    y = np.zeros((n, w.shape[0], *out))
    per = w.shape[0] // groups
    for b, m, *o in np.ndindex(*y.shape):
        for k, *t in np.ndindex(*w.shape[1:]):
            at = [i * s + j * d - p for i, s, j, d, p in zip(o, strides, t, dilations, begin)]
            if all(0 <= a < e for a, e in zip(at, size)):
                channel = m // per * (c // groups) + k
                y[(b, m, *o)] += x[(b, channel, *at)] * w[(m, k, *t)]
    return y


CONVS = [((5,), (3,), (2,), (1,), (1,), (0,), 1),
         ((5, 6), (3, 2), (1, 2), (2, 1), (1, 0), (0, 2), 2),
         ((3, 4, 3), (2, 3, 2), (1, 1, 2), (1, 1, 1), (0, 1, 1), (1, 1, 0), 1)]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("size, kernel, strides, dilations, begin, end, groups", CONVS)
def test_convolution(size, kernel, strides, dilations, begin, end, groups, last):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 4, *size)), rng.normal(size=(6, 4 // groups, *kernel))
    out = tuple((d + b + e - (k - 1) * r - 1) // s + 1 for d, b, e, k, r, s in
                zip(size, begin, end, kernel, dilations, strides))
    expected = naive_conv(x, w, strides, dilations, begin, groups, out)
    if last:
        x, expected = np.moveaxis(x, 1, -1), np.moveaxis(expected, 1, -1)
    prim = Conv(strides, dilations, begin, end, groups, channels_last=last)
    (y,) = value(prim, [x, w], expected.shape)
    np.testing.assert_allclose(y, expected, **tolerance("exact order", "float64"))


@pytest.mark.parametrize("size, kernel, strides, dilations, begin, end, groups", CONVS)
def test_transposed_convolution_is_the_adjoint(size, kernel, strides, dilations, begin, end,
                                               groups):
    """<conv(x), y> == <x, transposed(y)> for the same weights."""
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(2, 4, *size)), rng.normal(size=(6, 4 // groups, *kernel))
    out = tuple((d + b + e - (k - 1) * r - 1) // s + 1 for d, b, e, k, r, s in
                zip(size, begin, end, kernel, dilations, strides))
    y = rng.normal(size=(2, 6, *out))
    forward = naive_conv(x, w, strides, dilations, begin, groups, out)
    prim = Conv(strides, dilations, begin, end, groups, transposed=True)
    (back,) = value(prim, [y, w], x.shape)
    np.testing.assert_allclose((forward * y).sum(), (x * back).sum(),
                               **tolerance("exact order", "float64"))


def test_integer_convolution_subtracts_zero_points_before_padding():
    x = np.array([[[7, 9]]], np.uint8)
    w = np.array([[[1, 2]], [[3, 4]]], np.uint8)
    prim = Conv((1,), (1,), (1,), (1,), accumulate=DType.INT32)
    zeros = [np.array(7, np.uint8), np.array([1, 2], np.uint8)]
    (y,) = value(prim, [x, w, *zeros], (1, 2, 3), dtype=DType.INT32)
    np.testing.assert_array_equal(y, [[[0, 2, 0], [0, 4, 2]]])


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("kind", ["max", "average", "lp"])
def test_pools(kind, include, last):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(2, 3, 5, 4))
    kernel, strides, dilations, begin, end = (2, 3), (2, 1), (2, 1), (1, 1), (0, 1)
    out = (2, 4)
    expected = np.zeros((2, 3, *out))
    for b, c, i, j in np.ndindex(*expected.shape):
        window, counted = [], 0
        for s, t in itertools.product(range(2), range(3)):
            at = i * 2 + s * 2 - 1, j + t - 1
            inside = 0 <= at[0] < 5 and 0 <= at[1] < 4
            window += [x[b, c, at[0], at[1]]] if inside else []
            counted += inside or (include and at[0] < 5 and at[1] < 5)
        results = {"max": max(window), "average": sum(window) / counted,
                   "lp": sum(abs(v) ** 3 for v in window) ** (1 / 3)}
        expected[b, c, i, j] = results[kind]
    if last:
        x, expected = np.moveaxis(x, 1, -1), np.moveaxis(expected, 1, -1)
    prim = Pool(kind, kernel, strides, dilations, begin, end, include, p=3, channels_last=last)
    y = value(prim, [x], expected.shape)[0]
    np.testing.assert_allclose(y, expected, **tolerance("exact order", "float64"))


@pytest.mark.parametrize("order, expected", [(0, [[[[5, 7], [13, 15]]], [[[21, 23], [29, 31]]]]),
                                             (1, [[[[5, 13], [7, 15]]], [[[21, 29], [23, 31]]]])])
def test_indices_of_maxima_count_through_the_whole_tensor(order, expected):
    x = np.arange(32.0).reshape(2, 1, 4, 4)
    prim = Pool("max", (2, 2), (2, 2), (1, 1), (0, 0), (0, 0), storage_order=order)
    y, indices = value(prim, [x], (2, 1, 2, 2), (2, 1, 2, 2))
    np.testing.assert_array_equal(y, x[:, :, 1::2, 1::2])
    np.testing.assert_array_equal(indices, expected)


def test_windows_of_integers_and_nan():
    x = np.array([[[-128, -5, 3]]], np.int8)
    prim = Pool("max", (2,), (1,), (1,), (0,), (0,))
    np.testing.assert_array_equal(value(prim, [x], (1, 1, 2), dtype=DType.INT8)[0], [[[-5, 3]]])
    (y, _) = value(prim, [np.array([[[np.nan, 1, 2]]])], (1, 1, 2))
    np.testing.assert_array_equal(y, [[[np.nan, 2]]])


def test_linear_resize_reproduces_a_line():
    """Half-pixel linear interpolation is exact on a ramp away from the edges."""
    x = np.arange(8.0)
    prim = Resize("linear", (0,), (2.0,))
    (y,) = value(prim, [x], (16,))
    places = (np.arange(16) + 0.5) / 2 - 0.5
    np.testing.assert_allclose(y, np.clip(places, 0, 7), **tolerance("exact order", "float64"))


@pytest.mark.parametrize("mode, expected", [("round_prefer_floor", [0, 0, 1, 1, 2]),
                                            ("round_prefer_ceil", [0, 1, 1, 2, 2]),
                                            ("floor", [0, 0, 1, 1, 2]), ("ceil", [0, 1, 1, 2, 2])])
def test_nearest_modes(mode, expected):
    """The places are 0, 0.5, 1, 1.5 and 2."""
    prim = Resize("nearest", (0,), (2.0,), "asymmetric", mode)
    (y,) = value(prim, [np.arange(4.0)], (5,))
    np.testing.assert_array_equal(y, expected)
