"""Trees of ai.onnx.ml, walked in the tests by plain recursion."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper
import pytest

import rlx
from tests.api.test_ml import X, close, run, sigmoid
from tests.api.toys import F, I

S, D = TensorProto.STRING, TensorProto.DOUBLE
# Tree 0: x0 <= 0 ? leaf 1 : leaf 2. Tree 1: x1 > 1 ? leaf 1 : (x0 < 0 ? leaf 3 : leaf 4).
NODES = {
    "nodes_treeids": [0, 0, 0, 1, 1, 1, 1, 1], "nodes_nodeids": [0, 1, 2, 0, 1, 2, 3, 4],
    "nodes_featureids": [0, 0, 0, 1, 0, 0, 0, 0], "nodes_values": [0.0, 0, 0, 1, 0, 0, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "BRANCH_LT", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0, 1, 0, 3, 0, 0], "nodes_falsenodeids": [2, 0, 0, 2, 0, 4, 0, 0],
}
LEAVES = [(0, 1), (0, 2), (1, 1), (1, 3), (1, 4)]  # (tree, node)
REACHED = [[(0, 2), (1, 1)], [(0, 1), (1, 3)], [(0, 2), (1, 4)]]  # by the rows of X


def votes(prefix, ids, weights):
    trees, nodes = zip(*LEAVES)
    return {f"{prefix}_treeids": trees, f"{prefix}_nodeids": nodes, f"{prefix}_ids": ids,
            f"{prefix}_weights": weights}


def sums(ids, weights, targets):
    y = np.zeros((len(X), targets))
    for row, leaves in zip(y, REACHED):
        for leaf in leaves:
            row[ids[LEAVES.index(leaf)]] += weights[LEAVES.index(leaf)]
    return y


WEIGHTS = [0.25, -0.5, 1.0, 0.125, 2.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_regressor(aggregate, dtype):
    given = NODES | votes("target", [0, 0, 0, 0, 0], WEIGHTS)
    picked = np.array([[WEIGHTS[LEAVES.index(leaf)] for leaf in leaves] for leaves in REACHED])
    expected = {"SUM": picked.sum(1), "AVERAGE": picked.mean(1), "MIN": picked.min(1),
                "MAX": picked.max(1)}[aggregate]
    y = run("TreeEnsembleRegressor", X.astype(dtype), F, aggregate_function=aggregate, n_targets=1,
            base_values=[10.0], **given)
    assert y.dtype == np.float32
    close(y, expected[:, None] + 10)


def test_regressor_of_two_targets():
    ids = [0, 1, 0, 1, 1]
    given = NODES | votes("target", ids, WEIGHTS)
    close(run("TreeEnsembleRegressor", X, F, n_targets=2, **given), sums(ids, WEIGHTS, 2))
    close(run("TreeEnsembleRegressor", X, F, n_targets=2, post_transform="LOGISTIC", **given),
          sigmoid(sums(ids, WEIGHTS, 2)))


def test_regressor_takes_integers_and_doubles_in_tensors():
    given = NODES | votes("target", [0] * 5, WEIGHTS)
    for name in ("nodes_values", "target_weights"):
        given[f"{name}_as_tensor"] = helper.make_tensor(name, D, [len(given[name])], given[name])
        del given[name]
    x = np.array([[1, 2], [-1, 0], [1, 0]])
    close(run("TreeEnsembleRegressor", x, F, version=3, **given),
          sums([0] * 5, WEIGHTS, 1))


def test_classifier_of_three_classes():
    ids = [0, 1, 2, 1, 0]
    scores = sums(ids, WEIGHTS, 3) + [0.1, 0.2, 0.3]
    label, z = run("TreeEnsembleClassifier", X, S, F, classlabels_strings=["a", "b", "c"],
                   base_values=[0.1, 0.2, 0.3], post_transform="SOFTMAX",
                   **NODES, **votes("class", ids, WEIGHTS))
    assert label.tolist() == np.array(["a", "b", "c"])[scores.argmax(1)].tolist()
    close(z, np.exp(scores) / np.exp(scores).sum(1, keepdims=True))


def test_zeros_stay_out_of_softmax_zero():
    ids = [0, 1, 2, 1, 0]
    scores = sums(ids, WEIGHTS, 3)
    power = np.where(scores == 0, 0, np.exp(scores))
    _, z = run("TreeEnsembleClassifier", X, I, F, classlabels_int64s=[7, 8, 9],
               post_transform="SOFTMAX_ZERO", **NODES, **votes("class", ids, WEIGHTS))
    close(z, power / power.sum(1, keepdims=True))


@pytest.mark.parametrize("weights, threshold", [([0.25, 0.5, 0.125, 0.125, 0.0], 0.5),
                                                (WEIGHTS, 0.0)])
def test_classifier_of_one_score(weights, threshold):
    """Votes without a negative one make a chance, others a margin."""
    score = sums([0] * 5, weights, 1)[:, 0]
    given = NODES | votes("class", [0] * 5, weights)
    label, z = run("TreeEnsembleClassifier", X, I, F, classlabels_int64s=[7, 9], **given)
    assert label.tolist() == np.where(score > threshold, 9, 7).tolist()
    close(z, np.stack([(1 if threshold else 0) - score, score], 1))
    _, z = run("TreeEnsembleClassifier", X, I, F, classlabels_int64s=[7, 9],
               post_transform="LOGISTIC", **given)
    close(z, np.stack([sigmoid(-score), sigmoid(score)], 1))


@pytest.mark.parametrize("tracks", [0, 1])
def test_missing_values(tracks):
    given = NODES | votes("target", [0] * 5, WEIGHTS)
    y = run("TreeEnsembleRegressor", np.array([[np.nan, 2]], np.float32), F, **given,
            nodes_missing_value_tracks_true=[tracks] * 8)
    close(y, [[WEIGHTS[0 if tracks else 1] + WEIGHTS[2]]])


@pytest.mark.parametrize("mode, test", [
    ("BRANCH_LEQ", np.less_equal), ("BRANCH_LT", np.less), ("BRANCH_GTE", np.greater_equal),
    ("BRANCH_GT", np.greater), ("BRANCH_EQ", np.equal), ("BRANCH_NEQ", np.not_equal)])
def test_modes(mode, test):
    x = np.array([[-1], [0.5], [1], [np.nan]], np.float32)
    y = run("TreeEnsembleRegressor", x, F, nodes_treeids=[0] * 3, nodes_nodeids=[0, 1, 2],
            nodes_featureids=[0] * 3, nodes_values=[0.5, 0, 0], nodes_modes=[mode, "LEAF", "LEAF"],
            nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], target_treeids=[0, 0],
            target_nodeids=[1, 2], target_ids=[0, 0], target_weights=[1.0, -1.0])
    assert y.reshape(-1).tolist() == np.where(test(x[:, 0], 0.5), 1, -1).tolist()


def random_forest(rng, trees, depth, features):
    """Full trees in the older form, and a function that walks them."""
    inner, leaves = 2**depth - 1, 2**depth
    count = inner + leaves
    table = {
        "nodes_treeids": np.repeat(np.arange(trees), count),
        "nodes_nodeids": np.tile(np.arange(count), trees),
        "nodes_featureids": rng.integers(0, features, trees * count),
        "nodes_values": rng.standard_normal(trees * count).astype(np.float32),
        "nodes_modes": (["BRANCH_LEQ"] * inner + ["LEAF"] * leaves) * trees,
        "nodes_truenodeids": np.tile(np.r_[2 * np.arange(inner) + 1, np.zeros(leaves, int)], trees),
        "nodes_falsenodeids": np.tile(np.r_[2 * np.arange(inner) + 2, np.zeros(leaves, int)],
                                      trees),
        "target_treeids": np.repeat(np.arange(trees), leaves),
        "target_nodeids": np.tile(np.arange(inner, count), trees),
        "target_ids": np.zeros(trees * leaves, int),
        "target_weights": rng.standard_normal(trees * leaves).astype(np.float32),
    }
    order = rng.permutation(trees * count)  # the order of the rows means nothing
    rows = {k: [v[i] for i in order] if isinstance(v, list) else v[order]
            for k, v in table.items() if k.startswith("nodes")}

    def walk(x):
        total = 0.0
        for t in range(trees):
            at = 0
            while at < inner:
                i = t * count + at
                down = x[table["nodes_featureids"][i]] <= table["nodes_values"][i]
                at = 2 * at + (1 if down else 2)
            total += float(table["target_weights"][t * leaves + at - inner])
        return total

    return table | rows, walk


@pytest.mark.parametrize("trees, depth", [(1, 0), (3, 2), (100, 5), (700, 3)])
def test_random_forests(trees, depth):
    rng = np.random.default_rng(trees)
    table, walk = random_forest(rng, trees, depth, 6)
    x = rng.standard_normal((37, 6)).astype(np.float32)
    y = run("TreeEnsembleRegressor", x, F, **table)
    close(y[:, 0], [walk(row) for row in x])


BASE = {"n_targets": 1, "tree_roots": [0], "nodes_featureids": [0], "leaf_targetids": [0, 0],
        "nodes_truenodeids": [0], "nodes_falsenodeids": [1], "nodes_trueleafs": [1],
        "nodes_falseleafs": [1]}


def tensors(modes, splits, weights, dtype=np.float32, **more):
    made = {"nodes_modes": np.array(modes, np.uint8), "nodes_splits": np.array(splits, dtype),
            "leaf_weights": np.array(weights, dtype),
            **{k: np.array(v, dtype) for k, v in more.items()}}
    return {k: numpy_helper.from_array(v, k) for k, v in made.items()}


@pytest.mark.parametrize("dtype, elem_type", [(np.float16, TensorProto.FLOAT16), (np.float64, D),
                                              (np.float32, F)])
def test_membership(dtype, elem_type):
    x = np.array([[1], [2], [3], [4], [np.nan]], dtype)
    y = run("TreeEnsemble", x, elem_type, version=5, **BASE,
            **tensors([6], [0], [5, -5], dtype, membership_values=[1, 3, 4, np.nan]))
    assert y.dtype == dtype and y.reshape(-1).tolist() == [5, -5, 5, 5, -5]


def test_two_sets_of_members():
    given = BASE | {"nodes_featureids": [0, 0], "nodes_truenodeids": [0, 1],
                    "nodes_falsenodeids": [1, 2], "nodes_trueleafs": [1, 1],
                    "nodes_falseleafs": [0, 1], "leaf_targetids": [0, 0, 0]}
    y = run("TreeEnsemble", np.array([[1], [2], [3], [9]], np.float32), F, version=5, **given,
            **tensors([6, 6], [0, 0], [1, 2, 3], membership_values=[1, 9, np.nan, 2]))
    assert y.reshape(-1).tolist() == [1, 2, 3, 1]


@pytest.mark.parametrize("change", [
    {"nodes_truenodeids": [9, 0, 0, 1, 0, 3, 0, 0]},   # no such node
    {"nodes_truenodeids": [0, 0, 0, 1, 0, 3, 0, 0]},   # its own child
    {"nodes_truenodeids": [1, 0, 0, 1, 0, 0, 0, 0]},   # a cycle
    {"nodes_featureids": [5, 0, 0, 1, 0, 0, 0, 0]},    # more features than x has
    {"nodes_featureids": [-1, 0, 0, 1, 0, 0, 0, 0]},
    {"nodes_modes": ["BRANCH_MAYBE"] + NODES["nodes_modes"][1:]},
    {"nodes_nodeids": [0, 0, 2, 0, 1, 2, 3, 4]},       # listed twice
    {"nodes_values": [0.0]}, {"target_ids": [0, 0, 0, 0, 3]}, {"target_nodeids": [1, 2, 1, 3, 9]},
    {"n_targets": 0}, {"base_values": [1.0, 2.0]},
])
def test_trees_that_are_none(change):
    with pytest.raises(rlx.Error) as caught:
        run("TreeEnsembleRegressor", X, F, **(NODES | votes("target", [0] * 5, WEIGHTS) | change))
    assert caught.value.op == "TreeEnsembleRegressor"
    assert not isinstance(caught.value, rlx.InternalError)


@pytest.mark.parametrize("change", [
    {"tree_roots": [3]}, {"tree_roots": [-1]}, {"nodes_falsenodeids": [2]},
    {"nodes_falseleafs": [0], "nodes_falsenodeids": [0]}, {"leaf_targetids": [0, 4]},
    {"aggregate_function": 4}, {"post_transform": 9}, {"leaf_targetids": [0]},
])
def test_new_trees_that_are_none(change):
    with pytest.raises(rlx.Error) as caught:
        run("TreeEnsemble", X, F, version=5, **(BASE | change), **tensors([0], [0], [1, 2]))
    assert not isinstance(caught.value, rlx.InternalError)
