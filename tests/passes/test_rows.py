"""The rows pass: what follows a reshaped product runs on the product's own rows."""

import numpy as np
import pytest

from tests.passes.equivalence import check, counts, model_of, node

PASSES = ["rows", "regions", "epilogues"]
CONSTANTS = {"w": (8, 6), "c": (6,), "row": (1, 6), "r2": (4, 6), "u": (6, 6)}
GEMM = [node("Gemm", "x w c", "g"), node("Reshape", "g three", "z")]


def run(nodes, outputs=("y",), **more):
    rng = np.random.default_rng(0)
    inputs = {k: rng.normal(size=s).astype(np.float32) for k, s in {"x": (12, 8), **more}.items()}
    constants = {k: rng.normal(size=s).astype(np.float32) for k, s in CONSTANTS.items()}
    constants |= {"three": np.array([3, 4, 6]), "two": np.array([12, 6]),
                  "flat": np.array([6, 12]), "half": np.array(0.5, np.float32)}
    shapes = {k: list(v.shape) for k, v in inputs.items()}
    return counts(check(model_of(nodes, shapes, list(outputs), constants), inputs, PASSES,
                        ("rounded", "float32")))


def test_an_activation_and_a_residual_join_the_product():
    nodes = [*GEMM, node("Tanh", "z", "t"), node("Mul", "half t", "m"), node("Add", "m row", "a"),
             node("Add", "r a", "y")]
    assert run(nodes, r=(3, 4, 6)) == {"MatMul": 1, "Alias": 2}


def test_a_chain_of_layers():
    nodes = [*GEMM, node("Relu", "z", "a"), node("Reshape", "a two", "b"),
             node("MatMul", "b u", "p"), node("Reshape", "p three", "q"), node("Add", "a q", "y")]
    found = run(nodes)
    assert found["MatMul"] == 2 and not found["Region"]


STAY = {
    "others read the reshape": ([node("Tanh", "z", "y"), node("Exp", "z", "v")], ["y", "v"], {}),
    "others read the product": ([node("Tanh", "z", "y"), node("Exp", "g", "v")], ["y", "v"], {}),
    "the reshape is an output": ([node("Tanh", "z", "y")], ["y", "z"], {}),
    "a value for each of some rows": ([node("Add", "z r", "y")], ["y"], {"r": (3, 1, 1)}),
    "a wide constant": ([node("Add", "z r2", "y")], ["y"], {}),
    "it grows": ([node("Add", "z r", "y")], ["y"], {"r": (2, 3, 4, 6)}),
}


@pytest.mark.parametrize("case", STAY)
def test_what_is_not_by_rows_stays(case):
    nodes, outputs, more = STAY[case]
    found = run([*GEMM, *nodes], outputs, **more)
    assert found["Region"] + found["MatMul"] >= 2


def test_other_columns_stay():
    nodes = [node("Gemm", "x w c", "g"), node("Reshape", "g flat", "z"), node("Tanh", "z", "y")]
    assert run(nodes)["Region"] == 1
