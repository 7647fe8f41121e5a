"""Speech made of nothing: glottal pulses through formants, with hisses between the vowels."""

import numpy as np

RATE = 16000
# The first three formants of five vowels, in Hz.
VOWELS = ((730, 1090, 2440), (270, 2290, 3010), (570, 840, 2410), (530, 1840, 2480),
          (300, 870, 2240))
BANDWIDTHS = (80, 90, 120)


def resonance(x, frequency, bandwidth):
    """A two-pole resonator, as the throat is one for each formant."""
    radius = np.exp(-np.pi * bandwidth / RATE)
    a, b = 2 * radius * np.cos(2 * np.pi * frequency / RATE), -radius * radius
    y, last, before = np.empty_like(x), 0.0, 0.0
    for i, value in enumerate(x):
        last, before = value + a * last + b * before, last
        y[i] = last
    return y * (1 - a - b)


def syllable(rng):
    """A vowel whose pitch rises and falls a little."""
    count = int(RATE * rng.uniform(0.15, 0.25))
    pitch = rng.uniform(100, 140) * (1 + 0.1 * np.sin(np.linspace(0, 3, count)))
    pulses = np.diff(np.floor(np.cumsum(pitch) / RATE), prepend=0)
    x = pulses + 0.01 * rng.normal(size=count)
    for frequency, bandwidth in zip(VOWELS[rng.integers(len(VOWELS))], BANDWIDTHS):
        x = resonance(x, frequency, bandwidth)
    return x * np.sqrt(np.hanning(count))


def sentence(rng):
    """Six words of two or three syllables."""
    parts = []
    for _ in range(6):
        for _ in range(rng.integers(2, 4)):
            parts += [0.02 * rng.normal(size=800), syllable(rng)]
        parts.append(np.zeros(int(0.15 * RATE)))
    x = np.concatenate(parts)
    return 0.5 * x / np.abs(x).max()


def recording(seed=0):
    """Two sentences with a second of near silence around each, as 16-bit samples."""
    rng = np.random.default_rng(seed)
    silence = np.zeros(RATE)
    x = np.concatenate([silence, sentence(rng), silence, silence, sentence(rng), silence])
    x += 0.001 * rng.normal(size=len(x))
    return (np.clip(x, -1, 1) * 32767).astype("<i2")
