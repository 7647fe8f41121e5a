"""The widen pass: between convolutions of halves values are float32, at every border half."""

import numpy as np
import onnx
import pytest
from ml_dtypes import bfloat16

import rlx
from rlx.ir.prims import Conv
from rlx.ir.types import DType
from tests.passes.equivalence import check, counts, model_of, node

X = np.random.default_rng(0).normal(size=(1, 3, 6, 5))


def run(nodes, outputs=("y",), dtype=np.float16, passes=("widen",), **extra):
    rng = np.random.default_rng(1)
    constants = {"w": rng.normal(size=(3, 3, 3, 3)).astype(dtype),
                 "b": rng.normal(size=3).astype(dtype), **extra}
    model = model_of(nodes, {"x": list(X.shape)}, list(outputs), constants, opset=22, dtype=dtype)
    inputs = {"x": X.astype(dtype)}
    # References round to the stated type at each step, which this pass takes away.
    return check(model, inputs, list(passes), ("rounded", np.dtype(dtype).name))


def types(graph, prim=Conv):
    return [(n.inputs[0].dtype, n.inputs[1].dtype, n.outputs[0].dtype)
            for n in graph.nodes if isinstance(n.prim, prim)]


CHAIN = [node("Conv", "x w b", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "r"),
         node("Conv", "r w b", "d", pads=[1, 1, 1, 1]), node("Sigmoid", "d", "y")]


@pytest.mark.parametrize("dtype", [np.float16, bfloat16])
def test_a_chain_is_float32_and_its_ends_half(dtype):
    graph = run(CHAIN, dtype=dtype)
    half = graph.inputs[0].dtype  # as the weights stay
    assert types(graph) == [(DType.FLOAT32, half, DType.FLOAT32)] * 2
    assert graph.outputs[0].dtype is half and half.numpy == dtype


def test_other_readers_and_outputs_see_halves():
    nodes = [*CHAIN, node("Shape", "r", "s"), node("TopK", "d k", "values indices"),
             node("Identity", "c", "z")]
    graph = run(nodes, ("y", "s", "values", "indices", "r", "z"), k=np.array([2]))
    assert [v.dtype for v in graph.outputs] == [
        DType.FLOAT16, DType.INT64, DType.FLOAT16, DType.INT64, DType.FLOAT16, DType.FLOAT16]
    assert types(graph) == [(DType.FLOAT32, DType.FLOAT16, DType.FLOAT32)] * 2


def test_a_cast_that_the_model_asks_for_rounds():
    nodes = [node("Conv", "x w b", "c"), node("Mul", "c k", "m"), node("Cast", "m", "f", to=1),
             node("Cast", "f", "h", to=10), node("Conv", "h w b", "y")]
    model = model_of(nodes, {"x": list(X.shape)}, ["m", "f", "y"],
                     {"w": np.full((3, 3, 1, 1), 1.001, np.float16), "b": np.zeros(3, np.float16),
                      "k": np.float16(1.001)}, opset=22, dtype=np.float16)
    with rlx.load(model, device="cpu") as session:
        found = session.run({"x": X.astype(np.float16)})
    np.testing.assert_array_equal(found["f"], found["m"].astype(np.float32))


def test_a_fill_joins_the_chain():
    half = np.array([0.5], np.float16)
    nodes = [node("Conv", "x w b", "c"), node("Shape", "c", "s"),
             node("ConstantOfShape", "s", "z", value=onnx.numpy_helper.from_array(half)),
             node("Add", "c z", "y")]
    model = model_of(nodes, {"x": ["n", 3, "h", "w"]}, ["y"],
                     {"w": np.zeros((3, 3, 1, 1), np.float16), "b": np.zeros(3, np.float16)},
                     opset=22, dtype=np.float16)
    with rlx.load(model, device="cpu") as session:
        found = session.run({"x": X.astype(np.float16)})["y"]
    np.testing.assert_array_equal(found, np.full(X.shape, 0.5, np.float16))


def test_what_is_cast_to_halves_has_other_readers():
    nodes = [node("Cast", "x", "h", to=10), node("Conv", "h w b", "d"), node("NonZero", "h", "i")]
    model = model_of(nodes, {"x": list(X.shape)}, ["d", "i"],
                     {"w": np.zeros((3, 3, 1, 1), np.float16), "b": np.zeros(3, np.float16)},
                     opset=22)
    with rlx.load(model, device="cpu") as session:
        found = session.run({"x": np.full(X.shape, 1e-9, np.float32)})
    assert found["i"].shape == (4, 0)  # 1e-9 is 0 in float16


def test_steps_that_no_convolution_touches_stay():
    nodes = [node("Mul", "x x", "a"), node("Sigmoid", "a", "y")]
    graph = run(nodes)
    assert all(v.dtype is DType.FLOAT16 for v in graph.values())


def test_a_float32_convolution_is_left_alone():
    graph = run([node("Conv", "x w b", "y")], dtype=np.float32)
    assert counts(graph) == {"Conv": 1, "Region": 1}
