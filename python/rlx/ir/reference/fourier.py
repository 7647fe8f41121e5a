"""Reference of Fft: NumPy's transforms in float64."""

from __future__ import annotations

import numpy as np

from rlx.ir.prims import Fft
from rlx.ir.reference.numeric import store


def fft(prim: Fft, inputs, types, value_of) -> list[np.ndarray]:
    """The last axis holds one or two parts; NumPy cuts or pads the transformed one."""
    x, n, axis = inputs[0].astype(np.float64), int(value_of(prim.length)), prim.axis
    z = x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0]
    if prim.onesided and prim.inverse:
        return [store(np.fft.irfft(z, n, axis)[..., None], types[0].dtype)]
    y = (np.fft.ifft if prim.inverse else np.fft.fft)(z, n, axis)
    if prim.onesided:
        y = np.take(y, np.arange(n // 2 + 1), axis)
    return [store(np.stack([y.real, y.imag], -1), types[0].dtype)]
