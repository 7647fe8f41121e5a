"""Sensible inputs for the networks: pictures with structure, token rows of unequal length."""

from __future__ import annotations

import numpy as np


def images(batch: int, height: int, width: int, seed: int, dtype=np.float32) -> np.ndarray:
    """[batch, 3, height, width]: soft waves, sharp rectangles, some noise; about normal.

    White noise would not do: averaged over a whole picture, one noise is like another.
    """
    random = np.random.default_rng(seed)
    pictures = np.empty((batch, 3, height, width))
    y, x = np.mgrid[0:height, 0:width] / np.array([height, width])[:, None, None]
    for picture in pictures:
        picture[:] = random.normal(size=(3, 1, 1))
        for _ in range(8):
            fy, fx, phase = random.uniform(-6, 6), random.uniform(-6, 6), random.uniform(0, 7)
            wave = np.cos(2 * np.pi * (fy * y + fx * x) + phase)
            picture += random.normal(size=(3, 1, 1)) * wave
        for _ in range(6):
            top, left = random.uniform(0, 0.8, 2)
            inside = (abs(y - top - 0.1) < random.uniform(0.05, 0.3)) & (
                abs(x - left - 0.1) < random.uniform(0.05, 0.3)
            )
            picture[:, inside] = 2 * random.normal(size=(3, 1))
        picture += 0.2 * random.normal(size=picture.shape)
        picture -= picture.mean(axis=(1, 2), keepdims=True)
        picture /= picture.std(axis=(1, 2), keepdims=True)
        # Light is bounded: without this some glaring pictures outshine all others.
        picture[:] = 1.6 * np.tanh(picture)
    return pictures.astype(np.float32).astype(dtype, copy=False)


def tokens(batch: int, length: int, vocabulary: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Token ids and their attention mask: the first row full, the others padded at the end."""
    random = np.random.default_rng(seed)
    ids = random.integers(1, vocabulary, (batch, length), dtype=np.int64)
    lengths = random.integers((length + 1) // 2, length + 1, batch)
    lengths[0] = length
    mask = (np.arange(length) < lengths[:, None]).astype(np.int64)
    return ids * mask, mask
