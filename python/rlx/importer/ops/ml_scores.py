"""What the models of ai.onnx.ml do with their scores: post transforms and the choice of a label."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from rlx.errors import ModelError
from rlx.ir.build import DType, Value, as_int

PostTransform = Literal["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")  # by TreeEnsemble's numbers


def rows_of(b, x: Value) -> Value:
    """x as [N, F]; a vector is one row."""
    if x.rank == 1:
        return b.unsqueeze(x, (0,))
    if x.rank != 2:
        raise ModelError("the input must be [N, F] or [F]", got=str(x.type))
    return x


def floats(b, x: Value) -> Value:
    """x as float32, unless it is float64."""
    return x if x.dtype is DType.FLOAT64 else b.cast(x, DType.FLOAT32)


def labels_of(labels) -> tuple[np.ndarray, DType]:
    """Class labels as an array, from integers or strings."""
    if labels is None or not len(labels):
        raise ModelError("the classifier has no class labels")
    text = isinstance(labels, tuple)
    return (np.array(labels, object), DType.STRING) if text else (labels, DType.INT64)


def transformed(b, scores: Value, transform: str) -> Value:
    """[N, C] scores after a post transform."""
    if transform == "SOFTMAX":
        return b.softmax(scores, 1)
    if transform == "LOGISTIC":
        return b.scalar("sigmoid", scores)
    if transform == "SOFTMAX_ZERO":
        return _softmax_zero(b, scores)
    return _probit(b, scores) if transform == "PROBIT" else scores


def _softmax_zero(b, scores: Value) -> Value:
    """Softmax over what is not zero; zeros stay."""
    zero = b.scalar("le", b.scalar("abs", scores), b.like(1e-7, scores))
    top = b.reduce("max", scores, (1,))
    power = b.select(zero, b.like(0, scores), b.scalar("exp", b.scalar("sub", scores, top)))
    total = b.reduce("sum", power, (1,))
    none = b.scalar("eq", total, b.like(0, total))
    return b.scalar("div", power, b.select(none, b.like(1, total), total))


def _probit(b, p: Value) -> Value:
    """The inverse of the normal distribution: a rational first guess, then Newton's steps."""
    x = b.scalar("sub", b.scalar("mul", b.like(2, p), p), b.like(1, p))  # erf of the result
    product = b.scalar("sub", b.like(1, p), b.scalar("mul", x, x))
    half = b.scalar("mul", b.scalar("log", product), b.like(0.5, p))
    offset = b.scalar("add", half, b.like(2 / (math.pi * 0.147), p))
    inner = b.scalar("sub", b.scalar("mul", offset, offset),
                     b.scalar("mul", half, b.like(2 / 0.147, p)))
    y = b.scalar("sqrt", b.scalar("sub", b.scalar("sqrt", inner), offset))
    y = b.scalar("mul", b.scalar("sign", x), y)
    for _ in range(2):
        error = b.scalar("sub", b.scalar("erf", y), x)
        slope = b.scalar("mul", b.scalar("exp", b.scalar("mul", y, y)),
                         b.like(math.sqrt(math.pi) / 2, p))
        step = b.scalar("mul", error, slope)
        # At the ends, 0 and 1, the first guess is endless already.
        ends = b.scalar("eq", b.scalar("abs", x), b.like(1, x))
        y = b.select(ends, y, b.scalar("sub", y, step))
    return b.scalar("mul", y, b.like(math.sqrt(2), p))


def top_label(b, scores: Value, labels) -> Value:
    """[N]: the label of the largest score of each row, the first of equals."""
    names, dtype = labels_of(labels)
    return b.gather(b.const(names, dtype), b.reduce("argmax", scores, (1,), False), 0)


def classify(b, scores: Value, labels, transform: str, *, chance: bool = True) -> list[Value]:
    """[labels, scores] of a classifier. A single score for two labels is the second label's
    chance, against 1 - score, or else its margin, against -score."""
    names, dtype = labels_of(labels)
    columns = as_int(scores.shape[1])
    if columns == 1 and len(names) == 2:
        return [_second_or_first(b, scores, names, dtype, 0.5 if chance else 0.0),
                pair(b, scores, transform, chance)]
    if columns is not None and columns != len(names):
        raise ModelError("there is one score for each class label", expected=len(names),
                         got=columns)
    return [top_label(b, scores, labels), transformed(b, scores, transform)]


def _second_or_first(b, score: Value, names, dtype: DType, threshold: float) -> Value:
    second = b.squeeze(b.scalar("gt", score, b.like(threshold, score)), (1,))
    first, other = (b.const(names[k:k + 1], dtype) for k in (0, 1))
    return b.select(second, other, first)


def pair(b, score: Value, transform: str, chance: bool) -> Value:
    """[N, 2] from one score of the second label."""
    if transform == "LOGISTIC":
        against = b.scalar("sigmoid", b.scalar("neg", score))
        return b.concat([against, b.scalar("sigmoid", score)], 1)
    against = b.scalar("sub", b.like(1 if chance else 0, score), score)
    both = b.concat([against, score], 1)
    return _probit(b, both) if transform == "PROBIT" else both
