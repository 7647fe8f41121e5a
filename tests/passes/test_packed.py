"""The packed pass: products by dequantised weights keep the weights as they are stored."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import rlx
from rlx.ir.packing import bits_of
from rlx.ir.prims import MatMul
from rlx.ir.types import DType
from tests.emu.case import emulated
from tests.passes.equivalence import check, counts, graph_of, node
from tests.tolerance import tolerance

K, N, BLOCK = 320, 256, 32
RNG = np.random.default_rng(9)
STORED = {TensorProto.INT8: (-128, 128), TensorProto.UINT8: (0, 256), TensorProto.INT4: (-8, 8),
          TensorProto.UINT4: (0, 16), TensorProto.FLOAT4E2M1: None,
          TensorProto.FLOAT8E4M3FN: None, TensorProto.FLOAT8E5M2: None}


def stored(element: int, shape) -> np.ndarray:
    dtype = helper.tensor_dtype_to_np_dtype(element)
    limits = STORED[element]
    if limits is None:
        return RNG.uniform(-6, 6, shape).astype(np.float32).astype(dtype)
    return RNG.integers(*limits, shape).astype(dtype)


def model_of(nodes, constants, dtype=TensorProto.FLOAT) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", dtype, ["rows", K])],
        [helper.make_tensor_value_info("y", dtype, None)],
        [onnx.numpy_helper.from_array(a, n) for n, a in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


def scales(*shape, dtype=np.float32):
    return (RNG.uniform(0.5, 1.5, shape) / 1000).astype(dtype)


def one_product(graph) -> object:
    (found,) = [n for n in graph.nodes if isinstance(n.prim, MatMul)]
    assert counts(graph) == {"MatMul": 1}
    return found


@pytest.mark.parametrize("element", STORED, ids=lambda e: TensorProto.DataType.Name(e).lower())
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("turned", [False, True], ids=["K x N", "N x K"])
def test_blocks_along_either_axis(element, axis, turned):
    shape = (N, K) if turned else (K, N)
    tiles = tuple(d // BLOCK if k == axis else d for k, d in enumerate(shape))
    constants = {"w": stored(element, shape), "s": scales(*tiles)}
    if STORED[element]:
        constants["z"] = stored(element, tiles)
    nodes = [node("DequantizeLinear", "w s z" if "z" in constants else "w s", "v", axis=axis,
                  block_size=BLOCK),
             node("Gemm", "x v", "y", transB=1) if turned else node("MatMul", "x v", "y")]
    x = RNG.standard_normal((3, K)).astype(np.float32)
    found = one_product(check(model_of(nodes, constants), {"x": x}, ["packed"]))
    along_k = (axis == 1) == turned
    assert (found.prim.block_k, found.prim.block_n) == ((BLOCK, 1) if along_k else (1, BLOCK))
    assert found.prim.b_type is DType(element)
    bits = bits_of(DType(element))
    assert found.inputs[1].const.nbytes == K * N * bits // 8  # not a byte more than it takes


@pytest.mark.parametrize("each", ["tensor", "column"])
def test_one_scale_or_one_a_column(each):
    tiles = () if each == "tensor" else (N,)
    constants = {"w": stored(TensorProto.INT8, (K, N)), "s": scales(*tiles),
                 "z": np.zeros(tiles, np.int8)}
    nodes = [node("DequantizeLinear", "w s z", "v", axis=1), node("MatMul", "x v", "y")]
    graph = check(model_of(nodes, constants), {"x": np.ones((2, K), np.float32)}, ["packed"])
    found = one_product(graph)
    assert found.prim.block_k == K and found.inputs[3] is None  # zero points of 0 are none


def test_a_transpose_between_and_half_scales():
    constants = {"w": stored(TensorProto.UINT4, (N, K)),
                 "s": scales(N, K // BLOCK, dtype=np.float16)}
    nodes = [node("DequantizeLinear", "w s", "v", axis=1, block_size=BLOCK),
             node("Transpose", "v", "t", perm=[1, 0]), node("MatMul", "x t", "y")]
    model = model_of(nodes, constants, TensorProto.FLOAT16)
    x = RNG.standard_normal((2, K)).astype(np.float16)
    found = one_product(check(model, {"x": x}, ["packed"], ("rounded", "float16")))
    assert found.prim.block_k == BLOCK


@pytest.mark.parametrize("w, s, axis", [
    (np.ones((K, 8), np.int8), scales(8), 1),              # small
    (np.ones((K, N), np.int8), scales(1, N), 0),           # one block longer than the axis
], ids=["small", "wide block"])
def test_what_stays_or_fits_all_the_same(w, s, axis):
    block = 512 if axis == 0 else 0
    nodes = [node("DequantizeLinear", "w s", "v", axis=axis, block_size=block),
             node("MatMul", "x v", "y")]
    graph = check(model_of(nodes, {"w": w, "s": s}), {"x": np.ones((2, K), np.float32)},
                  ["packed"])
    packed = [n.prim.b_type for n in graph.nodes if isinstance(n.prim, MatMul)]
    assert packed == [DType.INT8 if w.size > 1 << 16 else None]


def test_weights_that_are_read_otherwise_too():
    nodes = [node("DequantizeLinear", "w s", "v", axis=1), node("MatMul", "x v", "p"),
             node("Slice", "v zero one", "r"), node("Add", "p r", "y")]
    constants = {"w": stored(TensorProto.INT8, (K, N)), "s": scales(N),
                 "zero": np.array([0, 0]), "one": np.array([1, N])}
    graph = check(model_of(nodes, constants), {"x": np.ones((2, K), np.float32)},
                  ["packed", "fold"], ("rounded", "float32"))
    assert counts(graph)["MatMul"] == 1


def test_the_bytes_stay_packed_on_a_gpu():
    """A run of one row makes no floats of the weights, and explain() says how they are read."""
    emulated("emu")
    codes, factors = stored(TensorProto.UINT4, (K, N)), scales(K // BLOCK, N)
    zeros = stored(TensorProto.UINT4, (K // BLOCK, N))
    nodes = [node("DequantizeLinear", "w s z", "v", axis=0, block_size=BLOCK),
             node("MatMul", "x v", "y")]
    x = RNG.standard_normal((1, K)).astype(np.float32)
    real = (codes.astype(float) - zeros.astype(float).repeat(BLOCK, 0)) * factors.repeat(BLOCK, 0)
    with rlx.load(model_of(nodes, {"w": codes, "s": factors, "z": zeros}), device="emu") as s:
        np.testing.assert_allclose(s.run({"x": x})["y"], x @ real,
                                   **tolerance("rounded", "float32"))
        (row,) = s.explain()
        assert "stored bytes" in row["reason"]
        assert s.counters()["pack_bytes"] == 0
        assert s.counters()["arena_bytes"] < codes.size  # no floats in it


def test_a_type_of_ml_dtypes_is_stored_as_onnx_does():
    assert stored(TensorProto.FLOAT4E2M1, (2,)).dtype == ml_dtypes.float4_e2m1fn


@pytest.mark.parametrize("device", ["cpu", "emu"])
@pytest.mark.parametrize("name", ["w", "s"])
def test_updated_weights(device, name):
    """Scales may change and codes stay: what was made of both is made again."""
    if device == "emu":
        emulated("emu")
    arrays = {"w": stored(TensorProto.INT8, (N, K)), "s": scales(N)}
    nodes = [node("DequantizeLinear", "w s", "v", axis=0), node("Gemm", "x v", "y", transB=1)]
    x = RNG.standard_normal((1, K)).astype(np.float32)
    with rlx.load(model_of(nodes, arrays), device=device) as session:
        session.run({"x": x})
        arrays |= {name: stored(TensorProto.INT8, (N, K)) if name == "w" else scales(N) * 2}
        session.update_weights({name: arrays[name]})
        real = arrays["w"].astype(float) * arrays["s"][:, None]
        np.testing.assert_allclose(session.run({"x": x})["y"], x @ real.T,
                                   **tolerance("rounded", "float32"))


def test_packed_forms_of_old_scales_go():
    arrays = {"w": stored(TensorProto.INT8, (N, K)), "s": scales(N)}
    nodes = [node("DequantizeLinear", "w s", "v", axis=0), node("Gemm", "x v", "y", transB=1)]
    x = RNG.standard_normal((1, K)).astype(np.float32)
    with rlx.load(model_of(nodes, arrays), device="cpu") as session:
        session.run({"x": x})
        once = session.counters()["pack_bytes"]
        for _ in range(3):
            session.update_weights({"s": scales(N)})
            session.run({"x": x})
        assert session.counters()["pack_bytes"] == once > 0


def test_a_zero_point_that_no_byte_holds():
    """Written out with integers, the zero point may be any of them."""
    codes = stored(TensorProto.INT8, (K, N))
    constants = {"w": codes, "z": np.int32(300), "s": np.float32(0.001)}
    nodes = [node("Cast", "w", "i", to=TensorProto.INT32), node("Sub", "i z", "d"),
             node("Cast", "d", "f", to=TensorProto.FLOAT), node("Mul", "f s", "v"),
             node("MatMul", "x v", "y")]
    x = RNG.standard_normal((2, K)).astype(np.float32)
    with rlx.load(model_of(nodes, constants), device="cpu") as session:
        np.testing.assert_allclose(session.run({"x": x})["y"], x @ ((codes - 300.0) * 0.001),
                                   **tolerance("rounded", "float32"))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_weights_that_the_model_makes_half(dtype):
    codes = stored(TensorProto.INT8, (K, N))
    factor = np.asarray(0.001, dtype)
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [node("Cast", "w", "f", to=element), node("Mul", "f s", "v"),
             node("MatMul", "x v", "y")]
    x = np.eye(2, K, dtype=dtype)
    with rlx.load(model_of(nodes, {"w": codes, "s": factor}, element), device="cpu") as session:
        found = session.run({"x": x})["y"].astype(np.float64)
    rounded = (codes[:2].astype(np.float64) * float(factor)).astype(dtype).astype(np.float64)
    np.testing.assert_array_equal(found, rounded)
