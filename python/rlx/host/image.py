"""ImageDecoder through Pillow, which is an extra of the package."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable

import numpy as np

from rlx.errors import UnsupportedError

_FORMATS = {"RGB": ("RGB", 3), "BGR": ("RGB", 3), "Grayscale": ("L", 1)}


def decode(pixel_format: str) -> Callable:
    """Encoded bytes -> [height, width, channels] uint8; an empty image when they are none."""
    if importlib.util.find_spec("PIL") is None:
        raise UnsupportedError("ImageDecoder needs the package Pillow, which is not installed",
                               remedy="pip install 'rlx[image]'")
    mode, channels = _FORMATS[pixel_format]

    def run(encoded: np.ndarray) -> np.ndarray:
        from PIL import Image, UnidentifiedImageError
        try:
            with Image.open(io.BytesIO(encoded.tobytes())) as opened:
                pixels = np.asarray(opened.convert(mode), np.uint8)
        # Whatever does not decode gives no pixels, by the operator's text.
        except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError,
                ValueError):
            return np.zeros((0, 0, channels), np.uint8)
        pixels = pixels.reshape(*pixels.shape[:2], channels)
        return np.ascontiguousarray(pixels[..., ::-1] if pixel_format == "BGR" else pixels)

    return run
