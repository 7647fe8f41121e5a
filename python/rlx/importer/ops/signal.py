"""Signals: DFT, STFT and the mel weights."""

from __future__ import annotations

import math

from rlx.errors import ModelError
from rlx.importer.registry import op
from rlx.ir.build import DType, Value, apply

_WIDE = (DType.FLOAT32, DType.FLOAT64)


@op("DFT", since=20)
def dft(b, x, dft_length=None, axis=None, *, inverse: int = 0, onesided: int = 0):
    at = -2 if axis is None else b.structural_one(axis, "the axis of a DFT")
    return _dft(b, x, dft_length, at, bool(inverse), bool(onesided))


@op("DFT", since=17)
def dft_17(b, x, dft_length=None, *, axis: int = 1, inverse: int = 0, onesided: int = 0):
    return _dft(b, x, dft_length, axis, bool(inverse), bool(onesided))


def _dft(b, x: Value, dft_length, axis: int, inverse: bool, onesided: bool) -> Value:
    if x.rank < 2:
        raise ModelError("a DFT takes a signal and an axis for its parts", got=str(x.type))
    axis = b.axis(axis, x.rank)
    if axis == x.rank - 1:
        raise ModelError("the last axis of a DFT holds the parts of complex numbers")
    parts = _parts(b, x)
    if onesided and parts != (2 if inverse else 1):
        raise ModelError("a one-sided DFT is of a real signal, and its inverse of a complex one",
                         expected=f"a last dim of {2 if inverse else 1}", got=parts)
    if dft_length is not None:
        length = b.number(dft_length)
    elif onesided and inverse:
        length = apply("mul", apply("sub", x.shape[axis], 1), 2)
    else:
        length = x.shape[axis]
    return _transform(b, x, axis, length, inverse, onesided)


def _parts(b, x: Value) -> int:
    """1 or 2: the last dim, which decides the form of the transform."""
    parts = b.structural(b.from_numbers(x.shape[-1:], DType.INT64), "real or complex")[0]
    if parts not in (1, 2):
        raise ModelError("the last axis holds a real part or both", expected="1 or 2", got=parts)
    return parts


def _transform(b, x: Value, axis: int, length, inverse: bool, onesided: bool) -> Value:
    """The transform in float32 or float64; the small floats widen."""
    wide = x if x.dtype in _WIDE else b.cast(x, DType.FLOAT32)
    y = b.fft(wide, axis, length, inverse=inverse, onesided=onesided)
    return b.cast(y, x.dtype)


@op("STFT", since=17)
def stft(b, signal, frame_step, window=None, frame_length=None, *, onesided: int = 1):
    if signal.rank != 3:
        raise ModelError("STFT takes [batch, length, parts]", got=str(signal.type))
    parts = _parts(b, signal)
    step, total = b.number(frame_step), signal.shape[1]
    b.guard(apply("lt", 0, step), f"frame_step is not positive: {step}")
    length = total
    if frame_length is not None:
        length = b.number(frame_length)
    if window is not None:
        if window.rank != 1:
            raise ModelError("the window is a vector", got=str(window.type))
        given = window.shape[0]
        length = given if frame_length is None else b.same_dim(length, given,
                                                               "frame_length and the window")
    b.guard(apply("and", apply("lt", 0, length), apply("le", length, total)),
            f"a frame of {length} does not fit the signal of {total}")
    count = apply("add", apply("floordiv", apply("sub", total, length), step), 1)
    frames = b.frames(signal, count, length, step)
    if window is not None:
        frames = b.scalar("mul", frames, b.reshape(window, (length, 1)))
    return _transform(b, frames, 2, length, False, bool(onesided) and parts == 1)


@op("MelWeightMatrix", since=17)
def mel_weight_matrix(b, num_mel_bins, dft_length, sample_rate, lower_edge_hertz,
                      upper_edge_hertz, *, output_datatype: int = 1):
    """Triangles between the spectrum's bins nearest below equal steps of the mel scale."""
    bins, length = b.number(num_mel_bins), b.number(dft_length)
    b.guard(apply("le", 0, bins), f"num_mel_bins is negative: {bins}")
    b.guard(apply("le", 0, length), f"dft_length is negative: {length}")
    real = lambda v: b.reshape(b.cast(v, DType.FLOAT64), ())  # noqa: E731
    number = lambda v: b.const(v, DType.FLOAT64)  # noqa: E731
    low, high = (_mel(b, real(v)) for v in (lower_edge_hertz, upper_edge_hertz))
    step = b.scalar("div", b.scalar("sub", high, low),
                    b.number_tensor(apply("to_float", apply("add", bins, 2)), DType.FLOAT64))
    edge = b.cast(b.iota((apply("add", bins, 2),), 0), DType.FLOAT64)
    mel = b.scalar("add", b.scalar("mul", edge, step), low)
    power = b.scalar("exp", b.scalar("mul", mel, number(math.log(10.0) / 2595.0)))
    hertz = b.scalar("mul", b.scalar("sub", power, number(1.0)), number(700.0))
    points = b.scalar("mul", hertz, b.number_tensor(
        apply("to_float", apply("add", length, 1)), DType.FLOAT64))
    place = b.scalar("floor", b.scalar("div", points, real(sample_rate)))
    rows = apply("add", apply("floordiv", length, 2), 1)
    row = b.cast(b.iota((rows, 1), 0), DType.FLOAT64)
    left, centre, right = (b.narrow(place, 0, k, bins) for k in range(3))
    y = _triangles(b, row, left, centre, right, number)
    return b.cast(b.expand(y, (rows, bins)), DType(output_datatype))


def _mel(b, hertz: Value) -> Value:
    ratio = b.scalar("add", b.scalar("div", hertz, b.const(700.0, DType.FLOAT64)),
                     b.const(1.0, DType.FLOAT64))
    return b.scalar("mul", b.scalar("log", ratio), b.const(2595.0 / math.log(10.0),
                                                          DType.FLOAT64))


def _triangles(b, row: Value, left: Value, centre: Value, right: Value, number) -> Value:
    """Up from left to 1 at centre, down to right, 0 elsewhere; an empty side has no slope."""
    def slope(end: Value, other: Value, distance: Value) -> Value:
        width = b.scalar("sub", end, other)
        flat = b.scalar("eq", width, number(0.0))
        return b.scalar("div", distance, b.select(flat, number(1.0), width))

    up = slope(centre, left, b.scalar("sub", row, left))
    down = slope(right, centre, b.scalar("sub", right, row))
    rises = b.scalar("and", b.scalar("ge", row, left), b.scalar("lt", row, centre))
    falls = b.scalar("and", b.scalar("ge", row, centre), b.scalar("lt", row, right))
    peak = b.scalar("eq", row, centre)
    y = b.select(rises, up, b.select(falls, down, number(0.0)))
    return b.select(peak, number(1.0), y)
