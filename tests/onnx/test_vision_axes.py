"""DeformConv and MaxUnpool along other numbers of axes than two, in NumPy."""

import itertools

import numpy as np
import pytest

from tests.onnx.test_vision import close, run


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def sampled(image, place):
    """Between the 2^n neighbours of a place; 0 outside of the image."""
    low, total = np.floor(place).astype(int), 0.0
    for corner in itertools.product((0, 1), repeat=len(place)):
        at = low + corner
        if (at >= 0).all() and (at < image.shape).all():
            total += image[tuple(at)] * np.prod(1 - np.abs(place - at))
    return total


@pytest.mark.parametrize("spatial, kernel, groups", [
    ((7,), (3,), (1, 1)), ((4, 5), (2, 3), (2, 2)), ((3, 4, 3), (2, 1, 2), (1, 2))])
def test_deform_conv_along_one_to_three_axes(rng, spatial, kernel, groups):
    (group, offset_group), rank = groups, len(spatial)
    strides, dilations = (1, 2, 1)[:rank], (2, 1, 1)[:rank]
    pads = (1, 0, 1)[:rank] + (0, 1, 1)[:rank]
    out = tuple((d + p + q - (r * (k - 1) + 1)) // s + 1 for d, p, q, r, k, s in zip(
        spatial, pads, pads[rank:], dilations, kernel, strides))
    taps = list(itertools.product(*map(range, kernel)))
    x = rng.normal(size=(2, 4, *spatial)).astype(np.float32)
    w = rng.normal(size=(6, 4 // group, *kernel)).astype(np.float32)
    offset = rng.uniform(-1.5, 1.5, (2, offset_group * len(taps) * rank, *out)).astype(np.float32)
    mask = rng.random((2, offset_group * len(taps), *out)).astype(np.float32)
    bias = rng.normal(size=6).astype(np.float32)
    columns = np.zeros((2, 4, len(taps), *out))
    moves = offset.reshape(2, offset_group, len(taps), rank, *out)
    kept = mask.reshape(2, offset_group, len(taps), *out)
    for n, c, t in itertools.product(range(2), range(4), range(len(taps))):
        g = c // (4 // offset_group)
        for at in np.ndindex(out):
            place = [a * s - p + k * r for a, s, p, k, r in zip(at, strides, pads, taps[t],
                                                                dilations)]
            moved = np.array(place) + moves[(n, g, t, slice(None), *at)]
            columns[(n, c, t, *at)] = sampled(x[n, c], moved) * kept[(n, g, t, *at)]
    parts = [np.einsum("mct,nct...->nm...", v.reshape(*v.shape[:2], -1), u)
             for v, u in zip(np.split(w.astype(np.float64), group), np.split(columns, group, 1))]
    expected = np.concatenate(parts, 1) + bias.reshape(6, *(1,) * rank)
    inputs = {"x": x, "w": w, "offset": offset, "bias": bias, "mask": mask}
    close(run("DeformConv", 19, inputs=inputs, group=group, offset_group=offset_group, pads=pads,
              strides=strides, dilations=dilations), expected)


@pytest.mark.parametrize("spatial, kernel", [((5,), (2,)), ((2, 3, 2), (2, 1, 3)),
                                             ((2, 3, 1, 2), (2, 1, 3, 2))])
def test_max_unpool_along_any_number_of_axes(rng, spatial, kernel):
    whole = tuple(d * k for d, k in zip(spatial, kernel))
    x = rng.normal(size=(2, 3, *spatial)).astype(np.float32)
    expected, places = np.zeros((2, 3, *whole), np.float32), np.zeros(x.shape, np.int64)
    for at in np.ndindex(x.shape):
        inside = tuple(a * k + rng.integers(k) for a, k in zip(at[2:], kernel))
        places[at] = np.ravel_multi_index((*at[:2], *inside), expected.shape)
        expected.reshape(-1)[places[at]] = x[at]
    inputs = {"x": x, "places": places}
    np.testing.assert_array_equal(
        run("MaxUnpool", 11, inputs=inputs, kernel_shape=kernel, strides=kernel), expected)
    wider = np.array([2, 3, *(d + 1 for d in whole)])
    padded = np.pad(expected, [(0, 0), (0, 0), *[(0, 1)] * len(spatial)])
    np.testing.assert_array_equal(
        run("MaxUnpool", 11, inputs=inputs | {"shape": wider}, kernel_shape=kernel,
            strides=kernel), padded)
