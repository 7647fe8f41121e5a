"""Operands that broadcast to another one must not make more of it: refused, naming what it was."""

from typing import NamedTuple

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import rlx

MS = "com.microsoft"


def normal(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def ints(*shape):
    return np.random.default_rng(0).integers(-9, 9, shape).astype(np.int8)


ONE, NONE = np.float32(1), np.int8(0)
PAIR = (ONE, NONE)
LONG = np.zeros(5, np.int32)
IMAGE = normal(1, 2, 4, 5)
INT8 = TensorProto.INT8


class Case(NamedTuple):
    """The inputs of a node, what among them is too large, and the type of the result."""

    inputs: list
    what: str
    attributes: dict
    result: int = TensorProto.FLOAT


CASES = {name: Case(*case) for name, case in {
    "Conv": ([IMAGE, normal(1, 2, 1, 1), normal(5)], "the bias", {}),
    "ConvTranspose": ([IMAGE, normal(2, 1, 1, 1), normal(5)], "the bias", {}),
    "PRelu": ([normal(1, 4), normal(3, 4)], "the slope", {}),
    "Clip": ([normal(4), normal(3, 4)], "min", {}),
    "BatchNormalization": ([normal(2, 1, 4), *[normal(3)] * 4], "channels", {}),
    "Gemm": ([normal(1, 4), normal(4, 5), normal(3, 5)], "C", {}),
    "Gemm, an axis more": ([normal(3, 4), normal(4, 5), normal(1, 3, 5)], "C", {}),
    "QLinearConv": ([ints(1, 2, 4, 5), *PAIR, ints(1, 2, 1, 1), *PAIR, *PAIR, LONG], "the bias",
                    {}, INT8),
    "QLinearConv, its scale": ([ints(1, 2, 4, 5), *PAIR, ints(1, 2, 1, 1), normal(5), NONE, *PAIR],
                               "the scale of w", {}, INT8),
    "QLinearMatMul": ([ints(1, 4), normal(3), NONE, ints(4, 5), *PAIR, *PAIR], "the scale of a",
                      {}, INT8),
    "QLinearMatMul, its result": ([ints(1, 4), *PAIR, ints(4, 1), *PAIR, normal(5), ints(5)],
                                  "the scale of y", {}, INT8),
    "Attention": ([normal(1, 1, 2, 4), normal(1, 1, 3, 4), normal(1, 1, 3, 4),
                   normal(5, 1, 2, 3)], "the mask", {}),
    "RotaryEmbedding": ([normal(1, 1, 2, 4), normal(9, 2, 2), normal(9, 2, 2)], "angles", {}),
    f"{MS}:BiasGelu": ([normal(1, 1), normal(5)], "the bias", {}),
    f"{MS}:FastGelu": ([normal(2, 1), normal(5)], "the bias", {}),
    f"{MS}:BiasSplitGelu": ([normal(1, 2, 1), normal(4)], "the bias", {}),
    f"{MS}:BiasAdd": ([normal(1, 2, 1), normal(5), normal(1, 2, 1)], "the bias", {}),
    f"{MS}:BiasSoftmax": ([normal(1, 4), normal(3, 4)], "the bias", {"is_inner_broadcast": 0}),
    f"{MS}:SkipLayerNormalization": ([normal(1, 3, 4), normal(2, 3, 4), normal(4)], "skip", {}),
    f"{MS}:FusedConv": ([IMAGE, normal(3, 2, 1, 1), normal(3), normal(2, 3, 4, 5)], "Z",
                        {"activation": "Relu"}),
    f"{MS}:MatMulIntegerToFloat": ([ints(1, 4), ints(4, 1), ONE, ONE, NONE, NONE, normal(5)],
                                   "the bias", {}),
    f"{MS}:MatMulIntegerToFloat, its scale": ([ints(1, 4), ints(4, 1), ONE, normal(5)],
                                              "the scale of B", {}),
    f"{MS}:QGemm": ([ints(1, 4), *PAIR, ints(4, 5), *PAIR, np.zeros((3, 5), np.int32)], "C", {}),
    f"{MS}:QGemm, its scale": ([ints(1, 4), *PAIR, ints(4, 1), normal(5), NONE],
                               "the scale of B", {}),
    f"{MS}:MatMulNBits": ([normal(1, 16), np.zeros((1, 1, 8), np.uint8), normal(1),
                           np.zeros(1, np.uint8), np.zeros(16, np.int32)[:0], normal(5)],
                          "the bias", {"K": 16, "N": 1, "block_size": 16}),
}.items()}


def model(name: str, case: Case, open_dims: bool) -> tuple[onnx.ModelProto, dict]:
    domain, _, op = name.partition(",")[0].rpartition(":")
    arrays = {f"x{k}": np.asarray(v) for k, v in enumerate(case.inputs) if not _left_out(v)}
    names = [f"x{k}" if f"x{k}" in arrays else "" for k in range(len(case.inputs))]
    of = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], "the node", domain=domain, **case.attributes)], "g",
        [helper.make_tensor_value_info(n, of(v.dtype), [f"{n}_{k}" for k in range(v.ndim)]
                                       if open_dims else v.shape) for n, v in arrays.items()],
        [helper.make_tensor_value_info("y", case.result, None)])
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid(MS, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=11), arrays


def _left_out(v) -> bool:
    return np.size(v) == 0


@pytest.mark.parametrize("name", CASES)
def test_what_would_widen_is_refused(name):
    built, _ = model(name, CASES[name], False)
    with pytest.raises(rlx.ModelError, match=CASES[name].what) as caught:
        rlx.load(built, device="cpu")
    assert caught.value.op == name.partition(",")[0].rpartition(":")[2]


@pytest.mark.parametrize("name", ["Gemm", "PRelu", "Conv", f"{MS}:BiasGelu", f"{MS}:QGemm"])
def test_open_dims_are_checked_when_they_are_known(name):
    built, given = model(name, CASES[name], True)
    session = rlx.load(built, device="cpu")
    with pytest.raises(rlx.InputError, match=CASES[name].what):
        session.run(given)


def test_one_number_clips_whatever_its_shape():
    for shape in ((), (1,), (1, 1)):
        one = Case([np.float32(3), np.full(shape, 4, np.float32)], "min", {})
        built, given = model("Clip", one, False)
        np.testing.assert_array_equal(rlx.run(built, given, device="cpu")["y"], np.float32(4),
                                      strict=True)
