"""DFT, STFT and the mel weights beside the official cases, against NumPy in float64."""

import numpy as np
import pytest
from onnx import TensorProto

from rlx.errors import InputError, ModelError
from tests.onnx.test_vision import run, session
from tests.tolerance import tolerance


def numbers(x):
    """Complex numbers of an array whose last axis holds one or two parts."""
    x = x.astype(np.float64)
    return x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0]


def close(y, expected, dtype="float32"):
    """Relative to the largest value, as the errors of a transform are."""
    if np.iscomplexobj(expected):
        expected = np.stack([expected.real, expected.imag], -1)
    size = np.abs(expected).max()
    assert y.shape == expected.shape
    np.testing.assert_allclose(y.astype(np.float64) / size, expected / size,
                               **tolerance("sum", dtype))


@pytest.fixture
def normal():
    rng = np.random.default_rng(0)
    return lambda *shape: rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1, 2, -2, -3])
@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("parts", [1, 2])
def test_dft_along_every_axis(normal, axis, inverse, parts):
    x = normal(5, 6, 7, parts)
    at = axis if axis >= 0 else axis + 4
    expected = (np.fft.ifft if inverse else np.fft.fft)(numbers(x), axis=at)
    y = run("DFT", 17, inputs={"x": x}, dynamic=("x",), axis=axis, inverse=inverse)
    close(y, expected)
    inputs = {"x": x, "n": np.array(x.shape[at]), "axis": np.array(axis)}
    close(run("DFT", 20, inputs=inputs, inverse=inverse), expected)


@pytest.mark.parametrize("n", [4, 9, 16, 1009])
def test_lengths_known_when_run(normal, n):
    x = normal(3, 11, 1)
    inputs = {"x": x, "n": np.array(n)}
    z = numbers(x)
    close(run("DFT", 20, inputs=inputs, dynamic=("x",)), np.fft.fft(z, n))
    close(run("DFT", 20, inputs=inputs, dynamic=("x",), onesided=1), np.fft.rfft(z, n))
    both = normal(3, 11, 2)
    close(run("DFT", 20, inputs=inputs | {"x": both}, onesided=1, inverse=1)[..., 0],
          np.fft.irfft(numbers(both), n))


def test_defaults(normal):
    """Opset 17 transforms axis 1, opset 20 the last; half a spectrum gives an even length."""
    x = normal(2, 3, 5, 2)
    close(run("DFT", 17, inputs={"x": x}), np.fft.fft(numbers(x), axis=1))
    close(run("DFT", 20, inputs={"x": x}), np.fft.fft(numbers(x), axis=2))
    y = run("DFT", 20, inputs={"x": x}, onesided=1, inverse=1)
    assert y.shape == (2, 3, 8, 1)
    close(y[..., 0], np.fft.irfft(numbers(x), axis=2))


@pytest.mark.parametrize("dtype, rounded", [(np.float64, "float64"), (np.float16, "float16")])
def test_types(normal, dtype, rounded):
    x = normal(2, 30, 2).astype(dtype)
    close(run("DFT", 20, inputs={"x": x}), np.fft.fft(numbers(x)), rounded)


def test_dft_refusals(normal):
    x = normal(2, 8, 2)
    with pytest.raises(ModelError, match="real signal"):
        run("DFT", 20, inputs={"x": x}, onesided=1)
    with pytest.raises(ModelError, match="last axis"):
        run("DFT", 17, inputs={"x": x}, axis=2)
    with pytest.raises(ModelError, match="real part or both"):
        run("DFT", 20, inputs={"x": normal(2, 8, 3)})
    loaded = session("DFT", {"x": x, "n": np.array(4)}, 20)
    for n in (0, -3):
        with pytest.raises(InputError, match="not positive"):
            loaded.run({"x": x, "n": np.array(n)})


def frames(x, size, step):
    return np.stack([x[:, s:s + size] for s in range(0, x.shape[1] - size + 1, step)], 1)


@pytest.mark.parametrize("size, step", [(16, 4), (20, 7), (47, 1), (64, 64), (100, 30)])
@pytest.mark.parametrize("parts", [1, 2])
def test_stft(normal, size, step, parts):
    x, window = normal(2, 200, parts), normal(size)
    pieces = frames(numbers(x), size, step) * window
    inputs = {"x": x, "step": np.array(step), "w": window}
    expected = np.fft.rfft(pieces) if parts == 1 else np.fft.fft(pieces)
    close(run("STFT", 17, inputs=inputs, dynamic=("x", "w")), expected)
    close(run("STFT", 17, inputs=inputs, onesided=0), np.fft.fft(pieces))
    inputs["n"] = np.array(size)
    close(run("STFT", 17, inputs=inputs), expected)


def test_stft_refusals(normal):
    inputs = {"x": normal(1, 50, 1), "step": np.array(5), "w": normal(20)}
    loaded = session("STFT", inputs, 17, dynamic=("x", "w"))
    with pytest.raises(InputError, match="frame_step"):
        loaded.run(inputs | {"step": np.array(0)})
    with pytest.raises(InputError, match="does not fit"):
        loaded.run(inputs | {"w": normal(60)})
    with pytest.raises(InputError, match="window"):
        run("STFT", 17, inputs=inputs | {"n": np.array(21)})


def mel_weights(bins, length, rate, low, high):
    """By the definition of the mel scale and of triangles between its points."""
    mel = lambda f: 2595 * np.log10(1 + f / 700)  # noqa: E731
    points = mel(low) + np.arange(bins + 2) * (mel(high) - mel(low)) / (bins + 2)
    place = np.floor((length + 1) * 700 * (10 ** (points / 2595) - 1) / rate).astype(int)
    y = np.zeros((length // 2 + 1, bins))
    for i in range(bins):
        left, centre, right = place[i:i + 3]
        for j in range(left, centre):
            y[j, i] = (j - left) / (centre - left)
        for j in range(centre, right):
            y[j, i] = (right - j) / (right - centre)
        y[centre, i] = 1
    return y


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32])
def test_mel_weights(dtype):
    for bins, length, rate, low, high in ((8, 16, 8192, 0.0, 4096.0),
                                          (40, 400, 16000, 20.0, 7600.0),
                                          (3, 9, 100, 1.0, 50.0)):
        inputs = {"b": np.array(bins), "n": np.array(length), "r": np.array(rate),
                  "l": np.array(low, np.float32), "h": np.array(high, np.float32)}
        y = run("MelWeightMatrix", 17, inputs=inputs, output=dtype, output_datatype=dtype)
        expected = mel_weights(bins, length, rate, low, high)
        if dtype == TensorProto.INT32:
            np.testing.assert_array_equal(y, expected.astype(np.int32))
        else:
            np.testing.assert_allclose(y, expected, **tolerance("sum", "float32"))
