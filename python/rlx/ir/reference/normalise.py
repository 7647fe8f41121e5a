"""References of Softmax, Norm and Attention in float64."""

from __future__ import annotations

import numpy as np

from rlx.ir.prims import Attention, Norm, Softmax
from rlx.ir.reference.numeric import store
from rlx.ir.reference.region import region_values


def softmax(prim: Softmax, inputs, types, value_of) -> list[np.ndarray]:
    """Softmax or its logarithm along one axis of the prologue's result."""
    x = inputs[0]
    if prim.prologue is not None:
        x = region_values(prim.prologue, inputs, value_of)[0]
    return [store(_softmax(x.astype(np.float64), prim.axis, prim.log), types[0].dtype)]


def _softmax(x: np.ndarray, axis: int, log: bool = False) -> np.ndarray:
    with np.errstate(all="ignore"):
        x = x - np.max(x, axis=axis, keepdims=True, initial=-np.inf)
        e = np.exp(x)
        total = np.sum(e, axis=axis, keepdims=True)
        return x - np.log(total) if log else e / total


def norm(prim: Norm, inputs, types, value_of) -> list[np.ndarray | None]:
    """y, mean, inverse deviation and the prologue's result, as far as they are asked for."""
    x, scale, bias, *extra = (*inputs, None, None)[:max(3, len(inputs))]
    if prim.prologue is not None:
        taken = len(prim.prologue.accesses) - 1
        x = region_values(prim.prologue, [x, *extra[:taken]], value_of)[0]
        extra = extra[taken:]
    x = np.asarray(x, np.float64)
    y, mean, inverse = (_group if prim.kind == "group" else _trailing)(prim, x, scale, bias)
    if prim.epilogue is not None:
        y = region_values(prim.epilogue, [y, *extra], value_of)[0]
    found = [y, mean, inverse, x]
    return [None if t is None else store(v, t.dtype) for v, t in zip(found, types)]


def _statistics(x: np.ndarray, axes, epsilon: float, centred: bool):
    """(x normalised over axes, mean, 1 / deviation)."""
    with np.errstate(all="ignore"):
        mean = np.mean(x, axis=axes, keepdims=True) if centred else np.float64(0)
        inverse = 1 / np.sqrt(np.mean((x - mean) ** 2, axis=axes, keepdims=True) + epsilon)
    return (x - mean) * inverse, mean, inverse


def _trailing(prim: Norm, x: np.ndarray, scale, bias):
    axes = tuple(range(prim.axis % x.ndim, x.ndim))
    y, mean, inverse = _statistics(x, axes, prim.epsilon, prim.kind == "layer")
    y = y if scale is None else y * scale.astype(np.float64)
    y = y if bias is None else y + bias.astype(np.float64)
    return y, mean, inverse


def _group(prim: Norm, x: np.ndarray, scale, bias):
    first = np.moveaxis(x, -1, 1) if prim.channels_last else x
    n, c, *spatial = first.shape
    parts = first.reshape(n, prim.groups, -1) if first.size else first
    y, mean, inverse = _statistics(parts, (-1,), prim.epsilon, True)
    y = y.reshape(first.shape)
    by_channel = (c, *(1,) * len(spatial))
    y = y if scale is None else y * scale.astype(np.float64).reshape(by_channel)
    y = y if bias is None else y + bias.astype(np.float64).reshape(by_channel)
    return (np.moveaxis(y, 1, -1) if prim.channels_last else y), mean, inverse


def attention(prim: Attention, inputs, types, value_of) -> list[np.ndarray]:
    """softmax(score(scale q k^T)) v with query heads sharing key/value heads in equal blocks."""
    layouts = (prim.q_layout, prim.k_layout, prim.v_layout)
    q, k, v = (_heads_first(x.astype(np.float64), layout)
               for x, layout in zip(inputs[:3], layouts))
    k, v = (np.repeat(x, q.shape[1] // max(x.shape[1], 1), axis=1) for x in (k, v))
    score = prim.scale * (q @ np.swapaxes(k, -1, -2))
    if prim.score is not None:
        score = region_values(prim.score, [score, *inputs[3:]], value_of)[0]
    if prim.causal:
        i, j = np.ogrid[:score.shape[2], :score.shape[3]]
        score = np.where(j > i + int(value_of(prim.causal_offset)), -np.inf, score)
    y = _heads_first(_softmax(score, -1) @ v, prim.y_layout)
    return [store(y, types[0].dtype)]


def _heads_first(x: np.ndarray, layout: str) -> np.ndarray:
    """bhsd <-> bshd: the exchange is its own inverse."""
    return x if layout == "bhsd" else np.swapaxes(x, 1, 2)
