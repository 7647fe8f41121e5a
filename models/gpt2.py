"""GPT-2 small (Radford et al. 2019): a causal mask cut from a constant, tied output matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx

from models import _inputs
from models._layers import extended_mask, join_heads, layer_norm_node, reshape, size, split_heads
from models._net import Net

PARAMETERS = 124_439_808
_EPSILON = 1e-5
# Attention that looks somewhere; branches small enough that their sum stays near one.
_FOCUS, _BRANCH = 1.7, 0.1


@dataclass(frozen=True)
class Config:
    vocabulary: int = 50257
    positions: int = 1024
    layers: int = 12
    width: int = 768
    heads: int = 12


NARROW = {"vocabulary": 100, "positions": 64, "layers": 2, "width": 32, "heads": 4}


def build(seed: int = 0, dtype=np.float32, **narrow) -> onnx.ModelProto:
    """input_ids, attention_mask -> logits [batch, sequence, vocabulary]."""
    config = Config(**narrow)
    net = Net("gpt2", 19, seed, dtype)
    ids = net.input("input_ids", ["batch", "sequence"], np.int64)
    mask = net.input("attention_mask", ["batch", "sequence"], np.int64)
    with net.scope("transformer"):
        std = 1 / math.sqrt(config.width)
        table = net.normal("wte.weight", (config.vocabulary, config.width), std)
        places = net.normal("wpe.weight", (config.positions, config.width), std)
        triangle = np.tri(config.positions, dtype=bool)[None, None]
        causal = net.buffer("causal_mask", triangle)
        positions = net.Unsqueeze(net.Range(0, size(net, ids, 1), 1), [0])
        x = net.Add(net.Gather(table, ids), net.Gather(places, positions))
        mask = extended_mask(net, mask)
        for layer in range(config.layers):
            with net.scope("h", layer):
                x = _block(net, x, mask, causal, config)
        x = layer_norm_node(net, x, config.width, "ln_f", _EPSILON)
    with net.scope("lm_head"):
        net.MatMul(x, net.Transpose(table, perm=[1, 0]), out="logits")
    net.output("logits", ["batch", "sequence", config.vocabulary])
    return net.model


def inputs(batch: int = 1, length: int = 128, seed: int = 0, dtype=np.float32, **narrow):
    ids, mask = _inputs.tokens(batch, length, Config(**narrow).vocabulary, seed)
    return {"input_ids": ids, "attention_mask": mask}


def _block(net: Net, x: str, mask: str, causal: str, config: Config) -> str:
    width = config.width
    y = layer_norm_node(net, x, width, "ln_1", _EPSILON)
    with net.scope("attn"):
        x = net.Add(_attention(net, y, mask, causal, config), x)
    y = layer_norm_node(net, x, width, "ln_2", _EPSILON)
    with net.scope("mlp"):
        y = _gelu_tanh(net, _conv1d(net, y, width, 4 * width, "c_fc"))
        return net.Add(x, _conv1d(net, y, 4 * width, width, "c_proj", _BRANCH))


def _attention(net: Net, x: str, mask: str, causal: str, config: Config) -> str:
    width, heads = config.width, config.heads
    merged = _conv1d(net, x, width, 3 * width, "c_attn", _FOCUS)
    query, key, value = net.Split(merged, [width] * 3, axis=2, out=3)
    query = split_heads(net, query, heads, width, [0, 2, 1, 3])
    key = split_heads(net, key, heads, width, [0, 2, 3, 1])
    value = split_heads(net, value, heads, width, [0, 2, 1, 3])
    scores = net.Div(net.MatMul(query, key), math.sqrt(width // heads))
    # bias[:, :, keys - queries : keys, :keys], though here the two lengths are equal.
    queries, keys = size(net, scores, 2), size(net, scores, 3)
    start, end = net.Unsqueeze(net.Sub(keys, queries), [0]), net.Unsqueeze(keys, [0])
    rows = net.Slice(causal, start, end, [2], [1])
    allowed = net.Slice(rows, [0], end, [3], [1])
    scores = net.Where(allowed, scores, np.finfo(net.dtype).min)
    weights = net.Softmax(net.Add(scores, mask), axis=-1)
    joined = join_heads(net, net.MatMul(weights, value), width)
    return _conv1d(net, joined, width, width, "c_proj", _BRANCH)


def _conv1d(net: Net, x: str, rows: int, columns: int, name: str, gain: float = 1.0) -> str:
    """GPT-2's dense layer: Gemm between two Reshapes."""
    with net.scope(name):
        weight = net.matrix("weight", rows, columns, gain)
        bias = net.normal("bias", columns, 0.1 * gain)
        y = net.Gemm(net.Reshape(x, [-1, rows]), weight, bias)
        return reshape(net, y, size(net, x, 0), size(net, x, 1), columns)


def _gelu_tanh(net: Net, x: str) -> str:
    cubic = net.Add(x, net.Mul(net.Pow(x, 3.0), 0.044715))
    bell = net.Add(net.Tanh(net.Mul(cubic, math.sqrt(2 / math.pi))), 1.0)
    return net.Mul(net.Mul(x, 0.5), bell)
