"""The patterns pass: activations and norms in the forms that exporters write."""

import math

import numpy as np
import pytest

from rlx.ir.prims import Norm, Region
from tests.passes.equivalence import check, counts, model_of, node

N = {"half": np.array(0.5), "one": np.array(1.0), "two": np.array(2.0), "three": np.array(3.0),
     "r2": np.array(math.sqrt(2)), "i2": np.array(math.sqrt(0.5)),
     "rp": np.array(math.sqrt(2 / math.pi)), "c": np.array(0.044715), "eps": np.array(1e-5),
     "other": np.array(0.45)}
X = {"x": ["n", 5, 6]}


def values():
    return {"x": np.random.default_rng(0).normal(size=(2, 5, 6)) * 2}


def run(nodes, more=(), outputs=("y",)):
    model = model_of(nodes, X, list(outputs), {**N, **dict(more)}, dtype=np.float64)
    return check(model, values(), ["patterns"])


def ops_of(graph):
    return [op.op for n in graph.nodes if isinstance(n.prim, Region) for op in n.prim.ops
            if op.op != "load"]


ERF = {"divided": [node("Div", "x r2", "z")], "multiplied": [node("Mul", "i2 x", "z")]}
GATE = [node("Erf", "z", "e"), node("Add", "e one", "g")]
ORDERS = {
    "x (1 + e) then half": [node("Mul", "x g", "p"), node("Mul", "p half", "y")],
    "half (1 + e) then x": [node("Mul", "half g", "p"), node("Mul", "p x", "y")],
    "half x then (1 + e)": [node("Mul", "half x", "p"), node("Mul", "g p", "y")],
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("argument", ERF)
def test_gelu_by_erf(argument, order):
    assert ops_of(run([*ERF[argument], *GATE, *ORDERS[order]])) == ["gelu"]


CUBE = {"power": [node("Pow", "x three", "q")],
        "products": [node("Mul", "x x", "x2"), node("Mul", "x2 x", "q")],
        "square power": [node("Pow", "x two", "x2"), node("Mul", "x x2", "q")]}
TANH = [node("Mul", "c q", "r"), node("Add", "x r", "s"), node("Mul", "s rp", "t"),
        node("Tanh", "t", "e"), node("Add", "one e", "g")]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("cube", CUBE)
def test_gelu_by_tanh(cube, order):
    assert ops_of(run([*CUBE[cube], *TANH, *ORDERS[order]])) == ["gelu_tanh"]


@pytest.mark.parametrize("nodes, name", [
    ([*ERF["divided"], *GATE, *ORDERS["half x then (1 + e)"]], "gelu"),
    ([*CUBE["power"], *TANH, *ORDERS["half x then (1 + e)"]], "gelu_tanh")])
def test_gelu_with_constants_rounded_to_half(nodes, name):
    constants = {k: v.astype(np.float16) for k, v in N.items()}
    model = model_of(nodes, X, ["y"], constants, dtype=np.float16)
    given = {"x": values()["x"].astype(np.float16)}
    assert ops_of(check(model, given, ["patterns"], ("rounded", "float16"))) == [name]


@pytest.mark.parametrize("order", ORDERS)
def test_gelu_of_what_is_a_product_itself(order):
    nodes = [*CUBE["power"], *TANH, *ORDERS[order]]
    renamed = [node("Mul", "v other", "x"), *nodes]
    model = model_of(renamed, {"v": X["x"]}, ["y"], N, dtype=np.float64)
    assert ops_of(check(model, {"v": values()["x"]}, ["patterns"])) == ["mul", "gelu_tanh"]


def test_silu():
    assert ops_of(run([node("Sigmoid", "x", "s"), node("Mul", "s x", "y")])) == ["silu"]


@pytest.mark.parametrize("nodes", [
    [*ERF["divided"], *GATE, node("Mul", "x g", "p"), node("Mul", "p other", "y")],
    [node("Div", "x two", "z"), *GATE, *ORDERS["half x then (1 + e)"]],
    [*ERF["divided"], *GATE, node("Neg", "x", "w"), node("Mul", "w g", "p"),
     node("Mul", "p half", "y")],
    [node("Neg", "x", "w"), node("Sigmoid", "w", "s"), node("Mul", "s x", "y")],
])
def test_what_only_looks_alike_stays(nodes):
    assert not {"gelu", "gelu_tanh", "silu"} & set(ops_of(run(nodes)))


CENTRED = [node("ReduceMean", "x", "m", axes=[-1]), node("Sub", "x m", "d")]
SQUARES = {"product": [node("Mul", "d d", "s")], "power": [node("Pow", "d two", "s")]}
ROOT = [node("ReduceMean", "s", "v", axes=[-1]), node("Add", "v eps", "e"), node("Sqrt", "e", "r")]
QUOTIENT = {"divided": [node("Div", "d r", "n")],
            "reciprocal": [node("Reciprocal", "r", "i"), node("Mul", "d i", "n")],
            "one over": [node("Div", "one r", "i"), node("Mul", "i d", "n")]}
WEIGHTS = {"g": np.linspace(-1, 2, 6), "b": np.linspace(3, 4, 6)}


@pytest.mark.parametrize("squares", SQUARES)
@pytest.mark.parametrize("quotient", QUOTIENT)
def test_layer_norm(squares, quotient):
    nodes = [*CENTRED, *SQUARES[squares], *ROOT, *QUOTIENT[quotient], node("Mul", "g n", "w"),
             node("Add", "w b", "y")]
    graph = run(nodes, WEIGHTS)
    assert counts(graph) == {"Norm": 1}
    (norm,) = graph.nodes
    assert norm.prim.kind == "layer" and None not in norm.inputs[:3]


def test_layer_norm_over_two_axes():
    nodes = [node("ReduceMean", "x", "m", axes=[1, 2]), node("Sub", "x m", "d"),
             node("Mul", "d d", "s"), node("ReduceMean", "s", "v", axes=[1, 2]), *ROOT[1:],
             node("Div", "d r", "y")]
    graph = run(nodes)
    assert counts(graph) == {"Norm": 1} and graph.nodes[0].prim.axis == 1


@pytest.mark.parametrize("quotient", QUOTIENT)
def test_rms_norm(quotient):
    nodes = [node("Identity", "x", "d"), node("Pow", "d two", "s"), *ROOT, *QUOTIENT[quotient],
             node("Mul", "n g", "y")]
    graph = run(nodes, WEIGHTS)
    assert counts(graph) == {"Norm": 1} and graph.nodes[0].prim.kind == "rms"


@pytest.mark.parametrize("nodes", [
    # The variance is not that of what is divided.
    [*CENTRED, node("Mul", "x x", "s"), *ROOT, node("Div", "d r", "y")],
    # The mean is over another axis than the variance.
    [node("ReduceMean", "x", "m", axes=[1]), node("Sub", "x m", "d"), node("Mul", "d d", "s"),
     *ROOT, node("Sub", "d m", "n"), node("Div", "n r", "y")],
    # The axis is not a trailing one.
    [node("ReduceMean", "x", "m", axes=[1]), node("Sub", "x m", "d"), node("Mul", "d d", "s"),
     node("ReduceMean", "s", "v", axes=[1]), *ROOT[1:], node("Div", "d r", "y")],
])
def test_what_is_no_norm_stays(nodes):
    assert not counts(run(nodes))["Norm"]


def test_a_normalised_value_that_is_read_twice_keeps_its_scale_outside():
    nodes = [*CENTRED, *SQUARES["product"], *ROOT, *QUOTIENT["divided"], node("Mul", "n g", "y"),
             node("Neg", "n", "z")]
    graph = run(nodes, WEIGHTS, ("y", "z"))
    (norm,) = [n for n in graph.nodes if isinstance(n.prim, Norm)]
    assert norm.inputs[1] is None


def test_group_norm_written_as_instance_norm():
    rng = np.random.default_rng(3)
    more = {"to": np.array([0, 2, -1]), "back": np.array([2, 6, 4, 5]), "ones": np.ones(2),
            "zeros": np.zeros(2), "g": rng.normal(size=(6, 1, 1)), "b": rng.normal(size=(6, 1, 1))}
    nodes = [node("Reshape", "i to", "r"), node("InstanceNormalization", "r ones zeros", "n"),
             node("Reshape", "n back", "m"), node("Mul", "m g", "w"), node("Add", "w b", "y")]
    model = model_of(nodes, {"i": [2, 6, 4, 5]}, ["y"], more, dtype=np.float64)
    graph = check(model, {"i": rng.normal(size=(2, 6, 4, 5))}, ["patterns"])
    assert counts(graph) == {"Norm": 1}
    (norm,) = graph.nodes
    assert norm.prim.groups == 2 and norm.inputs[1].shape == (6,)
