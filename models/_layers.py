"""Layers that several networks share, written with the node patterns of PyTorch's exporters."""

from __future__ import annotations

import math

import numpy as np

from models._net import Net


def linear(net: Net, x: str, rows: int, columns: int, name: str, gain=1.0, bias=True) -> str:
    """x @ W + b. On inputs of rank 3 the exporters write MatMul, then Add with the bias first."""
    with net.scope(name):
        product = net.MatMul(x, net.matrix("weight", rows, columns, gain))
        return net.Add(net.normal("bias", columns, 0.1), product) if bias else product


def layer_norm(net: Net, x: str, width: int, name: str, epsilon: float) -> str:
    """LayerNorm in nine nodes, as it is written below opset 17 (axes still an attribute)."""
    with net.scope(name):
        scale, shift = net.scale_and_shift(width)
        centred = net.Sub(x, net.ReduceMean(x, axes=[-1]))
        variance = net.ReduceMean(net.Pow(centred, 2.0), axes=[-1])
        normal = net.Div(centred, net.Sqrt(net.Add(variance, epsilon)))
        return net.Add(net.Mul(normal, scale), shift)


def layer_norm_node(net: Net, x: str, width: int, name: str, epsilon: float) -> str:
    """LayerNorm as the one node of opset 17 and later."""
    with net.scope(name):
        scale, shift = net.scale_and_shift(width)
        return net.LayerNormalization(x, scale, shift, axis=-1, epsilon=epsilon)


def gelu_erf(net: Net, x: str) -> str:
    bell = net.Add(net.Erf(net.Div(x, math.sqrt(2))), 1.0)
    return net.Mul(net.Mul(x, bell), 0.5)


def silu(net: Net, x: str) -> str:
    return net.Mul(x, net.Sigmoid(x))


def size(net: Net, x: str, axis: int) -> str:
    """x.size(axis) as a scalar."""
    return net.Gather(net.Shape(x), axis, axis=0)


def shape(net: Net, *parts) -> str:
    """A shape from scalars (names) and known sizes (ints)."""
    rows = [net.Unsqueeze(p, [0]) if isinstance(p, str) else net.constant([p]) for p in parts]
    return net.Concat(*rows, axis=0)


def reshape(net: Net, x: str, *parts) -> str:
    return net.Reshape(x, shape(net, *parts))


def split_heads(net: Net, x: str, heads: int, width: int, perm) -> str:
    """[batch, length, width] -> heads apart, axes ordered by `perm` of [b, l, heads, depth]."""
    parts = size(net, x, 0), size(net, x, 1)
    return net.Transpose(reshape(net, x, *parts, heads, width // heads), perm=perm)


def join_heads(net: Net, x: str, width: int) -> str:
    """[batch, heads, length, depth] -> [batch, length, width]."""
    joined = net.Transpose(x, perm=[0, 2, 1, 3])
    return reshape(net, joined, size(net, joined, 0), size(net, joined, 1), width)


def extended_mask(net: Net, mask: str) -> str:
    """[batch, 1, 1, length]: zero where a key may be seen, the lowest float elsewhere."""
    seen = net.Cast(net.Unsqueeze(net.Unsqueeze(mask, [1]), [2]), to=net.elem_type)
    return net.Mul(net.Sub(1.0, seen), np.finfo(net.dtype).min)
