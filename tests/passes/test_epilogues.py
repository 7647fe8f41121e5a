"""The epilogues pass: what surrounds a product, norm or softmax runs inside it."""

import numpy as np
from onnx import TensorProto
import pytest

from rlx.ir.graph import Graph
from rlx.ir.prims import Norm, Reduce, Softmax
from rlx.ir.types import DType
from tests.passes.equivalence import check, counts, model_of, node

PASSES = ["patterns", "regions", "epilogues"]
ROUNDED = ("rounded", "float32")


def arrays(**shapes):
    rng = np.random.default_rng(0)
    return {k: (rng.normal(size=s) / 2).astype(np.float32) for k, s in shapes.items()}


def run(nodes, inputs, outputs, constants) -> Graph:
    shapes = {k: list(v.shape) for k, v in inputs.items()}
    return check(model_of(nodes, shapes, outputs, constants), inputs, PASSES, ROUNDED)


def batch_norm(channels):
    return arrays(gamma=channels, beta=channels, mean=channels) | {
        "var": np.linspace(0.5, 2, channels, dtype=np.float32)}


BN = "gamma beta mean var"


@pytest.mark.parametrize("op, group, shape", [("Conv", 1, (6, 4, 3, 3)), ("Conv", 2, (6, 2, 3, 3)),
                                              ("ConvTranspose", 1, (4, 6, 3, 3)),
                                              ("ConvTranspose", 2, (4, 3, 3, 3))])
def test_batch_norm_vanishes_into_the_weights(op, group, shape):
    nodes = [node(op, "x w b", "c", group=group), node("BatchNormalization", f"c {BN}", "n"),
             node("Relu", "n", "y")]
    constants = arrays(w=shape, b=6) | batch_norm(6)
    graph = run(nodes, arrays(x=(2, 4, 7, 7)), ["y"], constants)
    assert counts(graph) == {"Conv": 1}
    (conv,) = graph.nodes
    assert len(conv.inputs) == 5  # x, w, no zero points, one bias
    assert "mul" not in [op.op for op in conv.prim.epilogue.ops]


@pytest.mark.parametrize("transposed", [0, 1])
def test_a_scale_behind_a_gemm_vanishes(transposed):
    w = arrays(w=(5, 4) if transposed else (4, 5))
    nodes = [node("Gemm", "x w b", "g", transB=transposed), node("Mul", "g s", "m"),
             node("Sub", "b m", "y")]
    graph = run(nodes, arrays(x=(3, 4)), ["y"], w | arrays(b=5, s=5))
    assert counts(graph) == {"MatMul": 1}
    assert {op.op for op in graph.nodes[0].prim.epilogue.ops} == {"load", "add"}


def test_residual_and_activation_follow_the_convolution():
    nodes = [node("Conv", "x w b", "c", pads=[1, 1, 1, 1]), node("Add", "x c", "a"),
             node("Relu", "a", "y")]
    graph = run(nodes, arrays(x=(2, 4, 5, 5)), ["y"], arrays(w=(4, 4, 3, 3), b=4))
    assert counts(graph) == {"Conv": 1}


def test_a_value_per_row_stays_outside():
    nodes = [node("MatMul", "x w", "m"), node("Mul", "m r", "y")]
    graph = run(nodes, arrays(x=(3, 4), r=(3, 1)), ["y"], arrays(w=(4, 5)))
    assert counts(graph) == {"MatMul": 1, "Region": 1}


@pytest.mark.parametrize("outputs", [["y", "m"], ["y", "z"]])
def test_a_product_that_others_read_stays_bare(outputs):
    nodes = [node("MatMul", "x w", "m"), node("Relu", "m", "y"), node("ReduceMax", "m", "z")]
    graph = run(nodes, arrays(x=(3, 4)), outputs, arrays(w=(4, 5)))
    (product,) = [n for n in graph.nodes if type(n.prim).__name__ == "MatMul"]
    assert product.prim.epilogue is None


def test_a_square_is_not_an_extra_of_itself():
    nodes = [node("MatMul", "x w", "m"), node("Mul", "m m", "y")]
    run(nodes, arrays(x=(3, 4)), ["y"], arrays(w=(4, 5)))


def test_softmax_and_reduce_take_what_is_before_them():
    nodes = [node("Mul", "x c", "m"), node("Add", "m k", "a"), node("Softmax", "a", "s"),
             node("Exp", "s", "e"), node("ReduceSum", "e", "y")]
    graph = run(nodes, arrays(x=(3, 4), k=(3, 4)), ["y"], arrays(c=4))
    assert counts(graph) == {"Softmax": 1, "Reduce": 1}
    assert all(n.prim.prologue for n in graph.nodes if isinstance(n.prim, (Softmax, Reduce)))


@pytest.mark.parametrize("kept", [True, False])
def test_a_norm_keeps_the_sum_that_it_normalises(kept):
    nodes = [node("Add", "x r", "a"), node("LayerNormalization", "a g b", "n")]
    nodes += [node("Add", "a n", "y")] if kept else [node("Neg", "n", "y")]
    graph = run(nodes, arrays(x=(2, 3, 8), r=(2, 3, 8)), ["y"], arrays(g=8, b=8))
    assert counts(graph) == {"Norm": 1, "Region": 1} if kept else {"Norm": 1}
    norm = next(n for n in graph.nodes if isinstance(n.prim, Norm))
    assert norm.prim.prologue is not None
    assert kept == (len(norm.outputs) == 4 and norm.outputs[3] is not None)


@pytest.mark.parametrize("op, attributes", [
    ("LayerNormalization", {}), ("GroupNormalization", {"num_groups": 2}),
    ("InstanceNormalization", {})])
def test_what_follows_a_norm_runs_on_its_rows(op, attributes):
    nodes = [node(op, "x g b", "n", **attributes), node("Sigmoid", "n", "s"),
             node("Mul", "n s", "m"), node("Add", "r m", "y")]
    shape = (2, 4, 3, 4)
    inputs = arrays(x=shape, r=(4, 1, 4))
    shapes = {k: list(v.shape) for k, v in inputs.items()}
    graph = check(model_of(nodes, shapes, ["y"], arrays(g=4, b=4), opset=21), inputs, PASSES,
                  ROUNDED)
    assert counts(graph) == {"Norm": 1} and graph.nodes[0].prim.epilogue is not None


def test_a_norm_of_halves_cast_to_float32_reads_the_halves():
    """As RMS norm is written out for half types: cast, norm, cast back, scale."""
    half, full = TensorProto.FLOAT16, TensorProto.FLOAT
    nodes = [node("Cast", "x", "h", to=half), node("Cast", "r", "k", to=half),
             node("Add", "h k", "a"), node("Cast", "a", "f", to=full),
             node("LayerNormalization", "f g", "n"), node("Cast", "n", "m", to=half),
             node("Add", "a m", "s"), node("Cast", "s", "y", to=full)]
    inputs = arrays(x=(2, 3, 8), r=(2, 3, 8))
    shapes = {k: list(v.shape) for k, v in inputs.items()}
    graph = check(model_of(nodes, shapes, ["y"], arrays(g=8)), inputs, PASSES,
                  ("rounded", "float16"))
    (norm,) = [n for n in graph.nodes if isinstance(n.prim, Norm)]
    assert norm.inputs[0].dtype is DType.FLOAT16


def test_statistics_that_others_read_stay_beside_the_epilogue():
    nodes = [node("LayerNormalization", "x g b", "n mean inv"), node("Neg", "n", "y")]
    graph = run(nodes, arrays(x=(2, 3, 8)), ["y", "mean", "inv"], arrays(g=8, b=8))
    assert counts(graph) == {"Norm": 1}


@pytest.mark.parametrize("seed", range(20))
def test_random_networks_keep_their_results(seed):
    rng = np.random.default_rng(seed)
    nodes, constants, names = [], {}, ["x"]
    for i in range(rng.integers(3, 12)):
        x, other, out = str(rng.choice(names[-2:])), str(rng.choice(names)), f"v{i}"
        pick = rng.integers(7)
        if pick < 2:
            constants[f"w{i}"] = (rng.normal(size=(6, 6)) / 3).astype(np.float32)
            nodes.append(node("MatMul", f"{x} w{i}", out))
        elif pick == 2:
            nodes.append(node(str(rng.choice(["Relu", "Tanh", "Sigmoid"])), x, out))
        elif pick == 3:
            nodes.append(node(str(rng.choice(["Add", "Mul", "Sub"])), f"{x} {other}", out))
        elif pick == 4:
            constants[f"b{i}"] = rng.normal(size=6).astype(np.float32)
            nodes.append(node(str(rng.choice(["Add", "Mul", "Sub", "Div"])), f"{x} b{i}", out))
        elif pick == 5:
            nodes.append(node("Softmax", x, out))
        else:
            constants["g"] = np.linspace(-1, 1, 6, dtype=np.float32)
            nodes.append(node("LayerNormalization", f"{x} g", out))
        names.append(out)
    outputs = list(dict.fromkeys([names[-1], names[len(names) // 2]]))
    outputs = [o for o in outputs if o != "x"]
    run(nodes, {"x": rng.normal(size=(2, 3, 6)).astype(np.float32)}, outputs, constants)
