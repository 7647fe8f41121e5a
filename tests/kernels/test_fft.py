"""Fourier transforms of every kind of length against NumPy in float64."""

import numpy as np
import pytest

from rlx.errors import InputError
from rlx.ir.prims import Fft
from rlx.ir.types import TensorType, dtype_of
from tests.kernels.run_prim import run_prim
from tests.tolerance import tolerance

# Powers, mixed radices, the plain radices 7 to 13, large primes and their multiples.
LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 25, 34, 49, 60, 64, 77, 100, 121,
           128, 169, 243, 480, 512, 1001, 1009, 2018, 4096, 5040, 7919]


def unit_sum(shape, dtype, seed=0):
    """Random numbers whose sizes add up to 1 along axis 1."""
    x = np.random.default_rng(seed).standard_normal(shape)
    return (x / np.abs(x).sum(axis=1, keepdims=True)).astype(dtype)


def run(x, n, axis=1, inverse=False, onesided=False, threads=1):
    points, parts = n, 2
    if onesided:
        points, parts = (n, 1) if inverse else (n // 2 + 1, 2)
    shape = (*x.shape[:axis], points, *x.shape[axis + 1:-1], parts)
    prim = Fft(axis, n, inverse, onesided)
    y, = run_prim(prim, [x], [TensorType(dtype_of(x.dtype), shape)], threads=threads)
    return y[..., 0] + 1j * y[..., 1] if parts == 2 else y[..., 0]


def parts(z, dtype):
    return np.stack([z.real, z.imag], -1).astype(dtype)


def assert_close(found, expected, dtype, size=1.0):
    np.testing.assert_allclose(found / size, expected / size, **tolerance("sum", dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n, dtype):
    real = unit_sum((3, n, 1), dtype)
    z = real[..., 0].astype(np.float64)
    assert_close(run(real, n), np.fft.fft(z), dtype)
    assert_close(run(real, n, onesided=True), np.fft.rfft(z), dtype)
    assert_close(run(real, n, inverse=True) * n, np.fft.ifft(z) * n, dtype)
    both = unit_sum((3, n, 2), dtype, 1)
    z = both[..., 0].astype(np.float64) + 1j * both[..., 1]
    assert_close(run(both, n), np.fft.fft(z), dtype, 2)
    assert_close(run(both, n, inverse=True) * n, np.fft.ifft(z) * n, dtype, 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", LENGTHS)
def test_one_sided_inverse(n, dtype):
    """A real signal from half a spectrum, whose ends count as real."""
    both = unit_sum((3, n // 2 + 1, 2), dtype, 2)
    z = both[..., 0].astype(np.float64) + 1j * both[..., 1]
    found = run(both, n, inverse=True, onesided=True)
    assert_close(found * n, np.fft.irfft(z, n) * n, dtype, 4)


@pytest.mark.parametrize("n", [5, 24, 60, 97])
@pytest.mark.parametrize("given", [1, 17, 60, 200])
def test_cut_and_padded(n, given):
    x = unit_sum((2, given, 1), "float64")
    assert_close(run(x, n), np.fft.fft(x[..., 0], n), "float64")
    assert_close(run(x, n, onesided=True), np.fft.rfft(x[..., 0], n), "float64")
    spectrum = parts(np.fft.fft(x[..., 0]), "float64")
    z = spectrum[..., 0] + 1j * spectrum[..., 1]
    found = run(spectrum, n, inverse=True, onesided=True)
    assert_close(found, np.fft.irfft(z, n), "float64", 4)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_axes_and_threads(axis, threads):
    """Lines that lie across the tensor, more and fewer of them than go together."""
    x = np.random.default_rng(3).standard_normal((6, 40, 7, 2))
    x /= np.abs(x).sum(axis, keepdims=True)
    z = x[..., 0] + 1j * x[..., 1]
    found = run(x, x.shape[axis], axis, threads=threads)
    assert_close(found, np.fft.fft(z, axis=axis), "float64", 2)


def test_many_lines_repeat_bit_for_bit():
    x = unit_sum((101, 48, 1), "float32")
    one = run(x, 48, onesided=True)
    np.testing.assert_array_equal(one, run(x, 48, onesided=True, threads=4))


def test_wrong_shapes():
    x = unit_sum((3, 8, 1), "float32")
    with pytest.raises(InputError, match="does not fit"):
        run_prim(Fft(1, 8), [x], [TensorType(dtype_of(x.dtype), (3, 7, 2))])
