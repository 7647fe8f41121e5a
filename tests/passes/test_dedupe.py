"""The dedupe pass: equal computations become one, equal-looking ones do not."""

import numpy as np
import pytest

from tests.passes.equivalence import check, counts, graph_of, model_of, node
from tests.passes.random_graphs import random_graph

X = {"x": ["n", 4]}


def values():
    return {"x": np.random.default_rng(1).normal(size=(3, 4))}


@pytest.mark.parametrize("seed", range(25))
def test_random_graphs_keep_their_results(seed):
    model, inputs = random_graph(np.random.default_rng(seed))
    check(model, inputs, ["dedupe"])


def test_equal_nodes_become_one():
    nodes = [node("Tanh", "x", "a"), node("Tanh", "x", "b"), node("Exp", "a", "c"),
             node("Exp", "b", "d"), node("Mul", "c d", "y")]
    graph = check(model_of(nodes, X, ["y"], dtype=np.float64), values(), ["dedupe"])
    assert counts(graph) == {"Region": 3}


def test_equal_constants_make_equal_nodes():
    c = np.random.default_rng(0).normal(size=(100, 4))
    nodes = [node("MatMul", "c x", "a"), node("MatMul", "d x", "b"), node("Add", "a b", "y")]
    model = model_of(nodes, {"x": [4, 3]}, ["y"], {"c": c, "d": c.copy()}, dtype=np.float64)
    graph = check(model, {"x": values()["x"].T}, ["dedupe"])
    assert counts(graph)["MatMul"] == 1


def test_two_outputs_may_become_one_value():
    nodes = [node("Tanh", "x", "y"), node("Tanh", "x", "z")]
    graph = check(model_of(nodes, X, ["y", "z"], dtype=np.float64), values(), ["dedupe"])
    assert counts(graph) == {"Region": 1}


def test_aliases_of_aliases_look_at_the_source():
    shapes = {"s": np.array([2, 6]), "t": np.array([12]), "u": np.array([3, 4])}
    nodes = [node("Reshape", "x s", "a"), node("Reshape", "a t", "b"), node("Reshape", "b u", "c"),
             node("Add", "c x", "y")]
    model = model_of(nodes, {"x": [3, 4]}, ["y"], shapes, dtype=np.float64)
    graph = check(model, values(), ["dedupe"])
    assert counts(graph) == {"Region": 1}


def test_the_sign_of_zero_tells_constants_apart():
    zeros = {"p": np.array(0.0), "m": np.array(-0.0)}
    nodes = [node("Max", "x p", "a"), node("Max", "x m", "b"), node("Div", "k a", "c"),
             node("Div", "k b", "d"), node("Sub", "c d", "y")]
    model = model_of(nodes, X, ["y"], {**zeros, "k": np.array(1.0)}, dtype=np.float64)
    graph = check(model, values(), ["dedupe"])
    assert counts(graph)["Region"] == 5


def test_random_numbers_differ():
    nodes = [node("RandomNormal", "", "r", shape=[4]), node("RandomNormal", "", "s", shape=[4]),
             node("Sub", "r s", "y")]
    assert counts(graph_of(model_of(nodes, {}, ["y"]), ["dedupe"]))["Random"] == 2
