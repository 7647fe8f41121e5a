"""Models that cannot be and options of no sensible type: the error says what is wrong."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import rlx
from tests.passes.equivalence import model_of, node

MS = "com.microsoft"


def contrib(nodes, inputs, constants):
    model = model_of(nodes, inputs, ["y"], constants)
    model.opset_import.append(helper.make_opsetid(MS, 1))
    return model


def n_bits(rank, dtype=np.uint8, block_size=16):
    made = onnx.helper.make_node("MatMulNBits", ["x", "b", "s"], ["y"], name="nb", domain=MS, K=32,
                                 N=4, bits=4, block_size=block_size)
    return contrib([made], {"x": ["n"] * (rank - 1) + [32] * min(rank, 1)},
                   {"b": np.zeros((4, 2, 8), dtype), "s": np.ones(8, np.float32)})


@pytest.mark.parametrize("model, says", [
    (n_bits(0), "A of rank 0"), (n_bits(2, np.int8), "int8 B"),
    (n_bits(2, block_size=3), "fills no bytes"),
], ids=["scalar rows", "signed bytes", "half a byte"])
def test_a_product_of_n_bits(model, says):
    with pytest.raises(rlx.ModelError, match=says) as caught:
        rlx.load(model, device="cpu")
    assert "nb" in str(caught.value)


def test_experts_need_rows_of_scores():
    made = onnx.helper.make_node("MoE", ["x", "r", "w1", "", "w2"], ["y"], domain=MS, k=2)
    model = contrib([made], {"x": ["n", 8], "r": [4]},
                    {"w1": np.ones((4, 6, 8), np.float32), "w2": np.ones((4, 8, 6), np.float32)})
    with pytest.raises(rlx.ModelError, match="router_probs"):
        rlx.load(model, device="cpu")


@pytest.mark.parametrize("shape", [(4,), (4, 1), (2, 6)])
def test_experts_need_a_bias_each(shape):
    made = onnx.helper.make_node("MoE", ["x", "r", "w1", "b1", "w2"], ["y"], domain=MS, k=2)
    model = contrib([made], {"x": ["n", 8], "r": ["n", 4]},
                    {"w1": np.ones((4, 6, 8), np.float32), "w2": np.ones((4, 8, 6), np.float32),
                     "b1": np.ones(shape, np.float32)})
    with pytest.raises(rlx.ModelError, match="bias"):
        rlx.load(model, device="cpu")


def test_experts_need_scales_of_blocks():
    made = onnx.helper.make_node("QMoE", ["x", "r", "w1", "s1", "", "w2", "s2"], ["y"], domain=MS,
                                 k=1, expert_weight_bits=4, block_size=8)
    model = contrib([made], {"x": ["n", 8], "r": ["n", 4]},
                    {"w1": np.ones((4, 8, 4), np.uint8), "w2": np.ones((4, 8, 4), np.uint8),
                     "s1": np.ones((4, 8), np.float32), "s2": np.ones((4, 8, 1), np.float32)})
    with pytest.raises(rlx.ModelError, match="scales of blocks"):
        rlx.load(model, device="cpu")


@pytest.mark.parametrize("shape", [[-7, 6], [-2], [2, -5]])
def test_a_shape_known_when_run_is_not_negative(shape):
    model = model_of([node("Reshape", "x s", "y")], {"x": ["a", "b"]}, ["y"])
    model.graph.input.append(helper.make_tensor_value_info("s", TensorProto.INT64, ["k"]))
    with rlx.load(model, device="cpu") as session:
        x = np.ones((2, 3), np.float32)
        with pytest.raises(rlx.Error, match="negative"):
            session.run({"x": x, "s": np.array(shape)})
        assert session.run({"x": x, "s": np.array([-1, 2])})["y"].shape == (3, 2)


@pytest.mark.parametrize("options", [{"mode": {}}, {"disable": [["a"]]}, {"tf32": 1}])
def test_run_checks_options_as_load_does(options):
    model = model_of([node("Relu", "x", "y")], {"x": ["n"]}, ["y"]).SerializeToString()
    rlx.run(model, np.ones(2, np.float32), device="cpu", tf32=True)
    with pytest.raises(rlx.InputError, match="option"):
        rlx.run(model, np.ones(2, np.float32), device="cpu", **options)


@pytest.mark.parametrize("op, weights, attributes", [
    ("Conv", True, {}), ("ConvTranspose", True, {}), ("MaxPool", False, {"kernel_shape": [2] * 4}),
    ("AveragePool", False, {"kernel_shape": [2] * 4}), ("LpPool", False, {"kernel_shape": [2] * 4}),
])
def test_windows_along_four_axes_are_refused_by_name(op, weights, attributes):
    made = node(op, "x w" if weights else "x", "y", name="far", **attributes)
    constants = {"w": np.ones((2, 2, 1, 2, 2, 2), np.float32)} if weights else {}
    model = model_of([made], {"x": [1, 2, 3, 3, 3, 3]}, ["y"], constants)
    with pytest.raises(rlx.UnsupportedError, match="at most 3 more axes") as caught:
        rlx.load(model, device="cpu")
    assert "far" in str(caught.value) and op in str(caught.value)
