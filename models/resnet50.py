"""ResNet-50 (He et al. 2015, stride in the 3x3), its BatchNormalization kept as nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx

from models import _inputs
from models._net import Net

PARAMETERS = 25_557_032
# After a ReLU a normal variable of variance 1 keeps 0.34 of it around its mean.
_AFTER_RELU = 1.7


@dataclass(frozen=True)
class Config:
    blocks: tuple[int, ...] = (3, 4, 6, 3)
    width: int = 64
    classes: int = 1000


NARROW = {"blocks": (1, 1, 2, 1), "width": 8, "classes": 10}


def build(seed: int = 0, dtype=np.float32, **narrow) -> onnx.ModelProto:
    """input [batch, 3, height, width] -> logits [batch, classes]."""
    config = Config(**narrow)
    net = Net("resnet50", 17, seed, dtype)
    x = net.input("input", ["batch", 3, "height", "width"])
    x = _conv_norm(net, x, 3, config.width, 7, "conv1", "bn1", stride=2, image=True)
    x = net.MaxPool(net.Relu(x), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = config.width
    for stage, blocks in enumerate(config.blocks):
        inner = config.width << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            with net.scope(f"layer{stage + 1}", block):
                x = _bottleneck(net, x, channels, inner, stride)
            channels = 4 * inner
    x = net.Flatten(net.GlobalAveragePool(x), axis=1)
    with net.scope("fc"):
        # Averaging over the picture leaves little variance; the gain makes up for it.
        weight = net.filters("weight", (config.classes, channels), gain=3.0)
        net.Gemm(x, weight, net.normal("bias", config.classes, 0.1), transB=1, out="logits")
    net.output("logits", ["batch", config.classes])
    return net.model


def inputs(batch: int = 1, size: int = 224, seed: int = 0, dtype=np.float32, **narrow):
    return {"input": _inputs.images(batch, size, size, seed, dtype)}


def _bottleneck(net: Net, x: str, channels: int, inner: int, stride: int) -> str:
    y = net.Relu(_conv_norm(net, x, channels, inner, 1, "conv1", "bn1"))
    y = net.Relu(_conv_norm(net, y, inner, inner, 3, "conv2", "bn2", stride))
    y = _conv_norm(net, y, inner, 4 * inner, 1, "conv3", "bn3", scale=0.5)
    if channels != 4 * inner or stride != 1:
        with net.scope("downsample"):
            x = _conv_norm(net, x, channels, 4 * inner, 1, "0", "1", stride)
    return net.Relu(net.Add(y, x))


def _conv_norm(net, x, channels, out, kernel, conv, norm, stride=1, scale=1.0, image=False):
    """Convolution and batch normalisation whose running statistics fit what passes."""
    shape = (out, channels, kernel, kernel)
    with net.scope(conv):
        weight = net.filters("weight", shape, 1.0 if image else _AFTER_RELU)
        pads = [kernel // 2] * 4
        y = net.Conv(x, weight, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=pads)
    with net.scope(norm):
        weight, bias = net.scale_and_shift(out, scale)
        mean = net.buffer("running_mean", net.random.normal(0, 0.1, out))
        variance = net.buffer("running_var", net.random.uniform(0.8, 1.2, out))
        return net.BatchNormalization(y, weight, bias, mean, variance, epsilon=1e-5)
