"""ai.onnx.ml: values worked out by hand or in float64 NumPy from the operators' text."""

import math

import numpy as np
from onnx import TensorProto, helper
import pytest

import rlx
from tests.api.toys import F, I, node, value
from tests.tolerance import tolerance

S, D = TensorProto.STRING, TensorProto.DOUBLE
X = np.array([[1, 2], [-1, 0.5], [0.1, 0.1]], np.float32)
NUMPY = {np.dtype(object): S}


def run(op, x, *outputs, version=4, **attributes):
    """The outputs of one node of ai.onnx.ml on x, each of the given element type."""
    names = [f"y{k}" for k in range(len(outputs))]
    elem_type = NUMPY.get(x.dtype) or helper.np_dtype_to_tensor_dtype(x.dtype)
    made = helper.make_node(op, ["x"], names, name="only", domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph([made], "g", [value("x", elem_type, [None] * x.ndim)],
                              [value(n, t) for n, t in zip(names, outputs)])
    model = helper.make_model(graph, ir_version=9, opset_imports=[
        helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", version)])
    found = list(rlx.run(model, {"x": x}).values())
    return found[0] if len(outputs) == 1 else found


def texts(*words):
    return np.array(words, object)


def close(got, expected):
    np.testing.assert_allclose(got, expected, **tolerance("norm", "float32"))


def test_scaler():
    close(run("Scaler", X, F, offset=[0.5], scale=[2.0]), (X - 0.5) * 2)
    close(run("Scaler", X.astype(np.int64), F, offset=[1, 2], scale=[2, 3]),
          (X.astype(np.int64) - [1, 2]) * [2, 3])


@pytest.mark.parametrize("norm, divisors", [("MAX", [1, 1, -1]), ("L1", [4, 1, 3]),
                                            ("L2", [math.sqrt(10), 1, math.sqrt(5)])])
def test_normalizer(norm, divisors):
    x = np.array([[1, -3], [0, 0], [-1, -2]], np.float32)
    close(run("Normalizer", x, F, norm=norm), x / np.array(divisors)[:, None])


def test_binarizer():
    assert run("Binarizer", X, F, threshold=0.1).tolist() == [[1, 1], [0, 1], [0, 0]]
    x = np.array([-1, 0, 1, 2])
    assert run("Binarizer", x, I, threshold=0.5).tolist() == [0, 0, 1, 1]
    assert run("Binarizer", x, I, threshold=-0.5).tolist() == [0, 1, 1, 1]


def test_imputer():
    x = np.array([[np.nan, 1], [2, np.nan]], np.float32)
    nan = float("nan")
    assert run("Imputer", x, F, imputed_value_floats=[5.0, 6.0],
               replaced_value_float=nan).tolist() == [[5, 1], [2, 6]]
    assert run("Imputer", np.array([[-1, 3]]), I, imputed_value_int64s=[9],
               replaced_value_int64=-1).tolist() == [[9, 3]]


def test_array_feature_extractor():
    graph = helper.make_graph(
        [helper.make_node("ArrayFeatureExtractor", ["x", "i"], ["y"], domain="ai.onnx.ml")], "g",
        [value("x", F, [None, None]), value("i", I, [None])], [value("y")])
    made = helper.make_model(graph, ir_version=9, opset_imports=[
        helper.make_opsetid("ai.onnx.ml", 1)])
    assert rlx.run(made, {"x": X[:2], "i": np.array([1, 1, 0])})["y"].tolist() == [
        [2, 2, 1], [0.5, 0.5, -1]]


def test_feature_vectorizer():
    graph = helper.make_graph(
        [helper.make_node("FeatureVectorizer", ["x", "i"], ["y"], domain="ai.onnx.ml",
                          inputdimensions=[2, 1])], "g",
        [value("x", F, [None, 2]), value("i", I, [None, 1])], [value("y")])
    made = helper.make_model(graph, ir_version=9, opset_imports=[
        helper.make_opsetid("ai.onnx.ml", 1)])
    y = rlx.run(made, {"x": X[:2], "i": np.array([[7], [8]])})["y"]
    assert y.dtype == np.float32 and y.tolist() == [[1, 2, 7], [-1, 0.5, 8]]


def test_one_hot_encoder():
    x = np.array([[1, 5], [2, 1]])
    hot = [[[1, 0, 0], [0, 0, 0]], [[0, 1, 0], [1, 0, 0]]]
    assert run("OneHotEncoder", x, F, cats_int64s=[1, 2, 3]).tolist() == hot
    assert run("OneHotEncoder", x + np.float32(0.7), F, cats_int64s=[1, 2, 3]).tolist() == hot
    assert run("OneHotEncoder", texts("b", "?"), F, cats_strings=["a", "b"]).tolist() == [
        [0, 1], [0, 0]]
    with pytest.raises(rlx.InputError, match="OneHotEncoder"):
        run("OneHotEncoder", x, F, cats_int64s=[1, 2, 3], zeros=0)
    assert run("OneHotEncoder", x, F, cats_int64s=[1, 2, 5], zeros=0).sum() == 4


def test_label_encoder():
    x = texts("Amy", "?", "Sally")
    assert run("LabelEncoder", x, I, keys_strings=["Amy", "Sally"],
               values_int64s=[5, 6]).tolist() == [5, -1, 6]
    y = run("LabelEncoder", np.array([np.nan, 2, 3], np.float32), S, keys_floats=[float("nan"), 3],
            values_strings=["nothing", "three"], default_string="?")
    assert y.tolist() == ["nothing", "?", "three"]
    tables = {name: helper.make_tensor(name, D, [2], v)
              for name, v in (("keys_tensor", [1, 2]), ("values_tensor", [0.5, 0.25]))}
    y = run("LabelEncoder", np.array([2.0, 7.0]), D, **tables,
            default_tensor=helper.make_tensor("d", D, [1], [9]))
    assert y.dtype == np.float64 and y.tolist() == [0.25, 9]


def test_labels_and_categories_both_ways():
    options = {"classes_strings": ["a", "b"], "default_string": "none", "default_int64": 7}
    assert run("LabelEncoder", texts("b", "x"), I, version=1, **options).tolist() == [1, 7]
    assert run("LabelEncoder", np.array([0, 5]), S, version=1, **options).tolist() == ["a", "none"]
    options = {"cats_int64s": [10, 20], "cats_strings": ["a", "b"]}
    assert run("CategoryMapper", texts("b", "x"), I, **options).tolist() == [20, -1]
    assert run("CategoryMapper", np.array([10, 5]), S, **options).tolist() == ["a", "_Unused"]


# -- linear models and support vectors ----------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-np.asarray(x, np.float64)))


def test_linear_regressor():
    table = np.array([[1, 2], [3, 4]])
    y = X.astype(np.float64) @ table.T + [0.1, 0.2]
    given = {"coefficients": [1.0, 2, 3, 4], "intercepts": [0.1, 0.2], "targets": 2}
    close(run("LinearRegressor", X, F, **given), y)
    close(run("LinearRegressor", X[0], F, **given), y[:1])
    softmax = np.exp(y) / np.exp(y).sum(1, keepdims=True)
    close(run("LinearRegressor", X, F, post_transform="SOFTMAX", **given), softmax)


def test_linear_classifier_of_one_score():
    score = X.astype(np.float64) @ [0.3, 0.2] - 0.1
    given = {"coefficients": [0.3, 0.2], "intercepts": [-0.1]}
    for transform, first, second in (("NONE", 1 - score, score),
                                     ("LOGISTIC", sigmoid(-score), sigmoid(score))):
        label, z = run("LinearClassifier", X, S, F, classlabels_strings=["no", "yes"],
                       post_transform=transform, **given)
        assert label.tolist() == ["yes", "no", "no"]
        close(z, np.stack([first, second], 1))


def test_linear_classifier_of_several_scores():
    table = np.array([[0.3, 0.2], [-0.1, 0.4], [0, 0.1]])
    score = X.astype(np.float64) @ table.T + [-0.1, 0, 0.05]
    label, z = run("LinearClassifier", X, I, F, coefficients=table.reshape(-1).tolist(),
                   intercepts=[-0.1, 0, 0.05], classlabels_ints=[7, 9, 11],
                   post_transform="LOGISTIC")
    assert label.tolist() == np.array([7, 9, 11])[score.argmax(1)].tolist()
    close(z, sigmoid(score))


def kernel(kind, x, v, gamma=0.5, coef0=0.1, degree=3):
    x = np.asarray(x, np.float64)
    if kind == "RBF":
        return np.exp(-gamma * ((x[:, None] - v[None]) ** 2).sum(2))
    dot = x @ v.T
    return {"LINEAR": dot, "POLY": (gamma * dot + coef0) ** degree,
            "SIGMOID": np.tanh(gamma * dot + coef0)}[kind]


@pytest.mark.parametrize("kind", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_svm_regressor(kind):
    vectors = np.array([[1, 0], [0, 1]])
    y = kernel(kind, X, vectors) @ [1, -2] + 0.2
    given = {"coefficients": [1.0, -2.0], "support_vectors": [1.0, 0, 0, 1], "n_supports": 2,
             "kernel_type": kind, "kernel_params": [0.5, 0.1, 3.0], "rho": [0.2]}
    close(run("SVMRegressor", X, F, **given), y[:, None])
    assert run("SVMRegressor", X, F, one_class=1, **given).reshape(-1).tolist() == np.where(
        y > 0, 1, -1).tolist()


SVC = {"support_vectors": [1.0, 0, 0, 1, 1, 1], "vectors_per_class": [1, 1, 1],
       "coefficients": [1.0, -2, 0.5, 0.3, -0.4, 0.7], "kernel_type": "RBF",
       "kernel_params": [0.5, 0.1, 3.0], "rho": [0.2, 0.1, -0.3], "classlabels_ints": [7, 9, 11]}


def margins():
    near = kernel("RBF", X, np.array([[1, 0], [0, 1], [1, 1]]))
    table = np.array([[1, -2, 0.5], [0.3, -0.4, 0.7]])
    pairs = [(0, 1), (0, 2), (1, 2)]
    return np.stack([table[j - 1, i] * near[:, i] + table[i, j] * near[:, j] + SVC["rho"][k]
                     for k, (i, j) in enumerate(pairs)], 1)


def test_svm_classifier_of_three_classes():
    m = margins()
    votes = np.stack([(m[:, 0] > 0) * 1 + (m[:, 1] > 0), (m[:, 0] <= 0) * 1 + (m[:, 2] > 0),
                      (m[:, 1] <= 0) * 1 + (m[:, 2] <= 0)], 1)
    label, z = run("SVMClassifier", X, I, F, **SVC)
    assert label.tolist() == np.array([7, 9, 11])[votes.argmax(1)].tolist()
    close(z, m)


def test_svm_probabilities_are_coupled():
    """p minimises the sum of (r_ji p_i - r_ij p_j)^2 under sum 1, up to the stop of libsvm."""
    a, b = [-1.0, -2.0, -0.5], [0.1, 0.2, 0.3]
    _, p = run("SVMClassifier", X, I, F, **SVC, prob_a=a, prob_b=b)
    np.testing.assert_allclose(p.sum(1), 1, **tolerance("norm", "float32"))
    pairwise = sigmoid(-(margins() * a + b))
    for row, chances in zip(p.astype(np.float64), pairwise):
        r = np.zeros((3, 3))
        r[np.triu_indices(3, 1)] = chances
        r += np.tril(1 - r.T, -1)
        q = -r.T * r
        np.fill_diagonal(q, (r**2).sum(axis=0))
        gaps = q @ row
        assert abs(gaps - row @ gaps).max() < 0.005 / 3


def test_svm_classifier_of_two_classes():
    given = SVC | {"vectors_per_class": [2, 1], "coefficients": [1.0, -2, 0.5], "rho": [0.2],
                   "classlabels_ints": [7, 9]}
    near = kernel("RBF", X, np.array([[1, 0], [0, 1], [1, 1]]))
    m = near @ [1, -2, 0.5] + 0.2
    label, z = run("SVMClassifier", X, I, F, **given)
    assert label.tolist() == np.where(m > 0, 7, 9).tolist()
    close(z, np.stack([-m, m], 1))
    chance = sigmoid(1.5 * m - 0.3)
    _, z = run("SVMClassifier", X, I, F, **given, prob_a=[-1.5], prob_b=[0.3])
    close(z, np.stack([chance, 1 - chance], 1))


def test_svm_classifier_without_vectors_is_linear():
    table = np.array([[1, -2], [0.5, 0.3], [-0.4, 0.7]])
    scores = X.astype(np.float64) @ table.T + 0.2
    label, z = run("SVMClassifier", X, I, F, coefficients=table.reshape(-1).tolist(), rho=[0.2],
                   classlabels_ints=[7, 9, 11])
    assert label.tolist() == np.array([7, 9, 11])[scores.argmax(1)].tolist()
    close(z, scores)


@pytest.mark.parametrize("op, attributes", [
    ("LinearClassifier", {"coefficients": [1.0]}),
    ("LinearClassifier", {"coefficients": [1.0, 2.0, 3.0], "classlabels_ints": [1, 2]}),
    ("SVMRegressor", {"coefficients": [1.0], "rho": [0.1], "n_supports": 2}),
    ("SVMClassifier", SVC | {"rho": [0.1]}), ("SVMClassifier", SVC | {"vectors_per_class": [3]}),
    ("OneHotEncoder", {}), ("OneHotEncoder", {"cats_strings": ["a"]}),
    ("LabelEncoder", {"keys_floats": [1.0], "values_int64s": [1, 2]}),
    ("LabelEncoder", {"keys_int64s": [1], "values_int64s": [1]}), ("LabelEncoder", {}),
])
def test_tables_that_do_not_fit(op, attributes):
    outputs = (I, F) if op.endswith("Classifier") else (F,)
    with pytest.raises(rlx.Error) as caught:
        run(op, X, *outputs, **attributes)
    assert caught.value.op == op and not isinstance(caught.value, rlx.InternalError)


# -- maps ---------------------------------------------------------------------------------------


def test_zip_map_gives_dicts():
    maps = helper.make_sequence_type_proto(helper.make_map_type_proto(
        S, helper.make_tensor_type_proto(F, [])))
    graph = helper.make_graph(
        [node("Softmax", "x", "p"),
         helper.make_node("ZipMap", ["p"], ["z"], domain="ai.onnx.ml",
                          classlabels_strings=["a", "b"])], "g",
        [value("x", F, [None, 2])], [value("p"), helper.make_value_info("z", maps)])
    made = helper.make_model(graph, ir_version=9, opset_imports=[
        helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 1)])
    with rlx.load(made) as session:
        assert session.outputs[1].dtype == "seq(map(string, float32))"
        for x in (X, X[:1], X[:0]):
            got = session.run({"x": x})
            assert got["z"] == [{"a": a, "b": b} for a, b in got["p"].tolist()]


@pytest.mark.parametrize("key_type, value_type, words, given, expected", [
    (S, F, {"string_vocabulary": ["a", "c", "b", "z"]}, {"a": 4.0, "c": 8.0}, [4, 8, 0, 0]),
    (I, D, {"int64_vocabulary": [3, 1]}, {1: 0.5, 7: 9.0}, [0, 0.5]),
    (I, S, {"int64_vocabulary": [3, 1]}, {1: "one"}, ["", "one"]),
    (S, I, {"string_vocabulary": ["a"]}, {}, [0]),
])
def test_dict_vectorizer(key_type, value_type, words, given, expected):
    maps = helper.make_map_type_proto(key_type, helper.make_tensor_type_proto(value_type, []))
    graph = helper.make_graph(
        [helper.make_node("DictVectorizer", ["x"], ["y"], domain="ai.onnx.ml", **words)], "g",
        [helper.make_value_info("x", maps)], [value("y", value_type)])
    made = helper.make_model(graph, ir_version=9, opset_imports=[
        helper.make_opsetid("ai.onnx.ml", 1)])
    with rlx.load(made) as session:
        assert session.run({"x": given})["y"].tolist() == expected
        with pytest.raises(rlx.InputError, match="map"):
            session.run({"x": X})
