"""The siblings pass: queries, keys and values of one input come from one product."""

import numpy as np
import pytest

from rlx.ir.prims import MatMul
from tests.passes.equivalence import check, counts, graph_of, model_of, node

PASSES = ["dims", "fold", "dedupe", "regions", "attention", "epilogues", "prune", "siblings"]
B, S, H, D = 2, 5, 2, 4
WIDTH = H * D
ATTEND = [node("Transpose", "k", "kt", perm=[0, 1, 3, 2]), node("MatMul", "q kt", "s"),
          node("Softmax", "s", "p", axis=-1), node("MatMul", "p v", "y")]
HEADS = np.array([0, 0, H, D])


def projected(name, source="x", bias=True):
    nodes = [node("MatMul", f"{source} w{name}", f"{name}0")]
    nodes += [node("Add", f"{name}0 b{name}", f"{name}1")] if bias else [
        node("Identity", f"{name}0", f"{name}1")]
    return [*nodes, node("Reshape", f"{name}1 heads", f"{name}2"),
            node("Transpose", f"{name}2", name, perm=[0, 2, 1, 3])]


def constants(seed=0, inner=6):
    rng = np.random.default_rng(seed)
    made = {f"w{n}": rng.normal(size=(inner, WIDTH)) / 2 for n in "qkv"}
    made |= {f"b{n}": rng.normal(size=WIDTH) for n in "qkv"}
    return {n: a.astype(np.float32) for n, a in made.items()} | {"heads": HEADS}


def products(nodes, outputs=("y",), more=(), shapes=("x",)):
    inputs = {n: np.random.default_rng(k).normal(size=(B, S, 6)).astype(np.float32)
              for k, n in enumerate(shapes)}
    model = model_of(nodes, {n: ["b", "s", 6] for n in shapes}, list(outputs),
                     constants() | dict(more))
    graph = check(model, inputs, PASSES, ("rounded", "float32"))
    return sorted(n.inputs[1].shape[1] for n in graph.nodes if isinstance(n.prim, MatMul))


@pytest.mark.parametrize("bias", [True, False])
def test_three_projections_are_one(bias):
    nodes = [part for n in "qkv" for part in projected(n, bias=bias)]
    assert products([*nodes, *ATTEND]) == [3 * WIDTH]


def test_keys_and_values_of_another_input_are_one():
    nodes = [part for n in "qkv" for part in projected(n, "x" if n == "q" else "z")]
    assert products([*nodes, *ATTEND], shapes=("x", "z")) == [WIDTH, 2 * WIDTH]


STAY = {
    "another reader": ([node("Relu", "k1", "r")], ["y", "r"]),
    "an output": ([], ["y", "k1"]),
    "another epilogue": ([], ["y"]),
}


@pytest.mark.parametrize("case", STAY)
def test_others_stay_alone(case):
    more, outputs = STAY[case]
    nodes = [part for n in "qkv" for part in projected(n)]
    if case == "another epilogue":
        nodes[5] = node("Sub", "k0 bk", "k1")
    assert products([*nodes, *ATTEND, *more], outputs) == [WIDTH, 2 * WIDTH]


def test_computed_weights_and_odd_widths_stay():
    nodes = [part for n in "qkv" for part in projected(n)]
    shapes = {"x": ["b", "s", 6], "wk": [6, WIDTH], "wq": [6, WIDTH]}
    fixed = {n: a for n, a in constants().items() if n not in ("wk", "wq")}
    graph = graph_of(model_of([*nodes, *ATTEND], shapes, ["y"], fixed), PASSES)
    assert counts(graph)["MatMul"] == 3
    odd = {n: a[..., :6] for n, a in constants().items()} | {"heads": np.array([0, 0, 2, 3])}
    graph = graph_of(model_of([*nodes, *ATTEND], {"x": ["b", "s", 6]}, ["y"], odd), PASSES)
    assert counts(graph)["MatMul"] == 3
