"""ai.onnx.ml trees: TreeEnsemble and the older classifier and regressor, as one Map body."""

from __future__ import annotations

from typing import Literal

import numpy as np

from rlx.errors import ModelError
from rlx.importer.ops.checks import in_range
from rlx.importer.ops.ml_scores import TRANSFORMS, PostTransform, classify, rows_of, transformed
from rlx.importer.ops.ml_tree_tables import (
    MEMBER, Trees, check_inner, children_of, expand_members, from_votes, same_length,
)
from rlx.importer.registry import FloatArray, IntArray, Texts, op
from rlx.ir.build import DType, Value, apply

_MOST_FEATURES = 1 << 28


def _either(name: str, floats, tensor: Value | None) -> np.ndarray | None:
    """A table given as floats or, for doubles, as a tensor."""
    if floats is not None and tensor is not None:
        raise ModelError(f"both {name} and {name}_as_tensor are given")
    return tensor.const.reshape(-1) if tensor is not None else floats


# -- one table for the body ---------------------------------------------------------------------


def _votes(b, x: Value, trees: Trees, targets: int, aggregate: str) -> Value:
    """float64 [N, targets]: the votes of all trees together."""
    x = rows_of(b, x)
    in_range("the number of targets", targets, 1)
    wide = x.dtype not in (DType.FLOAT32, DType.FLOAT16) or trees.splits.dtype == np.float64
    dtype = DType.FLOAT64 if wide else DType.FLOAT32
    if trees.features.size and not 0 <= trees.features.min() <= trees.features.max() < \
            _MOST_FEATURES:
        raise ModelError("nodes_featureids are out of range")
    b.guard(apply("lt", int(trees.features.max(initial=-1)), x.shape[1]),
            f"the trees read feature {trees.features.max(initial=-1)} of {x.shape[1]}")
    if trees.targets.size and not 0 <= trees.targets.min() <= trees.targets.max() < targets:
        raise ModelError("a vote's target or class is out of range", expected=f"below {targets}",
                         got=int(trees.targets.max()))
    kind = {"SUM": "sum", "AVERAGE": "sum", "MIN": "min", "MAX": "max"}[aggregate]
    count = len(trees.roots)
    shares = max(1, min(64, count // 16, 1024 // targets))
    tables = [_table(b, trees, dtype), *(b.const(t.astype(np.int32)) for t in (
        trees.roots, trees.starts, trees.targets)), b.const(trees.weights, dtype)]
    part = b.tree_ensemble(b.cast(x, dtype), tables, targets, kind, shares)
    total = b.reduce(kind, part, (1,), False)
    if kind != "sum":  # what no tree votes for has no extreme
        voted = b.scalar("lt", b.scalar("abs", total), b.like(np.inf, total))
        total = b.select(voted, total, b.like(0, total))
    if aggregate == "AVERAGE":
        total = b.scalar("div", total, b.like(max(count, 1), total))
    return total


def _table(b, trees: Trees, dtype: DType) -> Value:
    words = dtype.itemsize // 4
    table = np.zeros((len(trees.features), 4 if words == 1 else 6), np.int32)
    table[:, :words] = np.asarray(trees.splits, dtype.numpy).view(np.int32).reshape(-1, words)
    flags = (trees.modes + 8 * trees.tracks).astype(np.uint32)
    table[:, words] = (trees.features.astype(np.uint32) | (flags << 28)).view(np.int32)
    table[:, words + 1], table[:, words + 2] = trees.yes, trees.no
    return b.const(table)


# -- the operators ------------------------------------------------------------------------------


def _nodes(attributes: dict) -> dict:
    a = attributes
    values = _either("nodes_values", a["nodes_values"], a.get("nodes_values_as_tensor"))
    found = {"treeids": a["nodes_treeids"], "nodeids": a["nodes_nodeids"],
             "features": a["nodes_featureids"], "modes": a["nodes_modes"], "values": values,
             "truenodeids": a["nodes_truenodeids"], "falsenodeids": a["nodes_falsenodeids"],
             "tracks": a["nodes_missing_value_tracks_true"]}
    missing = [name for name, t in found.items() if t is None and name != "tracks"]
    if missing:
        raise ModelError(f"the trees have no nodes_{missing[0]}")
    return found


def _weighted(name: str, treeids, nodeids, ids, weights) -> dict:
    found = {"treeids": treeids, "nodeids": nodeids, "ids": ids, "weights": weights}
    if any(t is None for t in found.values()):
        raise ModelError(f"the trees have no votes: {name} is missing")
    return found


def _plus_base(b, total: Value, base, targets: int) -> Value:
    if base is None or not len(base):
        return total
    if len(base) not in (1, targets):
        raise ModelError("base_values has one value for each target", expected=targets,
                         got=len(base))
    return b.scalar("add", total, b.const(np.asarray(base, np.float64)))


@op("TreeEnsembleRegressor", since=1, domain="ai.onnx.ml")
def tree_ensemble_regressor(
    b, x, *, aggregate_function: Literal["AVERAGE", "SUM", "MIN", "MAX"] = "SUM",
    base_values: FloatArray = None, base_values_as_tensor: Value = None,
    n_targets: int = 1, nodes_falsenodeids: IntArray = None, nodes_featureids: IntArray = None,
    nodes_hitrates: FloatArray = None, nodes_hitrates_as_tensor: Value = None,
    nodes_missing_value_tracks_true: IntArray = None, nodes_modes: Texts = None,
    nodes_nodeids: IntArray = None, nodes_treeids: IntArray = None,
    nodes_truenodeids: IntArray = None, nodes_values: FloatArray = None,
    nodes_values_as_tensor: Value = None, post_transform: PostTransform = "NONE",
    target_ids: IntArray = None, target_nodeids: IntArray = None,
    target_treeids: IntArray = None, target_weights: FloatArray = None,
    target_weights_as_tensor: Value = None,
):
    given = locals()
    weights = _either("target_weights", target_weights, target_weights_as_tensor)
    votes = _weighted("a target_ table", target_treeids, target_nodeids, target_ids, weights)
    total = _votes(b, x, from_votes(_nodes(given), votes), n_targets, aggregate_function)
    base = _either("base_values", base_values, base_values_as_tensor)
    total = b.cast(_plus_base(b, total, base, n_targets), DType.FLOAT32)
    return transformed(b, total, post_transform)


@op("TreeEnsembleClassifier", since=1, domain="ai.onnx.ml")
def tree_ensemble_classifier(
    b, x, *, base_values: FloatArray = None, base_values_as_tensor: Value = None,
    class_ids: IntArray = None, class_nodeids: IntArray = None, class_treeids: IntArray = None,
    class_weights: FloatArray = None, class_weights_as_tensor: Value = None,
    classlabels_int64s: IntArray = None, classlabels_strings: Texts = None,
    nodes_falsenodeids: IntArray = None, nodes_featureids: IntArray = None,
    nodes_hitrates: FloatArray = None, nodes_hitrates_as_tensor: Value = None,
    nodes_missing_value_tracks_true: IntArray = None, nodes_modes: Texts = None,
    nodes_nodeids: IntArray = None, nodes_treeids: IntArray = None,
    nodes_truenodeids: IntArray = None, nodes_values: FloatArray = None,
    nodes_values_as_tensor: Value = None, post_transform: PostTransform = "NONE",
):
    given = locals()
    weights = _either("class_weights", class_weights, class_weights_as_tensor)
    votes = _weighted("a class_ table", class_treeids, class_nodeids, class_ids, weights)
    base = _either("base_values", base_values, base_values_as_tensor)
    labels = classlabels_int64s if classlabels_strings is None else classlabels_strings
    count = 0 if labels is None else len(labels)
    total = _votes(b, x, from_votes(_nodes(given), votes), count, "SUM")
    voted = np.unique(class_ids)
    if count == 2 and len(voted) == 1 and (base is None or len(base) < 2):
        # One score: a probability of the second class when no vote is negative, else its margin.
        score = _plus_base(b, b.narrow(total, 1, int(voted[0]), 1), base, 1)
        return classify(b, b.cast(score, DType.FLOAT32), labels, post_transform,
                        chance=not len(weights) or float(weights.min()) >= 0)
    total = _plus_base(b, total, base, count)
    return classify(b, b.cast(total, DType.FLOAT32), labels, post_transform)


@op("TreeEnsemble", since=5, domain="ai.onnx.ml")
def tree_ensemble(
    b, x, *, aggregate_function: int = 1, leaf_targetids: IntArray, leaf_weights: Value,
    membership_values: Value = None, n_targets: int = 1, nodes_falseleafs: IntArray,
    nodes_falsenodeids: IntArray, nodes_featureids: IntArray, nodes_hitrates: Value = None,
    nodes_missing_value_tracks_true: IntArray = None, nodes_modes: Value, nodes_splits: Value,
    nodes_trueleafs: IntArray, nodes_truenodeids: IntArray, post_transform: int = 0,
    tree_roots: IntArray,
):
    in_range("aggregate_function", aggregate_function, 0, 3)
    in_range("post_transform", post_transform, 0, 4)
    wide = np.float64 if nodes_splits.dtype is DType.FLOAT64 else np.float32
    modes = nodes_modes.const.reshape(-1).astype(np.int64)
    splits = nodes_splits.const.reshape(-1).astype(wide)
    tracks = nodes_missing_value_tracks_true
    tracks = np.zeros(modes.size, np.int64) if tracks is None else tracks
    count = same_length(modes=modes, splits=splits, features=nodes_featureids, tracks=tracks,
                         yes=nodes_truenodeids, no=nodes_falsenodeids, yes_leafs=nodes_trueleafs,
                         no_leafs=nodes_falseleafs)
    weights = leaf_weights.const.reshape(-1).astype(wide)
    leaves = same_length(targets=leaf_targetids, weights=weights)
    if modes.size and not 0 <= modes.min() <= modes.max() <= MEMBER:
        raise ModelError("nodes_modes are out of range", expected=f"0 to {MEMBER}")
    yes = children_of(nodes_truenodeids, nodes_trueleafs, count, leaves)
    no = children_of(nodes_falsenodeids, nodes_falseleafs, count, leaves)
    if tree_roots.size and not 0 <= tree_roots.min() <= tree_roots.max() < count:
        raise ModelError("a root of a tree does not exist", expected=f"below {count}")
    check_inner(np.concatenate([yes, no, tree_roots]), count)
    trees = Trees(nodes_featureids, modes, tracks != 0, splits, yes, no, tree_roots,
                   np.arange(leaves + 1), leaf_targetids, weights)
    expand_members(trees, membership_values)
    aggregate = ("AVERAGE", "SUM", "MIN", "MAX")[aggregate_function]
    total = b.cast(_votes(b, x, trees, n_targets, aggregate), x.dtype)
    return transformed(b, total, TRANSFORMS[post_transform])
