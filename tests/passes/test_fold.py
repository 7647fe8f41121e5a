"""The fold pass: constants of any size are computed once, results that would blow up are not."""

import sys

import numpy as np
import pytest

from rlx.ir.evaluate import evaluate_graph
from tests.passes.equivalence import check, counts, graph_of, model_of, node
from tests.passes.random_graphs import random_graph


@pytest.mark.parametrize("seed", range(25))
def test_random_graphs_keep_their_results(seed):
    model, inputs = random_graph(np.random.default_rng(seed))
    check(model, inputs, ["fold"])


def weights(*shape, dtype=np.float64):
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


def test_a_large_transposed_weight_becomes_a_constant():
    model = model_of([node("Transpose", "w", "t", perm=[1, 0]), node("MatMul", "x t", "y")],
                     {"x": ["n", 200]}, ["y"], {"w": weights(300, 200)}, dtype=np.float64)
    graph = check(model, {"x": weights(3, 200)}, ["fold"])
    assert counts(graph) == {"MatMul": 1}


def test_a_chain_through_an_alias_is_folded():
    nodes = [node("Transpose", "w", "t", perm=[1, 0]), node("Reshape", "t s", "r"),
             node("Mul", "r k", "m"), node("Add", "x m", "y")]
    model = model_of(nodes, {"x": ["n", 100]}, ["y"],
                     {"w": weights(300, 200), "s": np.array([600, 100]), "k": weights(100)},
                     dtype=np.float64)
    graph = check(model, {"x": weights(1, 100)}, ["fold"])
    assert counts(graph) == {"Region": 1}


@pytest.mark.parametrize("hidden, regions", [([], 0), ([1], 1), ([0, 1, 2], 1)])
def test_a_choice_by_a_constant_that_is_the_same_everywhere(hidden, regions):
    """As ONNX writes attention out: rows of a mask that hide every key give zeros."""
    mask = np.zeros((3, 4))
    mask[hidden] = -1e30
    nodes = [node("Softmax", "x", "p"), node("ReduceMax", "mask axes", "most"),
             node("Less", "most least", "none"), node("Where", "none zero p", "q"),
             node("MatMul", "q v", "y")]
    model = model_of(nodes, {"x": [2, 3, 4]}, ["y"],
                     {"mask": mask, "axes": np.array([-1]), "least": np.array(-1e20),
                      "zero": np.zeros(1), "v": weights(4, 5)}, opset=18, dtype=np.float64)
    graph = check(model, {"x": weights(2, 3, 4)}, ["fold", "dedupe"])
    assert counts(graph)["Region"] == regions  # zeros would have to be spread


def test_native_types_are_kept():
    w = weights(200, 200, dtype=np.float16)
    nodes = [node("Add", "w w", "v"), node("Mul", "x v", "y")]
    model = model_of(nodes, {"x": [200]}, ["y"], {"w": w}, dtype=np.float16)
    graph = graph_of(model, ["fold"])
    (constant,) = [v for v in graph.nodes[-1].inputs if v.is_const]
    assert constant.const.dtype == np.float16
    np.testing.assert_array_equal(constant.const, w + w)  # doubling is exact


def test_spreading_a_small_constant_is_left_to_its_reader():
    nodes = [node("Expand", "w s", "e"), node("Add", "x e", "y")]
    model = model_of(nodes, {"x": [200, 300]}, ["y"],
                     {"w": weights(1, 300), "s": np.array([200, 300])}, dtype=np.float64)
    graph = check(model, {"x": weights(200, 300)}, ["fold"])
    assert counts(graph) == {"Region": 2}


def test_what_grows_much_is_computed_again():
    nodes = [node("Mul", "a b", "outer"), node("Add", "x outer", "y")]
    model = model_of(nodes, {"x": [600, 500]}, ["y"],
                     {"a": weights(600, 1), "b": weights(1, 500)}, dtype=np.float64)
    graph = check(model, {"x": weights(600, 500)}, ["fold"])
    assert counts(graph) == {"Region": 2}  # 2.4 MB from 9 KB


def test_what_a_large_result_reads_is_still_folded():
    nodes = [node("Neg", "a", "n"), node("Mul", "n b", "outer"), node("Add", "x outer", "y")]
    a = weights(20000, 1)
    model = model_of(nodes, {"x": [20000, 20]}, ["y"], {"a": a, "b": weights(1, 20)},
                     dtype=np.float64)
    graph = check(model, {"x": weights(20000, 20)}, ["fold"])
    assert counts(graph) == {"Region": 2}


def test_all_growth_together_is_bounded(monkeypatch):
    two_weights = 2 * 3 * 200 * 150  # float32 from int8: three bytes more an element
    monkeypatch.setattr(sys.modules["rlx.passes.fold"], "BUDGET", two_weights)
    nodes = [node("Cast", f"w{i}", f"f{i}", to=1) for i in range(3)]
    nodes += [node("MatMul", f"{'x' if i == 0 else f'm{i - 1}'} f{i}", f"m{i}") for i in range(3)]
    w = {f"w{i}": np.full((200, 150) if i == 1 else (150, 200), i + 1, np.int8) for i in range(3)}
    model = model_of(nodes, {"x": ["n", 150]}, ["m2"], w)
    x = np.full((2, 150), 2, np.float32)  # all sums are exact
    graph = check(model, {"x": x}, ["fold"])
    assert counts(graph) == {"MatMul": 3, "Region": 1}


def test_what_layers_have_in_common_is_computed_once(monkeypatch):
    """Exporters write a mask out for each layer."""
    module, computed = sys.modules["rlx.passes.fold"], []
    plain = module.reference
    monkeypatch.setattr(module, "reference",
                        lambda prim, *rest: computed.append(prim) or plain(prim, *rest))
    nodes, last = [], "x"
    for i in range(4):
        nodes += [node("Reshape", "w s", f"r{i}"), node("Exp", f"r{i}", f"e{i}"),
                  node("MatMul", f"{last} e{i}", f"m{i}")]
        last = f"m{i}"
    model = model_of(nodes, {"x": ["n", 200]}, [last],
                     {"w": weights(100, 400), "s": np.array([200, 200])}, dtype=np.float64)
    graph = check(model, {"x": weights(3, 200) / 1e3}, ["fold"])
    assert counts(graph) == {"MatMul": 4}
    assert len(computed) == 1


def test_zeros_of_two_signs_are_two_constants():
    """As attributes they compare equal; what comes of negative numbers differs in its sign."""
    nodes = [node("Gemm", "w v", "a", alpha=0.0), node("Gemm", "w v", "b", alpha=-0.0),
             node("Div", "one a", "c"), node("Div", "one b", "d"), node("Greater", "x zero", "g"),
             node("Where", "g c d", "y")]
    constants = {"w": -np.ones((300, 100), np.float32), "v": np.ones((100, 100), np.float32),
                 "one": np.float32(1), "zero": np.float32(0)}
    model = model_of(nodes, {"x": [300, 100]}, ["y"], constants)
    x = weights(300, 100, dtype=np.float32)
    found = evaluate_graph(graph_of(model, ["fold"]), {"x": x})
    np.testing.assert_array_equal(found["y"], np.where(x > 0, -np.inf, np.inf))


def test_random_numbers_are_drawn_on_each_run():
    model = model_of([node("RandomNormal", "", "r", shape=[4]), node("Add", "x r", "y")],
                     {"x": [4]}, ["y"])
    assert counts(graph_of(model, ["fold"])) == {"Random": 1, "Region": 1}
