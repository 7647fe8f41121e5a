"""Pictures and sounds as arrays of the shape and type that an input has."""

from __future__ import annotations

import wave
from typing import Any

import numpy as np

from rlx.errors import InputError
from rlx.feeds import Info

CHANNELS = (1, 3, 4)


def picture(path: str, info: Info, mean: list[float], std: list[float]) -> Any:
    """A PNG or JPEG file, resized to the input's height and width; 0..1 for float inputs.

    Axes: channels first unless only the last dim can be the channels'.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise InputError("pictures need Pillow", remedy="pip install pillow") from error
    shape = info.shape if info.shape is not None else (None,) * 4
    rank = len(shape)
    if rank not in (2, 3, 4):
        raise InputError(f"input {info.name!r} takes no picture", got=f"{rank} axes")
    flat = rank == 2
    first = flat or shape[-3] in CHANNELS or shape[-1] not in CHANNELS
    channels = 1 if flat else shape[-3] if first else shape[-1]
    channels = channels if channels in CHANNELS else 3
    height, width = shape[-2:] if first else shape[-3:-1]
    try:
        with Image.open(path) as image:
            image = image.convert({1: "L", 3: "RGB", 4: "RGBA"}[channels])
            wanted = (width if isinstance(width, int) else image.width,
                      height if isinstance(height, int) else image.height)
            pixels = np.asarray(image.resize(wanted, Image.Resampling.BILINEAR))
    except (OSError, UnidentifiedImageError) as error:
        raise InputError(f"cannot read the picture {path!r}: {error}") from error
    pixels = pixels.reshape(*pixels.shape[:2], channels)
    if "float" in info.dtype:
        pixels = pixels.astype(np.float32) / 255
        pixels = (pixels - _each(mean, 0.0, channels)) / _each(std, 1.0, channels)
    pixels = pixels.astype(info.dtype)
    if flat:
        return pixels[:, :, 0]
    pixels = np.ascontiguousarray(pixels.transpose(2, 0, 1)) if first else pixels
    return pixels if rank == 3 else pixels[None]


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
    except (OSError, EOFError, wave.Error) as error:
        raise InputError(f"cannot read the sound {path!r}: {error}",
                         expected="uncompressed PCM") from error
    samples = _samples(data, width).reshape(-1, channels)
    if "float" in info.dtype:
        samples = (samples / 2.0 ** (8 * width - 1)).astype(np.float32)
    mono = samples.mean(axis=1).astype(info.dtype)
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
