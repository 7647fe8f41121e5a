"""ViT-B/16 (Dosovitskiy et al. 2020) with the LayerNormalization and Gelu nodes of opset 20."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx

from models import _inputs
from models._layers import join_heads, layer_norm_node, linear, shape, size
from models._net import Net

PARAMETERS = 86_567_656
_EPSILON = 1e-6
# Attention that looks somewhere; branches small enough that their sum stays near one.
_FOCUS, _BRANCH = 1.7, 0.3


@dataclass(frozen=True)
class Config:
    image: int = 224
    patch: int = 16
    layers: int = 12
    width: int = 768
    heads: int = 12
    inner: int = 3072
    classes: int = 1000


NARROW = {
    "image": 32,
    "patch": 8,
    "layers": 2,
    "width": 32,
    "heads": 4,
    "inner": 64,
    "classes": 10,
}


def build(seed: int = 0, dtype=np.float32, **narrow) -> onnx.ModelProto:
    """pixel_values [batch, 3, image, image] -> logits [batch, classes]."""
    config = Config(**narrow)
    net = Net("vit-b16", 20, seed, dtype)
    pixels = net.input("pixel_values", ["batch", 3, config.image, config.image])
    x = _embeddings(net, pixels, config)
    for layer in range(config.layers):
        with net.scope("encoder", "layers", layer):
            x = _layer(net, x, config)
    x = layer_norm_node(net, x, config.width, "ln", _EPSILON)
    with net.scope("head"):
        weight = net.filters("weight", (config.classes, config.width))
        first = net.Gather(x, 0, axis=1)
        net.Gemm(first, weight, net.normal("bias", config.classes, 0.1), transB=1, out="logits")
    net.output("logits", ["batch", config.classes])
    return net.model


def inputs(batch: int = 1, size: int | None = None, seed: int = 0, dtype=np.float32, **narrow):
    """`size` can only be that of the configuration: the positions are learnt for it."""
    size = size or Config(**narrow).image
    return {"pixel_values": _inputs.images(batch, size, size, seed, dtype)}


def _embeddings(net: Net, pixels: str, config: Config) -> str:
    """One vector per patch after a learnt class token, plus learnt positions."""
    width, patch = config.width, config.patch
    with net.scope("conv_proj"):
        # Soft pictures vary little inside a patch; the gain makes up for it.
        weight = net.filters("weight", (width, 3, patch, patch), gain=2.0)
        bias = net.normal("bias", width, 0.1)
        x = net.Conv(pixels, weight, bias, kernel_shape=[patch] * 2, strides=[patch] * 2)
    x = net.Transpose(net.Reshape(x, [0, width, -1]), perm=[0, 2, 1])
    token = net.normal("class_token", (1, 1, width), 1.0)
    token = net.Expand(token, shape(net, size(net, pixels, 0), 1, width))
    length = (config.image // patch) ** 2 + 1
    positions = net.normal("encoder.pos_embedding", (1, length, width), 0.3)
    return net.Add(net.Concat(token, x, axis=1), positions)


def _layer(net: Net, x: str, config: Config) -> str:
    width = config.width
    y = layer_norm_node(net, x, width, "ln_1", _EPSILON)
    with net.scope("self_attention"):
        x = net.Add(x, _attention(net, y, config))
    y = layer_norm_node(net, x, width, "ln_2", _EPSILON)
    with net.scope("mlp"):
        y = net.Gelu(linear(net, y, width, config.inner, "0"))
        return net.Add(x, linear(net, y, config.inner, width, "3", _BRANCH))


def _attention(net: Net, x: str, config: Config) -> str:
    """Queries, keys and values from one product, told apart on a leading axis."""
    width, heads = config.width, config.heads
    depth = width // heads
    packed = linear(net, x, width, 3 * width, "in_proj", _FOCUS)
    packed = net.Transpose(net.Reshape(packed, [0, 0, 3, heads, depth]), perm=[2, 0, 3, 1, 4])
    parts = net.Split(packed, axis=0, num_outputs=3, out=3)
    query, key, value = (net.Squeeze(part, [0]) for part in parts)
    scores = net.MatMul(net.Mul(query, depth**-0.5), net.Transpose(key, perm=[0, 1, 3, 2]))
    y = join_heads(net, net.MatMul(net.Softmax(scores, axis=-1), value), width)
    return linear(net, y, width, width, "out_proj", _BRANCH)
