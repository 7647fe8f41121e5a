"""BERT-base (Devlin et al. 2018) as the tracing exporter of PyTorch writes it, all decomposed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx

from models import _inputs
from models._layers import (
    extended_mask,
    gelu_erf,
    join_heads,
    layer_norm,
    linear,
    size,
    split_heads,
)
from models._net import Net

PARAMETERS = 109_482_240
_EPSILON = 1e-12
# Attention that looks somewhere and adds little: with even attention all positions become one.
_FOCUS, _MIX = 1.7, 0.3


@dataclass(frozen=True)
class Config:
    vocabulary: int = 30522
    positions: int = 512
    layers: int = 12
    width: int = 768
    heads: int = 12
    inner: int = 3072


NARROW = {"vocabulary": 100, "positions": 64, "layers": 2, "width": 32, "heads": 4, "inner": 64}


def build(seed: int = 0, dtype=np.float32, **narrow) -> onnx.ModelProto:
    """input_ids, attention_mask, token_type_ids -> last_hidden_state, pooler_output."""
    config = Config(**narrow)
    net = Net("bert-base", 17, seed, dtype)
    ids = net.input("input_ids", ["batch", "sequence"], np.int64)
    mask = net.input("attention_mask", ["batch", "sequence"], np.int64)
    types = net.input("token_type_ids", ["batch", "sequence"], np.int64)
    mask = extended_mask(net, mask)
    with net.scope("embeddings"):
        x = _embeddings(net, ids, types, config)
    for layer in range(config.layers):
        with net.scope("encoder", "layer", layer):
            x = _layer(net, x, mask, config)
    net.Identity(x, out="last_hidden_state")
    with net.scope("pooler", "dense"):
        weight = net.filters("weight", (config.width, config.width))
        first = net.Gather(x, 0, axis=1)
        y = net.Gemm(first, weight, net.normal("bias", config.width, 0.1), transB=1)
        net.Tanh(y, out="pooler_output")
    net.output("last_hidden_state", ["batch", "sequence", config.width])
    net.output("pooler_output", ["batch", config.width])
    return net.model


def inputs(batch: int = 1, length: int = 128, seed: int = 0, dtype=np.float32, **narrow):
    ids, mask = _inputs.tokens(batch, length, Config(**narrow).vocabulary, seed)
    second_half = (np.arange(length) >= length // 3).astype(np.int64)
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": mask * second_half}


def _embeddings(net: Net, ids: str, types: str, config: Config) -> str:
    tables = {}
    rows_of = {"word": config.vocabulary, "position": config.positions, "token_type": 2}
    for name, rows in rows_of.items():
        tables[name] = net.normal(f"{name}_embeddings.weight", (rows, config.width), 0.6)
    positions = net.buffer("position_ids", np.arange(config.positions)[None])
    end = net.Unsqueeze(size(net, ids, 1), [0])
    positions = net.Slice(positions, [0], end, [1], [1])
    x = net.Add(net.Gather(tables["word"], ids), net.Gather(tables["token_type"], types))
    x = net.Add(x, net.Gather(tables["position"], positions))
    return layer_norm(net, x, config.width, "LayerNorm", _EPSILON)


def _layer(net: Net, x: str, mask: str, config: Config) -> str:
    width = config.width
    with net.scope("attention"):
        with net.scope("self"):
            y = _attention(net, x, mask, config)
        with net.scope("output"):
            y = net.Add(linear(net, y, width, width, "dense", _MIX), x)
            x = layer_norm(net, y, width, "LayerNorm", _EPSILON)
    with net.scope("intermediate"):
        y = gelu_erf(net, linear(net, x, width, config.inner, "dense"))
    with net.scope("output"):
        y = net.Add(linear(net, y, config.inner, width, "dense"), x)
        return layer_norm(net, y, width, "LayerNorm", _EPSILON)


def _attention(net: Net, x: str, mask: str, config: Config) -> str:
    width, heads = config.width, config.heads
    query = linear(net, x, width, width, "query", _FOCUS)
    key = split_heads(net, linear(net, x, width, width, "key", _FOCUS), heads, width, [0, 2, 3, 1])
    value = split_heads(net, linear(net, x, width, width, "value"), heads, width, [0, 2, 1, 3])
    query = split_heads(net, query, heads, width, [0, 2, 1, 3])
    scores = net.Div(net.MatMul(query, key), math.sqrt(width // heads))
    weights = net.Softmax(net.Add(scores, mask), axis=-1)
    return join_heads(net, net.MatMul(weights, value), width)
