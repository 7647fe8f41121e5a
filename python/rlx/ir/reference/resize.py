"""Reference of Resize: one matrix of interpolation weights for each axis (ONNX operator text)."""

from __future__ import annotations

import math

import numpy as np

from rlx.ir.prims import Resize
from rlx.ir.reference.numeric import store


def resize(prim: Resize, inputs, types, value_of) -> list[np.ndarray]:
    """Interpolates axis after axis; places outside the crop get the extrapolation value."""
    x = inputs[0]
    if prim.mode != "nearest":
        x = x.astype(np.float64)
    roi = [float(value_of(r)) for r in prim.roi]
    n = len(prim.axes)
    for k, (axis, s) in enumerate(zip(prim.axes, prim.scales)):
        crop = (roi[k], roi[n + k]) if roi else (0.0, 1.0)
        target = int(value_of(types[0].shape[axis]))
        x = _Axis(prim, x.shape[axis], target, float(value_of(s)), crop).apply(x, axis)
    return [store(x, types[0].dtype)]


class _Axis:
    """One axis of a Resize: where each output place lies in the input."""

    def __init__(self, prim: Resize, source: int, target: int, scale: float, crop):
        self.prim, self.source, self.target, self.scale = prim, source, target, scale
        self.crop = crop
        self.length = scale * source  # fractional, as the operator's tests have it

    def apply(self, x: np.ndarray, axis: int) -> np.ndarray:
        places = [self.coordinate(i) for i in range(self.target)]
        if self.prim.mode == "nearest":
            index = [min(max(self.nearest(p), 0), self.source - 1) for p in places]
            y = np.take(x, np.array(index, np.int64), axis)
        elif self.target == self.source and self.scale == 1.0 and places == list(
                range(self.source)):
            y = x  # weights of one place each: exact even for infinities
        else:
            weights = np.array([self.weights(p) for p in places]).reshape(
                self.target, self.source)
            y = np.moveaxis(np.tensordot(weights, x, ([1], [axis])), 0, axis)
        if self.prim.coordinate_transformation_mode == "tf_crop_and_resize":
            y = np.moveaxis(y.copy(), axis, 0)
            y[[not 0 <= p <= self.source - 1 for p in places]] = self.prim.extrapolation_value
            y = np.moveaxis(y, 0, axis)
        return y

    def coordinate(self, i: int) -> float:
        mode, last = self.prim.coordinate_transformation_mode, self.source - 1
        if mode == "align_corners":
            return 0.0 if self.length == 1 else i * last / (self.length - 1)
        if mode == "asymmetric":
            return i / self.scale
        if mode == "tf_crop_and_resize":
            start, end = self.crop
            if self.target <= 1:
                return 0.5 * (start + end) * last
            return start * last + i * (end - start) * last / (self.target - 1)
        if mode == "pytorch_half_pixel" and self.target <= 1:
            return -0.5
        if mode == "tf_half_pixel_for_nn":
            return (i + 0.5) / self.scale
        half = (i + 0.5) / self.scale - 0.5
        if mode == "half_pixel_symmetric":
            return self.source / 2 * (1 - self.target / self.length) + half
        return half

    def nearest(self, place: float) -> int:
        mode = self.prim.nearest_mode
        if mode == "floor":
            return math.floor(place)
        if mode == "ceil":
            return math.ceil(place)
        if mode == "round_prefer_ceil":
            return math.floor(place + 0.5)
        return math.ceil(place - 0.5)

    def weights(self, place: float) -> np.ndarray:
        """The share of each input place in the output value at `place`."""
        stretch = min(self.scale, 1.0) if self.prim.antialias else 1.0
        reach = math.ceil((1 if self.prim.mode == "linear" else 2) / stretch) + 1
        near = np.arange(math.floor(place) - reach, math.ceil(place) + reach + 1)
        w = self.filter(np.abs((near - place) * stretch))
        if self.prim.exclude_outside:
            w = np.where((near >= 0) & (near < self.source), w, 0.0)
        if self.prim.exclude_outside or self.prim.antialias:
            w = w / w.sum()
        row = np.zeros(self.source)
        np.add.at(row, np.clip(near, 0, self.source - 1), w)
        return row

    def filter(self, d: np.ndarray) -> np.ndarray:
        if self.prim.mode == "linear":
            return np.maximum(0.0, 1.0 - d)
        a = self.prim.cubic_coeff_a
        inner = (a + 2) * d**3 - (a + 3) * d**2 + 1
        outer = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
        return np.where(d <= 1, inner, np.where(d < 2, outer, 0.0))
