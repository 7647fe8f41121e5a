"""Sizes that kernels take other ways for: large primes, many updates, more than 2^31 elements."""

import numpy as np
import pytest

from rlx.ir.prims import Conv, Fft, Scatter
from rlx.ir.types import DType
from tests.emu.case import F16, F32, I32, emulated, typed
from tests.kernels.run_prim import run_prim
from tests.tolerance import tolerance


@pytest.fixture(scope="module", params=["emu", "emu:descending"])
def device(request):
    return emulated(request.param)


@pytest.mark.parametrize("n", [65537, 2 * 40009])
def test_a_transform_of_a_length_with_a_large_prime(n, device):
    x = np.random.default_rng(n).standard_normal((1, n, 2))
    x /= np.abs(x).sum(1, keepdims=True)
    found, = run_prim(Fft(1, n), [x.astype(np.float32)], [typed(F32, 1, n, 2)], device=device)
    expected = np.fft.fft(x[..., 0] + 1j * x[..., 1])
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], expected,
                               **tolerance("sum", "float32"))


def added(data, at, updates):
    np.add.at(data, at, updates)
    return data


@pytest.mark.parametrize("rows, targets, inner", [(512, 5, 1), (2000, 700, 3), (513, 1, 2)])
def test_many_rows_of_updates(rows, targets, inner, device):
    rng = np.random.default_rng(rows)
    data = rng.integers(-9, 9, (targets, inner)).astype(np.int32)
    at, updates = rng.integers(-targets, targets, (rows, 1)), rng.integers(-9, 9, (rows, inner))
    got, = run_prim(Scatter("nd", reduction="add"), [data, at, updates.astype(np.int32)],
                    [typed(I32, targets, inner)], device=device)
    np.testing.assert_array_equal(got, added(data.copy(), at[:, 0], updates))


def test_many_updates_are_taken_in_order(device):
    """A product of floats shows the order: each target's updates, first to last."""
    rng = np.random.default_rng(1)
    at = rng.integers(0, 7, 900)
    updates = rng.uniform(0.5, 1.5, 900).astype(np.float32)
    expected = np.ones(7, np.float32)
    for k, u in zip(at, updates):
        expected[k] *= u
    for shape in ((900,), (900, 1)):
        kind = "elements" if len(shape) == 1 else "nd"
        given = [np.ones(7, np.float32), at.reshape(shape), updates]
        got, = run_prim(Scatter(kind, 0, "mul"), given, [typed(F32, 7)], device=device)
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_a_bad_index_among_many_is_reported(reduction, device):
    at = np.arange(600)
    at[599] = 600
    with pytest.raises(Exception, match="outside its axis"):
        run_prim(Scatter("elements", 0, reduction), [np.zeros(600, np.float32), at,
                                                     np.ones(600, np.float32)],
                 [typed(F32, 600)], device=device)


@pytest.mark.parametrize("shape, axis", [((3000,), 0), ((3, 700), 1), ((600, 4), 0)])
def test_long_lines_without_a_reduction(shape, axis, device):
    rng = np.random.default_rng(2)
    at = np.argsort(rng.random(shape), axis)  # no target twice
    updates = rng.standard_normal(shape).astype(np.float32)
    got, = run_prim(Scatter("elements", axis), [np.zeros(shape, np.float32), at, updates],
                    [typed(F32, *shape)], device=device)
    expected = np.zeros(shape, np.float32)
    np.put_along_axis(expected, at, updates, axis)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype, channels, filters, rung", [
    (np.uint8, 1, 1, "direct"), (np.uint8, 1, 9, "implicit product"),
    (np.float16, 8, 9, "tensor core convolution")])
def test_a_line_of_more_elements_than_an_int_counts(dtype, channels, filters, rung, device):
    """4 GB of addresses: memory that is not read stays unmapped."""
    stride = (1 << 30) // channels
    x = np.zeros((1, channels, 2 * stride + 3), dtype)
    w = (np.arange(filters * channels * 3).reshape(filters, channels, 3) % 3 + 1).astype(dtype)
    at = np.arange(3) * stride
    for k in range(3):
        x[..., at + k] = np.arange(3) + k + 1
    expected = np.stack([np.einsum("ck,mck->m", x[0, :, a:a + 3].astype(float), w.astype(float))
                         for a in at], 1)[None]
    out = F16 if dtype is np.float16 else I32
    found, = run_prim(Conv((stride,), (1,), (0,), (0,), accumulate=F32 if out is F16 else I32),
                      [x, w, None, None], [typed(out, 1, filters, 3)], device=device, rung=rung)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("reduction", ["add", "mul"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_many_lines_of_updates_are_taken_in_order(dtype, reduction, device):
    """Rounding after each update shows the order, in lines side by side and behind each other."""
    rng = np.random.default_rng(4)
    data = rng.uniform(0.5, 1.5, (2, 5, 3)).astype(dtype)
    at = rng.integers(-5, 5, (2, 200, 3)).astype(np.int32)
    updates = rng.uniform(0.9, 1.1, at.shape).astype(dtype)
    expected = data.copy()
    combine = np.add if reduction == "add" else np.multiply
    for a, k, c in np.ndindex(at.shape):
        expected[a, at[a, k, c], c] = combine(expected[a, at[a, k, c], c], updates[a, k, c])
    for axis, turn in ((1, (0, 1, 2)), (0, (1, 0, 2)), (2, (0, 2, 1))):
        given = [np.ascontiguousarray(x.transpose(turn)) for x in (data, at, updates)]
        out = typed(DType[np.dtype(dtype).name.upper()], *given[0].shape)
        got, = run_prim(Scatter("elements", axis, reduction), given, [out], device=device)
        np.testing.assert_array_equal(got, expected.transpose(turn))


@pytest.mark.parametrize("lines", [3, 1025])
def test_a_bad_index_in_one_of_many_lines_is_reported(lines, device):
    at = np.zeros((70, lines), np.int64)
    at[69, lines - 1] = -5
    with pytest.raises(Exception, match="outside its axis"):
        run_prim(Scatter("elements", 0, "add"), [np.zeros((4, lines), np.float32), at,
                                                 np.ones((70, lines), np.float32)],
                 [typed(F32, 4, lines)], device=device)
