"""The widen pass: between convolutions of halves values are float32, at every border half."""

import numpy as np
import pytest
from ml_dtypes import bfloat16

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


def test_casts_between_vanish():
    nodes = [node("Conv", "x w b", "c"), node("Cast", "c", "f", to=1), node("Relu", "f", "r"),
             node("Cast", "r", "h", to=10), node("Conv", "h w b", "y")]
    # x to float32, two biases, ReLU, and y back
    assert counts(run(nodes)) == {"Conv": 2, "Region": 5}


def test_steps_that_no_convolution_touches_stay():
    nodes = [node("Mul", "x x", "a"), node("Sigmoid", "a", "y")]
    graph = run(nodes)
    assert all(v.dtype is DType.FLOAT16 for v in graph.values())


def test_a_float32_convolution_is_left_alone():
    graph = run([node("Conv", "x w b", "y")], dtype=np.float32)
    assert counts(graph) == {"Conv": 1, "Region": 1}
