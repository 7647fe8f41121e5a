"""A Llama-style decoder with a key/value cache: RMSNorm, rotary positions, grouped heads, SwiGLU.

One call takes `sequence` new tokens and the keys and values of `past` earlier ones and returns
both joined. The shape of the network is TinyLlama's, scaled to 125 M parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx

from models._layers import join_heads, linear, reshape, shape, size, split_heads
from models._net import Net

PARAMETERS = 124_668_672
_EPSILON = 1e-5
_ROTARY_BASE = 10000.0
_LAST = np.iinfo(np.int64).max
# Attention that looks somewhere; branches small enough that their sum stays near one.
_FOCUS, _BRANCH = 1.7, 0.3


@dataclass(frozen=True)
class Config:
    vocabulary: int = 32000
    layers: int = 12
    width: int = 768
    heads: int = 12
    kv_heads: int = 4
    inner: int = 2048

    @property
    def depth(self) -> int:
        return self.width // self.heads


NARROW = {"vocabulary": 100, "layers": 2, "width": 32, "heads": 4, "kv_heads": 2, "inner": 48}


def build(seed: int = 0, dtype=np.float32, **narrow) -> onnx.ModelProto:
    """input_ids, attention_mask, position_ids, past_key_values.* -> logits, present.*"""
    config = Config(**narrow)
    net = Net("llama", 18, seed, dtype)
    ids = net.input("input_ids", ["batch", "sequence"], np.int64)
    mask = net.input("attention_mask", ["batch", "past + sequence"], np.int64)
    positions = net.input("position_ids", ["batch", "sequence"], np.int64)
    cache = ["batch", config.kv_heads, "past", config.depth]
    names = [f"{i}.{part}" for i in range(config.layers) for part in ("key", "value")]
    past = {name: net.input(f"past_key_values.{name}", cache) for name in names}
    with net.scope("model"):
        table = net.normal("embed_tokens.weight", (config.vocabulary, config.width), 1.0)
        x = net.Gather(table, ids)
        mask = _causal_mask(net, ids, mask, past["0.key"])
        rotary = _rotary_table(net, positions, config)
        for layer in range(config.layers):
            with net.scope("layers", layer):
                x = _layer(net, x, mask, rotary, past, layer, config)
        x = _rms_norm(net, x, config.width, "norm")
    net.MatMul(x, net.matrix("lm_head.weight", config.width, config.vocabulary), out="logits")
    net.output("logits", ["batch", "sequence", config.vocabulary])
    cache[2] = "past + sequence"
    for name in names:
        net.output(f"present.{name}", cache)
    return net.model


def inputs(batch=1, length=1, seed: int = 0, dtype=np.float32, past: int = 64, **narrow):
    """`length` new tokens after `past` ones; rows but the first are padded on the left."""
    config = Config(**narrow)
    random = np.random.default_rng(seed)
    padding = random.integers(0, past // 2 + 1, batch)
    padding[0] = 0
    mask = (np.arange(past + length) >= padding[:, None]).astype(np.int64)
    given = {
        "input_ids": random.integers(0, config.vocabulary, (batch, length), dtype=np.int64),
        "attention_mask": mask,
        "position_ids": np.maximum(mask.cumsum(axis=1) - 1, 0)[:, past:],
    }
    cache = (batch, config.kv_heads, past, config.depth)
    for layer in range(config.layers):
        for part in "key", "value":
            array = random.standard_normal(cache, dtype=np.float32).astype(dtype, copy=False)
            given[f"past_key_values.{layer}.{part}"] = array
    return given


def _causal_mask(net: Net, ids: str, mask: str, past_key: str) -> str:
    """[batch, 1, sequence, past + sequence]: zero for a visible key, else the lowest float."""
    lowest = np.finfo(net.dtype).min
    past, sequence = size(net, past_key, 2), size(net, ids, 1)
    total = net.Add(past, sequence)
    full = net.ConstantOfShape(shape(net, sequence, total), value=net.fill(lowest))
    triangle = net.Trilu(full, 1, upper=1)
    rows = net.Reshape(net.Range(past, total, 1), [-1, 1])
    future = net.Greater(net.Range(0, total, 1), rows)
    causal = net.Mul(triangle, net.Cast(future, to=net.elem_type))
    causal = net.Unsqueeze(net.Unsqueeze(causal, [0]), [0])
    causal = net.Expand(causal, shape(net, size(net, ids, 0), 1, 1, 1))
    given = net.Cast(net.Unsqueeze(net.Unsqueeze(mask, [1]), [2]), to=net.elem_type)
    return net.Where(net.Equal(net.Add(causal, given), 0.0), lowest, causal)


def _rotary_table(net: Net, positions: str, config: Config) -> tuple[str, str]:
    """Cosines and sines [batch, 1, sequence, depth] of position x frequency."""
    with net.scope("rotary_emb"):
        exponents = np.arange(0, config.depth, 2) / config.depth
        frequencies = net.buffer("inv_freq", _ROTARY_BASE ** -exponents[None, :, None])
        places = net.Cast(net.Unsqueeze(positions, [1]), to=net.elem_type)
        angles = net.Transpose(net.MatMul(frequencies, places), perm=[0, 2, 1])
        angles = net.Concat(angles, angles, axis=-1)
        return net.Unsqueeze(net.Cos(angles), [1]), net.Unsqueeze(net.Sin(angles), [1])


def _layer(net: Net, x: str, mask: str, rotary, past: dict, layer: int, config: Config) -> str:
    y = _rms_norm(net, x, config.width, "input_layernorm")
    with net.scope("self_attn"):
        x = net.Add(x, _attention(net, y, mask, rotary, past, layer, config))
    y = _rms_norm(net, x, config.width, "post_attention_layernorm")
    with net.scope("mlp"):
        gate = linear(net, y, config.width, config.inner, "gate_proj", bias=False)
        up = linear(net, y, config.width, config.inner, "up_proj", bias=False)
        y = net.Mul(net.Mul(gate, net.Sigmoid(gate)), up)
        return net.Add(x, linear(net, y, config.inner, config.width, "down_proj", _BRANCH, False))


def _attention(net: Net, x: str, mask: str, rotary, past: dict, layer: int, config: Config) -> str:
    width, kv_width = config.width, config.kv_heads * config.depth
    perm = [0, 2, 1, 3]
    query = linear(net, x, width, width, "q_proj", _FOCUS, bias=False)
    key = linear(net, x, width, kv_width, "k_proj", _FOCUS, bias=False)
    value = linear(net, x, width, kv_width, "v_proj", bias=False)
    query = _rotate(net, split_heads(net, query, config.heads, width, perm), rotary, config)
    key = _rotate(net, split_heads(net, key, config.kv_heads, kv_width, perm), rotary, config)
    value = split_heads(net, value, config.kv_heads, kv_width, perm)
    key = net.Concat(past[f"{layer}.key"], key, axis=2, out=f"present.{layer}.key")
    value = net.Concat(past[f"{layer}.value"], value, axis=2, out=f"present.{layer}.value")
    key = net.Transpose(_repeat_heads(net, key, config), perm=[0, 1, 3, 2])
    scores = net.Div(net.MatMul(query, key), math.sqrt(config.depth))
    weights = net.Softmax(net.Add(scores, mask), axis=-1)
    y = join_heads(net, net.MatMul(weights, _repeat_heads(net, value, config)), width)
    return linear(net, y, width, width, "o_proj", _BRANCH, bias=False)


def _rotate(net: Net, x: str, rotary: tuple[str, str], config: Config) -> str:
    """Turns each pair (i, i + depth / 2) by its angle."""
    cosines, sines = rotary
    low = net.Slice(x, [0], [config.depth // 2], [3], [1])
    high = net.Slice(x, [config.depth // 2], [_LAST], [3], [1])
    turned = net.Concat(net.Neg(high), low, axis=-1)
    return net.Add(net.Mul(x, cosines), net.Mul(turned, sines))


def _repeat_heads(net: Net, x: str, config: Config) -> str:
    """Each cached head once for every query head that reads it."""
    batch, length = size(net, x, 0), size(net, x, 2)
    groups = config.heads // config.kv_heads
    repeated = shape(net, batch, config.kv_heads, groups, length, config.depth)
    wide = net.Expand(net.Unsqueeze(x, [2]), repeated)
    return reshape(net, wide, batch, config.heads, length, config.depth)


def _rms_norm(net: Net, x: str, width: int, name: str) -> str:
    with net.scope(name):
        weight = net.weight("weight", net.random.uniform(0.8, 1.2, width))
        mean = net.ReduceMean(net.Pow(x, 2.0), [-1])
        inverse = net.Div(1.0, net.Sqrt(net.Add(mean, _EPSILON)))
        return net.Mul(weight, net.Mul(x, inverse))
