"""MobileNetV2 (Sandler et al. 2018) as exported: batch norm folded, ReLU6 a Clip."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx

from models import _inputs
from models._net import Net

# 3,504,872 with the 17,056 scales that folding multiplies into the filters.
PARAMETERS = 3_487_816
# After a ReLU a normal variable of variance 1 has the mean 0.4 and 0.34 of the variance.
_RELU_MEAN, _AFTER_RELU = 0.4, 1.7
# Expansion, channels, blocks, stride of each stage.
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


@dataclass(frozen=True)
class Config:
    stages: tuple[tuple[int, int, int, int], ...] = _STAGES
    stem: int = 32
    head: int = 1280
    classes: int = 1000


NARROW = {
    "stages": ((1, 4, 1, 1), (6, 8, 2, 2), (6, 12, 2, 2)),
    "stem": 8,
    "head": 32,
    "classes": 10,
}


def build(seed: int = 0, dtype=np.float32, **narrow) -> onnx.ModelProto:
    """input [batch, 3, height, width] -> logits [batch, classes]."""
    config = Config(**narrow)
    net = Net("mobilenet_v2", 18, seed, dtype)
    x = net.input("input", ["batch", 3, "height", "width"])
    with net.scope("features"):
        with net.scope(0):
            x = _relu6(net, _conv(net, x, 3, config.stem, 3, stride=2))
        channels, index = config.stem, 1
        for expansion, out, blocks, stride in config.stages:
            for block in range(blocks):
                with net.scope(index, "conv"):
                    x = _block(net, x, channels, out, expansion, 1 if block else stride)
                channels, index = out, index + 1
        with net.scope(index):
            x = _relu6(net, _conv(net, x, channels, config.head, 1))
    x = net.ReduceMean(x, [2, 3], keepdims=0)
    with net.scope("classifier", 1):
        # Averaging over the picture leaves little variance; the gain makes up for it.
        weight = net.filters("weight", (config.classes, config.head), gain=3.0)
        net.Gemm(x, weight, net.normal("bias", config.classes, 0.1), transB=1, out="logits")
    net.output("logits", ["batch", config.classes])
    return net.model


def inputs(batch: int = 1, size: int = 224, seed: int = 0, dtype=np.float32, **narrow):
    return {"input": _inputs.images(batch, size, size, seed, dtype)}


def _block(net: Net, x: str, channels: int, out: int, expansion: int, stride: int) -> str:
    """Inverted residual: expand, depthwise, project; the sum where shapes allow it."""
    y, inner = x, channels * expansion
    if expansion != 1:
        with net.scope(0):
            y = _relu6(net, _conv(net, y, channels, inner, 1))
    with net.scope(1):
        y = _relu6(net, _depthwise(net, y, inner, stride))
    added = stride == 1 and channels == out
    with net.scope(2):
        y = _conv(net, y, inner, out, 1, gain=_AFTER_RELU / 2 if added else _AFTER_RELU)
    return net.Add(x, y) if added else y


def _conv(net: Net, x: str, channels: int, out: int, kernel: int, stride=1, gain=1.0) -> str:
    weight = net.filters("weight", (out, channels, kernel, kernel), gain)
    bias = net.normal("bias", out, 0.1)
    pads = [kernel // 2] * 4
    return net.Conv(x, weight, bias, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=pads)


def _depthwise(net: Net, x: str, channels: int, stride: int) -> str:
    """3x3 per channel; its bias takes back the mean that the ReLU before left."""
    array = net.random.normal(0, _AFTER_RELU / 3, (channels, 1, 3, 3)).astype(np.float32)
    weight = net.weight("weight", array)
    bias = net.weight("bias", -_RELU_MEAN * array.sum(axis=(1, 2, 3)))
    window = {"kernel_shape": [3, 3], "strides": [stride] * 2, "pads": [1] * 4}
    return net.Conv(x, weight, bias, group=channels, **window)


def _relu6(net: Net, x: str) -> str:
    return net.Clip(x, 0.0, 6.0)
