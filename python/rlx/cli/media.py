"""Pictures and sounds as arrays of the shape and type that an input has."""

from __future__ import annotations

import wave
from typing import Any

import numpy as np

from rlx.cli.files import numpy_dtype
from rlx.errors import InputError
from rlx.feeds import Info

CHANNELS = (1, 3, 4)


def picture(path: str, info: Info, mean: list[float], std: list[float]) -> Any:
    """A PNG or JPEG file, resized to the input's height and width; 0..1 for float inputs.

    Axes: channels first unless only the last dim can be the channels'.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise InputError("pictures need Pillow", remedy="pip install pillow") from error
    dtype = _holder(info, 0, 255, "a picture")
    shape = info.shape if info.shape is not None else (None,) * 4
    rank = len(shape)
    if rank not in (2, 3, 4):
        raise InputError(f"input {info.name!r} takes no picture", got=f"{rank} axes")
    flat = rank == 2
    first = flat or shape[-3] in CHANNELS or shape[-1] not in CHANNELS
    channels = 1 if flat else shape[-3] if first else shape[-1]
    channels = channels if channels in CHANNELS else 3
    height, width = shape[-2:] if first else shape[-3:-1]
    if 0 in (height, width):
        raise InputError(f"input {info.name!r} takes no picture", got=f"{height} by {width}")
    try:
        with Image.open(path) as image:
            image = _eight_bits(image).convert({1: "L", 3: "RGB", 4: "RGBA"}[channels])
            wanted = (width if isinstance(width, int) else image.width,
                      height if isinstance(height, int) else image.height)
            pixels = np.asarray(image.resize(wanted, Image.Resampling.BILINEAR))
    except (OSError, SyntaxError, ValueError, MemoryError, Image.DecompressionBombError) as error:
        raise InputError(f"cannot read the picture {path!r}: {error}") from error
    pixels = pixels.reshape(*pixels.shape[:2], channels)
    if "float" in info.dtype:
        pixels = pixels.astype(np.float32) / 255
        pixels = (pixels - _each(mean, 0.0, channels)) / _each(std, 1.0, channels)
    pixels = pixels.astype(dtype)
    if flat:
        return pixels[:, :, 0]
    pixels = np.ascontiguousarray(pixels.transpose(2, 0, 1)) if first else pixels
    return pixels if rank == 3 else pixels[None]


def _holder(info: Info, low: int, high: int, what: str) -> Any:
    """The input's type; InputError unless its numbers reach from low to high, or are floats."""
    dtype = np.dtype(numpy_dtype(info))
    if "float" in info.dtype:
        return dtype
    if dtype.kind not in "iu" or np.iinfo(dtype).min > low or np.iinfo(dtype).max < high:
        raise InputError(f"input {info.name!r} does not hold {what}", got=info.dtype,
                         expected=f"floats, or integers from {low} to {high}",
                         remedy="give an .npy file of the input's type")
    return dtype


def _eight_bits(image: Any) -> Any:
    """An image of 16 bits scaled to 8: Pillow would cut what is above 255."""
    if not image.mode.startswith("I"):
        return image
    from PIL import Image
    return Image.fromarray(np.rint(np.asarray(image) / 257).astype(np.uint8))


def _each(numbers: list[float], default: float, channels: int) -> Any:
    if len(numbers) not in (0, 1, channels):
        raise InputError("--mean or --std does not fit the picture",
                         expected=f"1 or {channels} numbers", got=len(numbers))
    return np.asarray(numbers or [default], np.float32)


def sound(path: str, info: Info) -> Any:
    """A PCM WAV file as -1..1 for float inputs; one channel, cut or padded where the input's
    length is fixed."""
    try:
        with wave.open(path, "rb") as file:
            channels, width = file.getnchannels(), file.getsampwidth()
            data = file.readframes(file.getnframes())
    except (OSError, EOFError, RuntimeError, wave.Error) as error:
        raise InputError(f"cannot read the sound {path!r}: {str(error) or 'it ends too early'}",
                         expected="uncompressed PCM") from error
    if width not in (1, 2, 3, 4, 8):
        raise InputError(f"{path!r} has samples of an unusual size", got=f"{8 * width} bits",
                         expected="8, 16, 24, 32 or 64 bits")
    largest = 2 ** (8 * width - 1)
    dtype = _holder(info, -largest, largest - 1, f"samples of {8 * width} bits")
    data = data[:len(data) - len(data) % (width * channels)]  # whole ones of a file cut short
    samples = _samples(data, width).reshape(-1, channels)
    if "float" in info.dtype:
        samples = (samples / float(largest)).astype(np.float32)
    mono = samples.mean(axis=1).astype(dtype)
    rank = 2 if info.shape is None else len(info.shape)
    length = info.shape[-1] if info.shape else None
    if isinstance(length, int):
        mono = np.pad(mono[:length], (0, max(length - len(mono), 0)))
    return mono.reshape((1,) * (rank - 1) + mono.shape)


def _samples(data: bytes, width: int) -> Any:
    """Signed numbers; WAV's single bytes are unsigned, three bytes have no type of their own."""
    if width == 1:
        return np.frombuffer(data, np.uint8).astype(np.int32) - 128
    if width == 3:
        parts = np.frombuffer(data, np.uint8).reshape(-1, 3)
        wide = np.zeros((len(parts), 4), np.uint8)
        wide[:, 1:] = parts
        return wide.view("<i4")[:, 0] >> 8
    return np.frombuffer(data, f"<i{width}")
