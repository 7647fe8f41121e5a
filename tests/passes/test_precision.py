"""The halves pass and the option `weights`: half weights are read as they are, sums stay exact."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto

from rlx.importer.importer import import_model
from rlx.importer.reader import read
from rlx.ir.evaluate import evaluate_graph
from rlx.ir.prims import Conv, Gather, MatMul
from rlx.ir.types import DType
from rlx.ir.verify import verify
from rlx.passes import PIPELINE, run_pipeline
from tests.passes.equivalence import check, counts, model_of, node
from tests.tolerance import tolerance

HALF = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
PASSES = ["halves", "fold", "dedupe"]


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def weights_of(graph):
    """The element types of what products, convolutions and Gather read."""
    kinds = {MatMul: 1, Conv: 1, Gather: 0}
    return [n.inputs[kinds[type(n.prim)]].dtype for n in graph.nodes if type(n.prim) in kinds]


def with_half(nodes, constants, shapes, half=np.float16):
    """A model whose constants named h... are stored in a half type."""
    model = model_of(nodes, shapes, ["y"], {n: a for n, a in constants.items() if n[0] != "h"})
    for name, a in constants.items():
        if name[0] == "h":
            model.graph.initializer.append(onnx.numpy_helper.from_array(a.astype(half), name))
    return model


def to_float(source, result):
    return node("Cast", source, result, to=TensorProto.FLOAT)


@pytest.mark.parametrize("nodes, weight", [
    ([to_float("h", "w")], (10, 14)),
    ([to_float("h", "t"), node("Transpose", "t", "w", perm=[1, 0])], (14, 10)),
    ([to_float("h", "t"), node("Reshape", "t two", "w")], (2, 5, 14)),
])
def test_a_weight_is_read_without_its_cast(nodes, weight):
    constants = {"h": normal(*weight), "two": np.array([10, 14])}
    model = with_half([*nodes, node("MatMul", "x w", "y")], constants, {"x": ["n", 10]})
    graph = check(model, {"x": normal(3, 10, seed=1)}, PASSES)
    assert weights_of(graph) == [DType.FLOAT16] and set(counts(graph)) == {"MatMul"}


def test_convolutions_and_gemms_read_halves():
    constants = {"h": normal(4, 3, 3, 3), "b": normal(4)}
    model = with_half([to_float("h", "w"), node("Conv", "x w b", "y")], constants,
                      {"x": ["n", 3, 6, 6]})
    graph = check(model, {"x": normal(2, 3, 6, 6, seed=1)}, PASSES)
    assert weights_of(graph) == [DType.FLOAT16]
    model = with_half([to_float("h", "w"), node("Gemm", "x w b", "y", transB=1)],
                      {"h": normal(4, 30), "b": normal(4)}, {"x": ["n", 30]})
    assert weights_of(check(model, {"x": normal(2, 30, seed=1)}, PASSES)) == [DType.FLOAT16]


def test_computed_weights_and_other_readers_keep_the_cast():
    model = model_of([node("Cast", "x", "h", to=TensorProto.FLOAT16), to_float("h", "w"),
                      node("MatMul", "z w", "y")], {"x": [5, 7], "z": [2, 5]}, ["y"])
    graph = check(model, {"x": normal(5, 7), "z": normal(2, 5)}, PASSES, ("rounded", "float16"))
    assert weights_of(graph) == [DType.FLOAT32]
    model = with_half([to_float("h", "w"), node("MatMul", "x w", "p"), node("Add", "p w", "y")],
                      {"h": normal(9, 9)}, {"x": [9, 9]})
    graph = check(model, {"x": normal(9, 9, seed=1)}, PASSES)
    assert weights_of(graph) == [DType.FLOAT16]


def narrowed(model, weights, inputs):
    """The graph with all passes and the option, and that it computes with the rounded weights."""
    graph = run_pipeline(import_model(read(model)), (), weights)
    verify(graph)
    rounded = onnx.ModelProto.FromString(model.SerializeToString())
    for tensor in rounded.graph.initializer:
        if tensor.name.startswith("w"):
            array = onnx.numpy_helper.to_array(tensor).astype(HALF[weights]).astype(np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    graphs = (graph, run_pipeline(import_model(read(rounded)), PIPELINE))
    found, expected = (evaluate_graph(g, inputs, double=True) for g in graphs)
    for name, y in expected.items():
        assert found[name].dtype == y.dtype
        np.testing.assert_allclose(found[name], y, **tolerance("exact order", "float64"))
    return graph


@pytest.mark.parametrize("weights", HALF)
def test_float_weights_become_half(weights):
    model = model_of([node("MatMul", "x w1", "a"), node("Add", "a b", "c"),
                      node("MatMul", "c w2", "d"), node("MatMul", "d w2", "y")],
                     {"x": ["n", 5]}, ["y"],
                     {"w1": normal(5, 6), "w2": normal(6, 6, seed=1), "b": normal(6, seed=2)})
    graph = narrowed(model, weights, {"x": normal(3, 5, seed=3)})
    kind = DType.FLOAT16 if weights == "f16" else DType.BFLOAT16
    assert weights_of(graph) == [kind] * 3
    products = [n for n in graph.nodes if isinstance(n.prim, MatMul)]
    assert products[1].inputs[1] is products[2].inputs[1]


def test_the_pass_can_be_switched_off():
    model = model_of([node("MatMul", "x w", "y")], {"x": ["n", 5]}, ["y"], {"w": normal(5, 6)})
    for weights, disable in (("f16", ["narrow"]), ("", [])):
        graph = run_pipeline(import_model(read(model)), disable, weights)
        assert weights_of(graph) == [DType.FLOAT32]


def test_convolutions_become_half():
    model = model_of([node("Conv", "x w", "y", pads=[1, 1, 1, 1])], {"x": ["n", 3, 6, 6]}, ["y"],
                     {"w": normal(4, 3, 3, 3)})
    assert weights_of(narrowed(model, "f16", {"x": normal(2, 3, 6, 6, seed=1)})) == [DType.FLOAT16]


def test_an_embedding_that_is_a_weight_too_is_gathered_in_half():
    model = model_of([node("Gather", "w i", "e"), node("MatMul", "e w", "y")],
                     {}, ["y"], {"w": normal(6, 6), "seven": np.array(2)})
    model.graph.input.append(onnx.helper.make_tensor_value_info("i", TensorProto.INT64, ["n"]))
    graph = narrowed(model, "bf16", {"i": np.array([3, 0])})
    assert weights_of(graph) == [DType.BFLOAT16] * 2


@pytest.mark.parametrize("more, weight", [
    ([node("Add", "p w", "y")], normal(6, 6)),
    ([node("Identity", "p", "y")], normal(6, 6) * 1e5),
], ids=["another reader", "out of range"])
def test_others_stay(more, weight):
    model = model_of([node("MatMul", "x w", "p"), *more], {"x": [6, 6]}, ["y"], {"w": weight})
    graph = run_pipeline(import_model(read(model)), (), "f16")
    assert weights_of(graph) == [DType.FLOAT32]


def test_bodies_of_ifs_are_narrowed():
    body = [onnx.helper.make_graph([node("MatMul", "x w", name)], name, [], [
        onnx.helper.make_tensor_value_info(name, TensorProto.FLOAT, None)]) for name in "ab"]
    model = model_of([node("If", "c", "y", then_branch=body[0], else_branch=body[1])],
                     {"x": [2, 6]}, ["y"], {"w": normal(6, 6)})
    model.graph.input.append(onnx.helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    graph = run_pipeline(import_model(read(model)), (), "f16")
    (branch,) = (n.prim for n in graph.nodes if type(n.prim).__name__ == "If")
    assert weights_of(branch.then_graph) == weights_of(branch.else_graph) == [DType.FLOAT16]
