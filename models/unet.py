"""A diffusion U-Net in the manner of Stable Diffusion's, 0.3 times as wide.

GroupNorm is written as Reshape, InstanceNormalization, Reshape, Mul, Add, as exporters do below
opset 21. Self- and cross-attention stand at all but the highest resolution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx

from models._layers import (
    gelu_erf,
    join_heads,
    layer_norm_node,
    linear,
    reshape,
    silu,
    size,
    split_heads,
)
from models._net import Net

PARAMETERS = 56_594_116
# After SiLU a normal variable of variance 1 keeps 0.31 of it around its mean.
_AFTER_SILU = 1.8
# Attention that looks somewhere; branches small enough that their sum stays near one.
_FOCUS, _BRANCH = 1.7, 0.5


@dataclass(frozen=True)
class Config:
    channels: tuple[int, ...] = (96, 192, 384)
    blocks: int = 2
    latent: int = 4
    context: int = 512
    heads: int = 8
    groups: int = 32


NARROW = {"channels": (8, 16), "blocks": 1, "context": 12, "heads": 2, "groups": 4}


def build(seed: int = 0, dtype=np.float32, **narrow) -> onnx.ModelProto:
    """sample, timestep, encoder_hidden_states -> out_sample, shaped like sample.

    Height and width must be multiples of 2 for each level but the first.
    """
    config = Config(**narrow)
    net = Net("unet", 17, seed, dtype)
    image = ["batch", config.latent, "height", "width"]
    x = net.input("sample", image)
    step = net.input("timestep", ["batch"], np.int64)
    context = net.input("encoder_hidden_states", ["batch", "tokens", config.context])
    unet = _Unet(net, config, context)
    with net.scope("time_embedding"):
        unet.embed(step)
    x = unet.conv(x, config.latent, config.channels[0], "conv_in", gain=1.0)
    x = unet.up(unet.middle(unet.down(x)))
    with net.scope("conv_norm_out"):
        x = silu(net, unet.group_norm(x, config.channels[0], 1e-5))
    x = unet.conv(x, config.channels[0], config.latent, "conv_out")
    net.Identity(x, out="out_sample")
    net.output("out_sample", image)
    return net.model


def inputs(batch=1, size=64, seed: int = 0, dtype=np.float32, tokens: int = 77, **narrow):
    """Noise of `size` x `size`, a time step per row, `tokens` vectors of a prompt."""
    config = Config(**narrow)
    random = np.random.default_rng(seed)
    sample = random.standard_normal((batch, config.latent, size, size), dtype=np.float32)
    context = random.standard_normal((batch, tokens, config.context), dtype=np.float32)
    return {
        "sample": sample.astype(dtype, copy=False),
        "timestep": random.integers(0, 1000, batch, dtype=np.int64),
        "encoder_hidden_states": context.astype(dtype, copy=False),
    }


class _Unet:
    """The net being written and what all blocks share: time embedding, context, skips."""

    def __init__(self, net: Net, config: Config, context: str):
        self.net = net
        self.config = config
        self.context = context
        self.time = ""
        self.skips: list[tuple[str, int]] = []

    def embed(self, step: str) -> None:
        """Sines and cosines of the time step, then two dense layers."""
        net, width = self.net, self.config.channels[0]
        exponents = np.arange(width // 2) / (width // 2)
        frequencies = net.constant(10000.0 ** -exponents[None])
        angles = net.Mul(net.Unsqueeze(net.Cast(step, to=net.elem_type), [1]), frequencies)
        x = net.Concat(net.Cos(angles), net.Sin(angles), axis=-1)
        x = silu(net, self.dense(x, width, 4 * width, "linear_1", gain=1.4))
        self.time = silu(net, self.dense(x, 4 * width, 4 * width, "linear_2", _AFTER_SILU))

    def down(self, x: str) -> str:
        config, inner = self.config, self.config.channels[0]
        self.skips.append((x, inner))
        for level, width in enumerate(config.channels):
            with self.net.scope("down_blocks", level):
                for block in range(config.blocks):
                    x = self.block(x, inner, width, level, block)
                    inner = width
                    self.skips.append((x, width))
                if level < len(config.channels) - 1:
                    x = self.conv(x, width, width, "downsamplers.0.conv", gain=1.0, stride=2)
                    self.skips.append((x, width))
        return x

    def middle(self, x: str) -> str:
        width = self.config.channels[-1]
        with self.net.scope("mid_block"):
            x = self.block(x, width, width, len(self.config.channels) - 1, 0)
            return self.residual(x, width, width, 1)

    def up(self, x: str) -> str:
        config, inner = self.config, self.config.channels[-1]
        for level in reversed(range(len(config.channels))):
            width = config.channels[level]
            with self.net.scope("up_blocks", len(config.channels) - 1 - level):
                for block in range(config.blocks + 1):
                    skip, channels = self.skips.pop()
                    x = self.net.Concat(x, skip, axis=1)
                    x = self.block(x, inner + channels, width, level, block)
                    inner = width
                if level:
                    x = self.upsample(x, width)
        return x

    def block(self, x: str, inner: int, width: int, level: int, index: int) -> str:
        x = self.residual(x, inner, width, index)
        return self.transformer(x, width, index) if level else x

    def residual(self, x: str, inner: int, width: int, index: int) -> str:
        net = self.net
        with net.scope("resnets", index):
            with net.scope("norm1"):
                y = silu(net, self.group_norm(x, inner, 1e-5))
            y = self.conv(y, inner, width, "conv1")
            time = self.dense(self.time, 4 * self.config.channels[0], width, "time_emb_proj")
            y = net.Add(y, net.Unsqueeze(time, [2, 3]))
            with net.scope("norm2"):
                y = silu(net, self.group_norm(y, width, 1e-5))
            y = self.conv(y, width, width, "conv2", gain=_BRANCH * _AFTER_SILU)
            if inner != width:
                x = self.conv(x, inner, width, "conv_shortcut", gain=1.0, kernel=1)
            return net.Add(x, y)

    def transformer(self, x: str, width: int, index: int) -> str:
        """Positions become a sequence: self-attention, cross-attention, a gated dense layer."""
        net = self.net
        with net.scope("attentions", index):
            batch, height, across = (size(net, x, axis) for axis in (0, 2, 3))
            with net.scope("norm"):
                y = self.group_norm(x, width, 1e-6)
            y = self.conv(y, width, width, "proj_in", gain=1.0, kernel=1)
            y = net.Transpose(y, perm=[0, 2, 3, 1])
            y = reshape(net, y, batch, net.Mul(height, across), width)
            with net.scope("transformer_blocks", 0):
                z = layer_norm_node(net, y, width, "norm1", 1e-5)
                y = net.Add(self.attention(z, z, width, width, "attn1"), y)
                z = layer_norm_node(net, y, width, "norm2", 1e-5)
                y = net.Add(self.attention(z, self.context, width, self.config.context, "attn2"), y)
                z = layer_norm_node(net, y, width, "norm3", 1e-5)
                y = net.Add(self.feed_forward(z, width), y)
            y = net.Transpose(reshape(net, y, batch, height, across, width), perm=[0, 3, 1, 2])
            return net.Add(self.conv(y, width, width, "proj_out", gain=_BRANCH, kernel=1), x)

    def attention(self, x: str, source: str, width: int, source_width: int, name: str) -> str:
        net, heads = self.net, self.config.heads
        with net.scope(name):
            query = linear(net, x, width, width, "to_q", _FOCUS, bias=False)
            key = linear(net, source, source_width, width, "to_k", _FOCUS, bias=False)
            value = linear(net, source, source_width, width, "to_v", bias=False)
            query = split_heads(net, query, heads, width, [0, 2, 1, 3])
            key = split_heads(net, key, heads, width, [0, 2, 3, 1])
            value = split_heads(net, value, heads, width, [0, 2, 1, 3])
            scores = net.Mul(net.MatMul(query, key), (width // heads) ** -0.5)
            y = net.MatMul(net.Softmax(scores, axis=-1), value)
            return linear(net, join_heads(net, y, width), width, width, "to_out.0", _BRANCH)

    def feed_forward(self, x: str, width: int) -> str:
        net = self.net
        with net.scope("ff"):
            both = linear(net, x, width, 8 * width, "net.0.proj")
            kept, gate = net.Split(both, [4 * width] * 2, axis=-1, out=2)
            gated = net.Mul(kept, gelu_erf(net, gate))
            return linear(net, gated, 4 * width, width, "net.2", _BRANCH)

    def upsample(self, x: str, width: int) -> str:
        net = self.net
        with net.scope("upsamplers", 0):
            scales = net.constant([1, 1, 2, 2], np.float32)
            how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
            x = net.Resize(x, "", scales, mode="nearest", **how)
            return self.conv(x, width, width, "conv", gain=1.0)

    def group_norm(self, x: str, width: int, epsilon: float) -> str:
        net, groups = self.net, self.config.groups
        grouped = net.Reshape(x, [0, groups, -1])
        ones, zeros = np.ones(groups, net.dtype), np.zeros(groups, net.dtype)
        normal = net.InstanceNormalization(grouped, ones, zeros, epsilon=epsilon)
        normal = net.Reshape(normal, net.Shape(x))
        weight = net.weight("weight", net.random.uniform(0.8, 1.2, (width, 1, 1)))
        return net.Add(net.Mul(normal, weight), net.normal("bias", (width, 1, 1), 0.1))

    def conv(self, x, channels, out, name, gain=_AFTER_SILU, kernel=3, stride=1) -> str:
        net, window = self.net, [kernel, kernel]
        with net.scope(name):
            weight = net.filters("weight", (out, channels, *window), gain)
            bias = net.normal("bias", out, 0.1)
            how = {"kernel_shape": window, "strides": [stride] * 2, "pads": [kernel // 2] * 4}
            return net.Conv(x, weight, bias, **how)

    def dense(self, x: str, rows: int, columns: int, name: str, gain=_AFTER_SILU) -> str:
        net = self.net
        with net.scope(name):
            weight = net.filters("weight", (columns, rows), gain)
            return net.Gemm(x, weight, net.normal("bias", columns, 0.1), transB=1)
