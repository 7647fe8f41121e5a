"""The dims pass: dims that a guard makes equal are written alike, and stay guarded."""

import numpy as np
import pytest

from rlx.errors import InputError
from rlx.ir.evaluate import AssumptionFailed, evaluate_graph
from rlx.ir.expr import Symbol, apply, symbol
from rlx.ir.graph import tensor
from rlx.ir.prims import Region
from rlx.ir.types import DType
from tests.passes.equivalence import check, counts, graph_of, model_of, node

SHAPES = {"past": ["p", 4], "new": ["n", 4], "mask": ["total", 1]}
NODES = [node("Concat", "past new", "all", axis=0), node("Tanh", "all", "t"),
         node("Mul", "t mask", "m"), node("Add", "m all", "y")]


def arrays(total=5):
    rng = np.random.default_rng(0)
    return {"past": rng.normal(size=(3, 4)), "new": rng.normal(size=(2, 4)),
            "mask": rng.normal(size=(total, 1))}


def test_a_dim_equal_to_a_sum_lets_regions_meet():
    model = model_of(NODES, SHAPES, ["y"], dtype=np.float64)
    assert counts(graph_of(model, ["regions"])) == {"Move": 1, "Region": 2}
    graph = check(model, arrays(), ["dims", "regions"])
    assert counts(graph) == {"Move": 1, "Region": 1}


def test_the_equality_is_still_checked():
    graph = graph_of(model_of(NODES, SHAPES, ["y"], dtype=np.float64), ["dims"])
    with pytest.raises((AssumptionFailed, InputError)):
        evaluate_graph(graph, arrays(total=1))


def test_numbers_inside_primitives_follow():
    nodes = [node("Add", "x y", "s"), node("Concat", "s x", "y2", axis=0)]
    model = model_of(nodes, {"x": ["n", 4], "y": ["m", 4]}, ["y2"], dtype=np.float64)
    rng = np.random.default_rng(0)
    graph = check(model, {k: rng.normal(size=(3, 4)) for k in "xy"}, ["dims"])
    region = next(n.prim for n in graph.nodes if isinstance(n.prim, Region))
    assert region.shape == graph.inputs[0].shape == graph.inputs[1].shape


def test_dims_are_known_not_to_be_negative():
    x = tensor(DType.FLOAT32, [])
    n, m = (symbol(Symbol("dim", x, k)) for k in range(2))
    assert apply("max", 0, n) is n
    total = apply("add", apply("mul", n, 2), m)
    assert apply("max", total, 0) is total
    assert apply("le", 0, total) == 1
    less = apply("sub", n, 1)
    assert apply("max", 0, less) is not less
    element = symbol(Symbol("element", x, 0))
    assert apply("max", 0, element) is not element
