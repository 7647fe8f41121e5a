"""A YOLOv8-style detector: CSP backbone, two-way neck, distribution head, NonMaxSuppression.

Batch, height and width (multiples of 32) are free: the anchor points are computed in the graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx

from models import _inputs
from models._layers import shape, silu, size
from models._net import Net

PARAMETERS = 11_156_528
# SiLU keeps up to a third of the variance: this gain never grows, and strong biases feed what
# fades, so that all pictures end at about the same level and some boxes pass the score.
_AFTER_SILU, _BIAS = 1.7, 0.5
# Sums of two maps and maxima of maxima would grow; these keep them near one.
_BRANCH, _AFTER_MAXIMA = 0.9, 0.5
_BINS = 16
_STRIDES = (8, 16, 32)


@dataclass(frozen=True)
class Config:
    width: int = 32
    depths: tuple[int, ...] = (1, 2, 2, 1)
    classes: int = 80
    most: int = 100
    overlap: float = 0.45
    score: float = 0.25
    # Mean logit of a class: low enough that few anchors reach the score.
    level: float = -8.0


NARROW = {"width": 8, "depths": (1, 1, 1, 1), "classes": 6, "level": -1.8}


def build(seed: int = 0, dtype=np.float32, **narrow) -> onnx.ModelProto:
    """images [batch, 3, height, width] -> selected (batch, class, anchor), boxes, scores.

    A box is centre x, centre y, width, height in pixels.
    """
    config = Config(**narrow)
    net = Net("yolo", 19, seed, dtype)
    x = net.input("images", ["batch", 3, "height", "width"])
    with net.scope("model"):
        levels = _neck(net, _backbone(net, x, config), config)
        boxes, scores = _head(net, levels, config)
    limits = [net.constant([config.most])]
    limits += [net.constant([limit], np.float32) for limit in (config.overlap, config.score)]
    single = [_single(net, value) for value in (net.Transpose(boxes, perm=[0, 2, 1]), scores)]
    found = net.NonMaxSuppression(*single, *limits, center_point_box=1, out="selected")
    places = net.Gather(found, [0, 2], axis=1)
    net.GatherND(net.Transpose(boxes, perm=[0, 2, 1]), places, out="boxes")
    net.GatherND(scores, found, out="scores")
    net.output("selected", ["found", 3], np.int64)
    net.output("boxes", ["found", 4])
    net.output("scores", ["found"])
    return net.model


def inputs(batch: int = 1, size: int = 640, seed: int = 0, dtype=np.float32, **narrow):
    return {"images": _inputs.images(batch, size, size, seed, dtype)}


def _single(net: Net, x: str) -> str:
    """NonMaxSuppression takes float32 only."""
    return x if net.dtype == np.float32 else net.Cast(x, to=onnx.TensorProto.FLOAT)


def _backbone(net: Net, x: str, config: Config) -> list[tuple[str, int]]:
    """The maps at strides 8, 16 and 32 with their channels."""
    width, levels = config.width, []
    with net.scope("stem"):
        x = _conv(net, x, 3, width, 3, stride=2, gain=1.0)
    for stage, depth in enumerate(config.depths):
        with net.scope(f"stage{stage + 1}"):
            x = _conv(net, x, width, 2 * width, 3, stride=2)
            width *= 2
            x = _csp(net, x, width, width, depth, add=True)
        levels.append((x, width))
    with net.scope("sppf"):
        levels[-1] = _pyramid_pool(net, x, width), width
    return levels[1:]


def _neck(net: Net, levels: list[tuple[str, int]], config: Config) -> list[tuple[str, int]]:
    """Coarse maps upsampled into fine ones, then fine ones strided back into coarse ones."""
    (fine, a), (middle, b), (coarse, c) = levels
    depth = config.depths[0]
    with net.scope("up1"):
        both = net.Concat(_double(net, coarse), middle, axis=1)
        middle = _csp(net, both, c + b, b, depth)
    with net.scope("up2"):
        both = net.Concat(_double(net, middle), fine, axis=1)
        fine = _csp(net, both, b + a, a, depth)
    with net.scope("down1"):
        both = net.Concat(_conv(net, fine, a, a, 3, stride=2), middle, axis=1)
        middle = _csp(net, both, a + b, b, depth)
    with net.scope("down2"):
        both = net.Concat(_conv(net, middle, b, b, 3, stride=2), coarse, axis=1)
        coarse = _csp(net, both, b + c, c, depth)
    return [(fine, a), (middle, b), (coarse, c)]


def _head(net: Net, levels: list[tuple[str, int]], config: Config) -> tuple[str, str]:
    """boxes [batch, 4, anchors] in pixels and scores [batch, classes, anchors]."""
    first = levels[0][1]
    box_width, class_width = max(16, first // 4, 4 * _BINS), max(first, min(config.classes, 100))
    sides, classes = [], []
    for index, (x, channels) in enumerate(levels):
        with net.scope("box", index):
            y = _branch(net, x, channels, box_width, 4 * _BINS, 2.0)
            sides.append(net.Reshape(y, [0, 4 * _BINS, -1]))
        with net.scope("class", index):
            y = _branch(net, x, channels, class_width, config.classes, 1.4, config.level)
            classes.append(net.Reshape(y, [0, config.classes, -1]))
    with net.scope("dfl"):
        sides = _expected_sides(net, net.Concat(*sides, axis=2))
    points, strides = _anchors(net, [x for x, _ in levels])
    near, far = net.Split(sides, axis=1, num_outputs=2, out=2)
    low, high = net.Sub(points, near), net.Add(points, far)
    centre = net.Div(net.Add(low, high), 2.0)
    boxes = net.Mul(net.Concat(centre, net.Sub(high, low), axis=1), strides)
    return boxes, net.Sigmoid(net.Concat(*classes, axis=2))


def _branch(net, x, channels, width, out, gain, level=0.0) -> str:
    """Two convolutions and a last one without activation."""
    with net.scope(0):
        x = _conv(net, x, channels, width, 3)
    with net.scope(1):
        x = _conv(net, x, width, width, 3)
    with net.scope(2):
        weight = net.filters("weight", (out, width, 1, 1), gain)
        return net.Conv(x, weight, net.normal("bias", out, 0.1, level), kernel_shape=[1, 1])


def _expected_sides(net: Net, sides: str) -> str:
    """Each side's distribution over 16 distances, averaged by a fixed convolution."""
    bins = net.Transpose(net.Reshape(sides, [0, 4, _BINS, -1]), perm=[0, 2, 1, 3])
    distances = net.buffer("weight", np.arange(_BINS, dtype=np.float32).reshape(1, _BINS, 1, 1))
    return net.Reshape(net.Conv(net.Softmax(bins, axis=1), distances), [0, 4, -1])


def _anchors(net: Net, levels: list[str]) -> tuple[str, str]:
    """points [2, anchors] in cells and strides [1, anchors] of every cell of every level."""
    points, strides = [], []
    for x, stride in zip(levels, _STRIDES, strict=True):
        height, width = size(net, x, 2), size(net, x, 3)
        grid = shape(net, height, width)
        columns = net.Cast(net.Range(0, width, 1), to=net.elem_type)
        rows = net.Unsqueeze(net.Cast(net.Range(0, height, 1), to=net.elem_type), [1])
        pair = [net.Unsqueeze(net.Expand(net.Add(v, 0.5), grid), [0]) for v in (columns, rows)]
        points.append(net.Reshape(net.Concat(*pair, axis=0), [2, -1]))
        cells = shape(net, 1, net.Mul(height, width))
        strides.append(net.ConstantOfShape(cells, value=net.fill(stride)))
    return net.Concat(*points, axis=1), net.Concat(*strides, axis=1)


def _csp(net: Net, x: str, channels: int, out: int, depth: int, add: bool = False) -> str:
    """Cross-stage partial: half passes through bottlenecks, and all steps are joined."""
    half = out // 2
    with net.scope("cv1"):
        x = _conv(net, x, channels, out, 1)
    parts = net.Split(x, [half, half], axis=1, out=2)
    for index in range(depth):
        with net.scope("m", index, "cv1"):
            y = _conv(net, parts[-1], half, half, 3)
        with net.scope("m", index, "cv2"):
            y = _conv(net, y, half, half, 3, gain=_BRANCH if add else _AFTER_SILU)
        parts.append(net.Add(parts[-1], y) if add else y)
    with net.scope("cv2"):
        return _conv(net, net.Concat(*parts, axis=1), (2 + depth) * half, out, 1)


def _pyramid_pool(net: Net, x: str, width: int) -> str:
    with net.scope("cv1"):
        parts = [_conv(net, x, width, width // 2, 1)]
    for _ in range(3):
        parts.append(net.MaxPool(parts[-1], kernel_shape=[5, 5], pads=[2] * 4, strides=[1, 1]))
    with net.scope("cv2"):
        return _conv(net, net.Concat(*parts, axis=1), 2 * width, width, 1, gain=_AFTER_MAXIMA)


def _double(net: Net, x: str) -> str:
    scales = net.constant([1, 1, 2, 2], np.float32)
    how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return net.Resize(x, "", scales, mode="nearest", **how)


def _conv(net, x, channels, out, kernel, stride=1, gain=_AFTER_SILU) -> str:
    """Convolution with its batch normalisation folded in, then SiLU."""
    weight = net.filters("weight", (out, channels, kernel, kernel), gain)
    window = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4}
    return silu(net, net.Conv(x, weight, net.normal("bias", out, _BIAS), **window))
