"""The regions pass: elementwise chains run as one Region, whatever reads what."""

import numpy as np
import pytest

from tests.passes.equivalence import check, counts, graph_of, model_of, node
from tests.passes.random_graphs import random_graph

X = {"x": ["n", 4]}


def values(*shape):
    return {"x": np.random.default_rng(1).normal(size=shape or (3, 4))}


@pytest.mark.parametrize("seed", range(30))
def test_random_graphs_keep_their_results(seed):
    model, inputs = random_graph(np.random.default_rng(seed))
    before, after = counts(graph_of(model, [])), counts(check(model, inputs, ["regions"]))
    assert after["Region"] <= before["Region"]


def chain(length):
    ops = ["Tanh", "Neg", "Abs", "Sigmoid"]
    names = ["x", *(f"v{i}" for i in range(length - 1)), "y"]
    return [node(ops[i % 4], names[i], names[i + 1]) for i in range(length)]


def test_a_chain_is_one_region():
    graph = check(model_of(chain(40), X, ["y"], dtype=np.float64), values(), ["regions"])
    assert counts(graph) == {"Region": 1} and len(graph.nodes[0].inputs) == 1


def test_axes_of_one_do_not_keep_a_chain_apart():
    nodes = [node("Tanh", "x", "t"), node("Add", "t b", "a"), node("Neg", "a", "y")]
    model = model_of(nodes, {"x": [1, 3, 1, 4]}, ["y"], {"b": np.ones((1, 1, 1, 4))},
                     dtype=np.float64)
    graph = check(model, values(1, 3, 1, 4), ["regions"])
    assert counts(graph) == {"Region": 1}


def test_a_very_long_chain_is_cut():
    graph = check(model_of(chain(1500), X, ["y"], dtype=np.float64), values(), ["regions"])
    assert 1 < counts(graph)["Region"] < 5


def test_a_value_that_others_read_is_a_result():
    nodes = [node("Tanh", "x", "t"), node("MatMul", "t w", "m"), node("Neg", "t", "a"),
             node("Add", "a m", "y")]
    model = model_of(nodes, X, ["y", "t"], {"w": np.eye(4)[::-1].copy()}, dtype=np.float64)
    graph = check(model, values(), ["regions"])
    assert counts(graph) == {"Region": 2, "MatMul": 1}


def test_both_sides_of_a_diamond_meet():
    nodes = [node("Tanh", "x", "t"), node("Neg", "t", "a"), node("Exp", "t", "b"),
             node("Mul", "a b", "y")]
    graph = check(model_of(nodes, X, ["y"], dtype=np.float64), values(), ["regions"])
    assert counts(graph) == {"Region": 1}


def test_nothing_moves_across_what_it_depends_on():
    nodes = [node("Tanh", "x", "t"), node("ReduceSum", "t", "r"), node("Sub", "t r", "y")]
    graph = check(model_of(nodes, X, ["y"], dtype=np.float64), values(), ["regions"])
    assert counts(graph) == {"Region": 2, "Reduce": 1}


def test_an_expand_is_read_through():
    constants = {"s": np.array([3, 4])}
    nodes = [node("Expand", "x s", "e"), node("Exp", "e", "y")]
    graph = check(model_of(nodes, {"x": [3, 1]}, ["y"], constants, dtype=np.float64),
                  values(3, 1), ["regions"])
    assert counts(graph) == {"Region": 1}
    (region,) = graph.nodes
    assert region.inputs[0] is graph.inputs[0]


def test_computed_work_is_not_repeated_by_a_broadcast():
    nodes = [node("Exp", "x", "e"), node("Add", "e big", "y")]
    model = model_of(nodes, {"x": [3, 1], "big": [3, 4]}, ["y"], dtype=np.float64)
    graph = check(model, {**values(3, 1), "big": values()["x"]}, ["regions"])
    assert counts(graph) == {"Region": 2}


def test_tile_and_repeat_are_read_through():
    constants = {"r": np.array([1, 3])}
    nodes = [node("Tile", "x r", "t"), node("Neg", "t", "y")]
    graph = check(model_of(nodes, {"x": [3, 4]}, ["y"], constants, dtype=np.float64), values(),
                  ["regions"])
    assert counts(graph) == {"Region": 1}


def test_constants_of_one_element_are_inside():
    model = model_of([node("Mul", "x c", "y")], X, ["y"], {"c": np.array([[0.5]])},
                     dtype=np.float64)
    graph = check(model, values(), ["regions"])
    assert len(graph.nodes[0].inputs) == 1
