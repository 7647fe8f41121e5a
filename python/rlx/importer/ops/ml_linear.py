"""ai.onnx.ml models of products: linear models and support vector machines."""

from __future__ import annotations

from typing import Literal

import numpy as np

from rlx.errors import ModelError
from rlx.importer.ops.checks import in_range
from rlx.importer.ops.ml_scores import (
    PostTransform, classify, floats, labels_of, rows_of, top_label, transformed,
)
from rlx.importer.registry import FloatArray, IntArray, Texts, op
from rlx.ir.build import DType, Value, as_int

Kernel = Literal["LINEAR", "POLY", "RBF", "SIGMOID"]


def _product(b, x: Value, coefficients: np.ndarray, intercepts, rows: int) -> Value:
    """x times a table of `rows` rows, plus intercepts; float32."""
    if rows < 1 or len(coefficients) % rows:
        raise ModelError("coefficients are no table", expected=f"{rows} rows",
                         got=len(coefficients))
    table = b.const(coefficients.reshape(rows, -1).astype(x.dtype.numpy))
    y = b.matmul(x, table, trans_b=True)
    if intercepts is not None and len(intercepts):
        if len(intercepts) not in (1, rows):
            raise ModelError("there is one intercept for each row of coefficients", expected=rows,
                             got=len(intercepts))
        y = b.scalar("add", y, b.const(np.asarray(intercepts, x.dtype.numpy)))
    return b.cast(y, DType.FLOAT32)


@op("LinearRegressor", since=1, domain="ai.onnx.ml")
def linear_regressor(b, x, *, coefficients: FloatArray, intercepts: FloatArray = None,
                     post_transform: PostTransform = "NONE", targets: int = 1):
    in_range("targets", targets, 1)
    y = _product(b, floats(b, rows_of(b, x)), coefficients, intercepts, targets)
    return transformed(b, y, post_transform)


@op("LinearClassifier", since=1, domain="ai.onnx.ml")
def linear_classifier(b, x, *, classlabels_ints: IntArray = None, classlabels_strings: Texts = None,
                      coefficients: FloatArray, intercepts: FloatArray = None,
                      multi_class: int = 0, post_transform: PostTransform = "NONE"):
    labels = classlabels_ints if classlabels_strings is None else classlabels_strings
    rows = floats(b, rows_of(b, x))
    width = as_int(rows.shape[1])
    count = len(labels_of(labels)[0])
    if intercepts is not None and len(intercepts):
        count = len(intercepts)
    elif width and len(coefficients) == width and count == 2:
        count = 1
    scores = _product(b, rows, coefficients, intercepts, count)
    chosen, z = classify(b, scores, labels, post_transform)
    if count == 1:  # the score is a margin to choose by, whatever is shown
        chosen = classify(b, scores, labels, post_transform, chance=False)[0]
    return chosen, z


# -- support vectors ----------------------------------------------------------------------------


def _kernel(b, x: Value, vectors: np.ndarray, kind: str, params) -> Value:
    """[N, V]: the kernel of every row with every support vector."""
    gamma, coef0, degree = (0.0, 0.0, 0.0) if params is None or not len(params) else params[:3]
    width = vectors.shape[1]
    b.same_dim(x.shape[1], width, "the features of x and of the support vectors")
    table = b.const(vectors.astype(x.dtype.numpy))
    if kind == "RBF":  # exp(-gamma |x - v|^2), the square taken as it is written
        gap = b.scalar("sub", b.unsqueeze(x, (1,)), b.unsqueeze(table, (0,)))
        square = b.reduce("sum_square", gap, (2,), False)
        return b.scalar("exp", b.scalar("mul", square, b.like(-float(gamma), x)))
    dot = b.matmul(x, table, trans_b=True)
    if kind == "LINEAR":
        return dot
    inner = b.scalar("add", b.scalar("mul", dot, b.like(float(gamma), x)), b.like(float(coef0), x))
    if kind == "POLY":
        return b.scalar("pow", inner, b.like(float(degree), x))
    return b.scalar("tanh", inner)


def _vectors(support_vectors, count: int) -> np.ndarray:
    if support_vectors is None or count < 1 or len(support_vectors) % count:
        raise ModelError("support_vectors are no table", expected=f"{count} vectors",
                         got=0 if support_vectors is None else len(support_vectors))
    return support_vectors.reshape(count, -1)


def _first(rho, name: str = "rho") -> float:
    if rho is None or not len(rho):
        raise ModelError(f"{name} is missing")
    return float(rho[0])


@op("SVMRegressor", since=1, domain="ai.onnx.ml")
def svm_regressor(b, x, *, coefficients: FloatArray, kernel_params: FloatArray = None,
                  kernel_type: Kernel = "LINEAR", n_supports: int = 0, one_class: int = 0,
                  post_transform: PostTransform = "NONE", rho: FloatArray,
                  support_vectors: FloatArray = None):
    rows = floats(b, rows_of(b, x))
    in_range("n_supports", n_supports, 0)
    if n_supports:
        near = _kernel(b, rows, _vectors(support_vectors, n_supports), kernel_type, kernel_params)
        y = _product(b, near, coefficients[:n_supports], [_first(rho)], 1)
    else:
        near = _kernel(b, rows, coefficients.reshape(1, -1), kernel_type, kernel_params)
        y = b.cast(b.scalar("add", near, b.like(_first(rho), near)), DType.FLOAT32)
    if one_class:
        inside = b.scalar("gt", y, b.like(0, y))
        return b.select(inside, b.like(1, y), b.like(-1, y))
    return transformed(b, y, post_transform)


@op("SVMClassifier", since=1, domain="ai.onnx.ml")
def svm_classifier(b, x, *, classlabels_ints: IntArray = None, classlabels_strings: Texts = None,
                   coefficients: FloatArray, kernel_params: FloatArray = None,
                   kernel_type: Kernel = "LINEAR", post_transform: PostTransform = "NONE",
                   prob_a: FloatArray = None, prob_b: FloatArray = None, rho: FloatArray,
                   support_vectors: FloatArray = None, vectors_per_class: IntArray = None):
    labels = classlabels_ints if classlabels_strings is None else classlabels_strings
    count = len(labels_of(labels)[0])
    rows = floats(b, rows_of(b, x))
    if vectors_per_class is None or not len(vectors_per_class):
        near = _kernel(b, rows, _vectors(coefficients, count), kernel_type, kernel_params)
        scores = b.cast(b.scalar("add", near, b.like(_first(rho), near)), DType.FLOAT32)
        return top_label(b, scores, labels), transformed(b, scores, post_transform)
    near = _kernel(b, rows, _vectors(support_vectors, int(vectors_per_class.sum())), kernel_type,
                   kernel_params)
    margins = _pairs(b, near, coefficients, rho, vectors_per_class, count)
    chosen = top_label(b, _votes(b, margins, count), labels)
    if prob_a is not None and len(prob_a):
        z = _probabilities(b, margins, prob_a, prob_b, count)
    elif count == 2:
        z = b.concat([b.scalar("neg", margins), margins], 1)
    else:
        z = margins
    return chosen, transformed(b, z, post_transform)


def _class_pairs(count: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(count) for j in range(i + 1, count)]


def _pairs(b, near: Value, coefficients, rho, per_class, count: int) -> Value:
    """float32 [N, pairs]: the margin of class i against j for each i < j."""
    pairs, total = _class_pairs(count), int(per_class.sum())
    if len(per_class) != count or (per_class < 0).any():
        raise ModelError("vectors_per_class has one number for each class", expected=count,
                         got=per_class.tolist())
    if len(coefficients) != (count - 1) * total or len(rho) != len(pairs):
        raise ModelError("coefficients or rho do not fit the support vectors",
                         expected=f"{(count - 1) * total} and {len(pairs)}",
                         got=f"{len(coefficients)} and {len(rho)}")
    table = coefficients.reshape(count - 1, total)
    ends = np.cumsum(per_class)
    weights = np.zeros((len(pairs), total), np.float32)
    for row, (i, j) in zip(weights, pairs):
        of_i, of_j = (slice(ends[k] - per_class[k], ends[k]) for k in (i, j))
        row[of_i], row[of_j] = table[j - 1, of_i], table[i, of_j]
    return _product(b, near, weights.reshape(-1), rho, len(pairs))


def _votes(b, margins: Value, count: int) -> Value:
    """float32 [N, classes]: how many pairs each class wins."""
    won = b.cast(b.scalar("gt", margins, b.like(0, margins)), DType.FLOAT32)
    pairs = _class_pairs(count)
    first, second = np.zeros((2, len(pairs), count), np.float32)
    for k, (i, j) in enumerate(pairs):
        first[k, i] = second[k, j] = 1
    lost = b.scalar("sub", b.like(1, won), won)
    return b.scalar("add", b.matmul(won, b.const(first)), b.matmul(lost, b.const(second)))


def _probabilities(b, margins: Value, prob_a, prob_b, count: int) -> Value:
    """Platt's pairwise probabilities, coupled to one for each class."""
    pairs = _class_pairs(count)
    if prob_b is None or len(prob_a) != len(pairs) or len(prob_b) != len(pairs):
        raise ModelError("prob_a and prob_b have one number for each pair of classes",
                         expected=len(pairs), got=len(prob_a))
    inner = b.scalar("add", b.scalar("mul", margins, b.const(prob_a)), b.const(prob_b))
    chance = b.scalar("sigmoid", b.scalar("neg", inner))
    low, high = b.like(1e-7, chance), b.like(1 - 1e-7, chance)
    chance = b.scalar("min", b.scalar("max", chance, low), high)
    if count == 2:
        return b.concat([chance, b.scalar("sub", b.like(1, chance), chance)], 1)
    return b.pairwise_coupling(chance, count)
