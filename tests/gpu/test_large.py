"""Batches of 70,000, and tensors of more than 2^31 elements, on a GPU."""

import numpy as np
from onnx import TensorProto, helper
import pytest

import rlx
from tests.large import CASES, IMAGES, large, large_image
from tests.tolerance import assert_network_output


@pytest.mark.parametrize("name", CASES)
def test_a_batch_beyond_the_axes_of_a_grid(gpu, name):
    made, feeds, truth = large(name)
    with rlx.load(made, device=gpu, tf32=False) as session:
        assert_network_output(session.run(feeds)["y"], truth, "float32", "y")


@pytest.mark.parametrize("name", IMAGES)
def test_a_convolution_of_an_image_of_more_elements_than_an_int_counts(gpu, name):
    made, rung, feeds, truth = large_image(name)
    with rlx.load(made, device=gpu, force=rung) as session:
        np.testing.assert_array_equal(session.run(feeds)["y"], truth)


@pytest.mark.parametrize("op, expected", [("Not", 0), ("Identity", 1), ("Transpose", 1)])
def test_more_elements_than_an_int_counts(gpu, op, expected):
    """Ones that the device makes; three bytes behind element 2^31 are read back."""
    rows, columns = 1 << 16, (1 << 15) + 8
    shape = helper.make_tensor("s", TensorProto.INT64, [2], [rows, columns])
    one = helper.make_tensor("v", TensorProto.BOOL, [1], [True])
    nodes = [helper.make_node("ConstantOfShape", ["n"], ["a"], value=one),
             helper.make_node("And", ["a", "x"], ["b"]), helper.make_node(op, ["b"], ["c"]),
             helper.make_node("Slice", ["c", "from", "to"], ["y"])]
    out = (rows, columns) if op != "Transpose" else (columns, rows)
    bounds = [helper.make_tensor(n, TensorProto.INT64, [2], v)
              for n, v in (("from", [out[0] - 1, out[1] - 3]), ("to", list(out)))]
    shape.name = "n"
    graph = helper.make_graph(nodes, "g",
                              [helper.make_tensor_value_info("x", TensorProto.BOOL, [1, columns])],
                              [helper.make_tensor_value_info("y", TensorProto.BOOL, None)],
                              [shape, *bounds])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    with rlx.load(made, device=gpu) as session:
        found = session.run({"x": np.ones((1, columns), bool)})["y"]
    np.testing.assert_array_equal(found, np.full((1, 3), bool(expected)))
