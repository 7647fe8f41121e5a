"""A BiLSTM-CRF tagger: two bidirectional LSTMs over rows of unequal length, Viterbi in two Loops.

The first Loop walks forward over time and stacks, for each tag, the best tag before it; the second
walks back along these pointers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx

from models import _inputs
from models._layers import linear, shape, size
from models._net import Net

PARAMETERS = 7_758_676


@dataclass(frozen=True)
class Config:
    vocabulary: int = 20000
    width: int = 256
    hidden: int = 256
    layers: int = 2
    tags: int = 17


NARROW = {"vocabulary": 100, "width": 12, "hidden": 8, "tags": 5}


def build(seed: int = 0, dtype=np.float32, **narrow) -> onnx.ModelProto:
    """input_ids, lengths -> tags (0 after a row's end), score, emissions."""
    config = Config(**narrow)
    net = Net("tagger", 21, seed, dtype)
    ids = net.input("input_ids", ["batch", "time"], np.int64)
    lengths = net.input("lengths", ["batch"], np.int64)
    with net.scope("embedding"):
        table = net.normal("weight", (config.vocabulary, config.width), 1.0)
        x = net.Transpose(net.Gather(table, ids), perm=[1, 0, 2])
    width = config.width
    for layer in range(config.layers):
        with net.scope("lstm", layer):
            x = _lstm(net, x, lengths, width, config.hidden)
        width = 2 * config.hidden
    # What an LSTM puts out is small; the gains make tags differ.
    emissions = linear(net, x, width, config.tags, "emission", gain=10.0)
    with net.scope("crf"):
        last, pointers = _forward(net, emissions, lengths, config.tags)
        tags = _backward(net, last, pointers)
    inside = net.Less(net.Range(0, size(net, ids, 1), 1), net.Unsqueeze(lengths, [1]))
    net.Where(inside, tags, 0, out="tags")
    net.Transpose(emissions, perm=[1, 0, 2], out="emissions")
    net.output("tags", ["batch", "time"], np.int64)
    net.output("score", ["batch"])
    net.output("emissions", ["batch", "time", config.tags])
    return net.model


def inputs(batch: int = 1, length: int = 40, seed: int = 0, dtype=np.float32, **narrow):
    ids, mask = _inputs.tokens(batch, length, Config(**narrow).vocabulary, seed)
    return {"input_ids": ids, "lengths": mask.sum(axis=1)}


def _lstm(net: Net, x: str, lengths: str, width: int, hidden: int) -> str:
    """[time, batch, width] -> [time, batch, 2 hidden], zero after a row's end."""
    weights = net.normal("W", (2, 4 * hidden, width), 2 * width**-0.5)
    recurrent = net.normal("R", (2, 4 * hidden, hidden), hidden**-0.5)
    bias = net.normal("B", (2, 8 * hidden), 0.1)
    zeros = net.ConstantOfShape(shape(net, 2, size(net, x, 1), hidden), value=net.fill(0))
    lengths = net.Cast(lengths, to=onnx.TensorProto.INT32)
    given = (x, weights, recurrent, bias, lengths, zeros, zeros)
    y = net.LSTM(*given, hidden_size=hidden, direction="bidirectional")
    return net.Reshape(net.Transpose(y, perm=[0, 2, 1, 3]), [0, 0, -1])


def _forward(net: Net, emissions: str, lengths: str, tags: int) -> tuple[str, str]:
    """The best last tag of each row, and per step and tag the best tag before it."""
    start, end = net.normal("start", tags, 0.5), net.normal("end", tags, 0.5)
    transitions = net.normal("transitions", (tags, tags), 0.5)
    body = net.body("step")
    step = body.input("step", [], np.int64)
    going = body.input("going", [], np.bool_)
    score = body.input("score_in", ["batch", tags])
    now = body.Add(step, 1)
    candidates = body.Add(body.Unsqueeze(score, [2]), transitions)
    best = body.ReduceMax(candidates, [1], keepdims=0)
    best = body.Add(best, body.Gather(emissions, now, axis=0))
    before = body.ArgMax(candidates, axis=1, keepdims=0)
    active = body.Unsqueeze(body.Greater(lengths, now), [1])
    body.Identity(going, out="going_out")
    body.Where(active, best, score, out="score_out")
    body.Where(active, before, np.arange(tags)[None], out="before")
    body.output("going_out", [], np.bool_)
    body.output("score_out", ["batch", tags])
    body.output("before", ["batch", tags], np.int64)
    first = net.Add(net.Gather(emissions, 0, axis=0), start)
    steps = net.Sub(size(net, emissions, 0), 1)
    score, pointers = net.Loop(steps, True, first, body=body.graph, out=2)
    score = net.Add(score, end)
    net.ReduceMax(score, [1], keepdims=0, out="score")
    return net.ArgMax(score, axis=1, keepdims=0), pointers


def _backward(net: Net, last: str, pointers: str) -> str:
    """[batch, time] tags along the pointers."""
    steps = size(net, pointers, 0)
    body = net.body("back")
    step = body.input("back", [], np.int64)
    going = body.input("going_back", [], np.bool_)
    tag = body.input("tag_in", ["batch"], np.int64)
    place = body.Sub(body.Sub(steps, step), 1)
    row = body.Gather(pointers, place, axis=0)
    body.Identity(going, out="going_back_out")
    earlier = body.GatherElements(row, body.Unsqueeze(tag, [1]), axis=1)
    body.Squeeze(earlier, [1], out="tag_out")
    body.Identity("tag_out", out="tag_scan")
    body.output("going_back_out", [], np.bool_)
    body.output("tag_out", ["batch"], np.int64)
    body.output("tag_scan", ["batch"], np.int64)
    _, earlier = net.Loop(steps, True, last, body=body.graph, out=2)
    backwards = net.Concat(net.Unsqueeze(last, [0]), earlier, axis=0)
    forwards = net.Slice(backwards, [-1], [np.iinfo(np.int64).min], [0], [-1])
    return net.Transpose(forwards, perm=[1, 0])
