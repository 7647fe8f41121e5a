"""Products by quantised weights and by the weights of each row's group, on the CPU."""

import itertools

import numpy as np
import pytest

from rlx import _core
from rlx.emit import emit
from rlx.errors import InputError, ModelError
from rlx.ir.build import Builder
from rlx.ir.graph import Graph, Node, Origin, Value, tensor
from rlx.ir.prims import MatMul
from rlx.ir.reference import REFERENCES
from rlx.ir.types import DType, TensorType, dtype_of
from tests.emu.case import chain, emulated
from tests.kernels.quantised_samples import product, weights
from tests.kernels.run_prim import DEVICE, run_prim
from tests.tolerance import tolerance

F32, F16, BF16 = DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16
STORED = [DType.INT8, DType.UINT8, DType.INT4, DType.UINT4, DType.INT2, DType.UINT2,
          DType.FLOAT4E2M1, DType.FLOAT8E4M3FN, DType.FLOAT8E4M3FNUZ, DType.FLOAT8E5M2,
          DType.FLOAT8E5M2FNUZ]


def activations(m: int, k: int, dtype: DType = F32, seed: int = 7) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal((m, k)) / k).astype(dtype.numpy)


def constant(prim, inputs, output: TensorType, threads: int = 1):
    """The result, and the rung and reason, with all operands but the activations constant."""
    graph = Graph()
    x = tensor(dtype_of(inputs[0].dtype), inputs[0].shape, "x")
    y = tensor(output.dtype, output.shape, "y")
    values = [x] + [None if a is None else Value(TensorType(dtype_of(a.dtype), a.shape), const=a)
                    for a in inputs[1:]]
    graph.inputs, graph.outputs = [x], [y]
    graph.nodes.append(Node(prim, values, [y], Origin("node", "MatMul")))
    executable = _core.Executable(emit(graph), DEVICE, threads=threads, check_memory=True)
    result = executable.run({"x": inputs[0]})["y"]
    (row,) = executable.explain()
    return result, row["rung"], row["reason"]


def check(prim, inputs, dtype: DType, found: np.ndarray) -> None:
    n = inputs[1].shape[-2]
    type_ = TensorType(dtype, (inputs[0].shape[0], n))
    (want,) = REFERENCES[MatMul](prim, inputs, [type_], lambda dim: dim)
    np.testing.assert_allclose(found.astype(float), want.astype(float),
                               **tolerance("sum", dtype.name.lower()))


@pytest.mark.parametrize("m", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("dtype", STORED, ids=lambda d: d.name.lower())
def test_types_and_rows(dtype, m):
    """Rows that read stored bytes and rows that read floats; odd sizes; zero points."""
    for (n, k, block), zero in itertools.product(
            [(13, 96, 32), (9, 70, 64), (5, 33, 1000), (6, 40, 5)], ["", "one", "each"]):
        if not dtype.is_integer and zero:
            continue
        prim = product(dtype, block)
        inputs = [activations(m, k), *weights(dtype, n, k, block, zero=zero), None]
        found, rung, reason = constant(prim, inputs, TensorType(F32, (m, n)), threads=2)
        check(prim, inputs, F32, found)
        assert ("quantised gemv" in rung) == ("stored bytes" in reason)
        assert "dequantised once" in reason
        check(prim, inputs, F32, run_prim(prim, inputs, [TensorType(F32, (m, n))], 2)[0])


def test_constants_become_floats_once():
    prim = product(DType.UINT4, 32)
    for m in (1, 4, 5):
        inputs = [activations(m, 64), *weights(DType.UINT4, 12, 64, 32, zero="each"), None]
        assert constant(prim, inputs, TensorType(F32, (m, 12)))[1] == "gemm"


@pytest.mark.parametrize("dtype", [F16, BF16])
@pytest.mark.parametrize("scale", [F32, F16, BF16])
@pytest.mark.parametrize("m", [2, 9])
def test_half_activations_and_scales(dtype, scale, m):
    prim = product(DType.INT4, 16)
    inputs = [activations(m, 64, dtype), *weights(DType.INT4, 10, 64, 16, scale=scale), None]
    check(prim, inputs, dtype, constant(prim, inputs, TensorType(dtype, (m, 10)))[0])


def test_tiles_of_both_axes_and_real_zero_points():
    for m in (1, 6):
        prim = product(DType.FLOAT8E4M3FN, 16, 8)
        inputs = [activations(m, 40), *weights(DType.FLOAT8E4M3FN, 20, 40, 16, 8), None]
        check(prim, inputs, F32, constant(prim, inputs, TensorType(F32, (m, 20)))[0])
        prim = product(DType.UINT8, 32, 4)
        inputs = [activations(m, 64), *weights(DType.UINT8, 9, 64, 32, 4, zero="float"), None]
        check(prim, inputs, F32, constant(prim, inputs, TensorType(F32, (m, 9)))[0])


@pytest.mark.parametrize("m", [3, 8])
def test_weights_that_are_computed(m):
    prim = product(DType.UINT4, 32, alpha=0.5)
    inputs = [activations(m, 70), *weights(DType.UINT4, 11, 70, 32, zero="each"), None]
    check(prim, inputs, F32, run_prim(prim, inputs, [TensorType(F32, (m, 11))], 2)[0])


@pytest.mark.parametrize("m", [2, 9])
def test_epilogue(m):
    prim = product(DType.INT8, 32, epilogue=chain((m, 12), F32, "add", "gelu", store=F16))
    inputs = [activations(m, 64, F16), *weights(DType.INT8, 12, 64, 32), None,
              np.linspace(-1, 1, 12, dtype=np.float32)]
    check(prim, inputs, F16, constant(prim, inputs, TensorType(F16, (m, 12)))[0])


def grouped(rows: int, dtype: DType | None, groups: int, seed: int = 0):
    """(prim, inputs) of rows whose groups come in any order; one group has no row."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, groups - 1, rows)
    x = activations(rows, 40, seed=seed)
    if dtype is None:
        w = rng.uniform(-0.4, 0.4, (groups, 12, 40)).astype(np.float32)
        return MatMul(trans_b=True), [x, w, None, None, None, ids]
    return product(dtype, 16), [x, *weights(dtype, 12, 40, 16, zero="each" * dtype.is_integer,
                                            groups=groups, seed=seed), ids]


@pytest.mark.parametrize("dtype", [None, DType.UINT4, DType.INT8, DType.FLOAT8E4M3FN])
@pytest.mark.parametrize("rows", [1, 7, 40, 300])
def test_groups(dtype, rows):
    prim, inputs = grouped(rows, dtype, 5)
    type_ = TensorType(F32, (rows, 12))
    check(prim, inputs, F32, run_prim(prim, inputs, [type_], 2)[0])
    found, rung, _ = constant(prim, inputs, type_, threads=2)
    check(prim, inputs, F32, found)
    assert "by group" in rung


def test_groups_with_an_epilogue_and_narrow_ids():
    prim, inputs = grouped(50, DType.UINT4, 4)
    prim = product(DType.UINT4, 16, epilogue=chain((50, 12), F32, "add"))
    inputs = [*inputs[:5], inputs[5].astype(np.int32), np.ones(12, np.float32)]
    check(prim, inputs, F32, constant(prim, inputs, TensorType(F32, (50, 12)))[0])


@pytest.mark.parametrize("bad", [-1, 4])
def test_a_row_of_no_group(bad):
    prim, inputs = grouped(6, None, 4)
    inputs[5][3] = bad
    with pytest.raises(InputError, match="no group"):
        run_prim(prim, inputs, [TensorType(F32, (6, 12))])


def _cut(what: str, inputs: list) -> list:
    """Operands one matrix, row or column of which is missing."""
    b, zero, scale = inputs[1], inputs[3], inputs[4]
    if what == "scales for fewer matrices":
        scale, zero = scale[:-1], zero[:-1]
    elif what == "zero points for fewer matrices":
        zero = zero[:-1]
    elif what == "zero points as many, but elsewhere":
        zero = zero.swapaxes(1, 2)
    elif what == "rows without scales":
        scale, zero = scale[:, :-1], zero[:, :-1]
    elif what == "columns without scales":
        scale, zero = scale[..., :-1], zero[..., :-1]
    else:
        b = b[..., :-4]
    return [inputs[0], b, None, zero, scale, *inputs[5:]]


@pytest.mark.parametrize("device", ["cpu", "emu"])
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("what, said", [
    ("scales for fewer matrices", "no scales for each matrix"),
    ("zero points for fewer matrices", "no zero point for each scale"),
    ("zero points as many, but elsewhere", "no zero point for each scale"),
    ("rows without scales", "do not cover"), ("columns without scales", "do not cover"),
    ("columns that are missing", "fewer columns than")])
def test_weights_that_are_not_covered(device, batched, what, said):
    """Nothing is read behind an operand's end, on any device; the error names the node."""
    x = activations(6, 40)
    given = weights(DType.UINT4, 12, 40, 16, zero="each", groups=3)
    ids = None if batched else np.array([0, 2, 1, 1, 0, 2])
    x = np.stack([x] * 3) if batched else x
    output = TensorType(F32, (3, 6, 12) if batched else (6, 12))
    with pytest.raises(ModelError, match=said) as caught:
        run_prim(product(DType.UINT4, 16), _cut(what, [x, *given, ids]), [output],
                 device=emulated(device))
    assert caught.value.node == "node" and caught.value.op == "MatMul"


@pytest.mark.parametrize("device", ["cpu", "emu"])
def test_scales_that_all_matrices_share(device):
    x = np.stack([activations(6, 40), activations(6, 40, seed=8)])
    b, _, zero, scale = weights(DType.UINT4, 12, 40, 16, zero="each", groups=2)
    prim, inputs = product(DType.UINT4, 16), [x, b, None, zero[:1], scale[:1], None]
    (found,) = run_prim(prim, inputs, [TensorType(F32, (2, 6, 12))], device=emulated(device))
    for i in range(2):
        one = [x[i], b[i], None, zero[0], scale[0], None]
        check(prim, one, F32, found[i])


def test_scales_of_fewer_matrices_are_refused_when_the_model_is_built():
    builder = Builder()
    given = weights(DType.UINT4, 12, 40, 16, zero="each", groups=3)
    b, zero, scale = (builder.const(given[i]) for i in (0, 2, 3))
    fewer = builder.const(given[3][:2])
    x = builder.const(activations(6, 40))
    ids = builder.const(np.zeros(6, np.int64))
    for scales, zeros in ((fewer, None), (scale, builder.const(given[2][:2]))):
        with pytest.raises(ModelError, match="must be equal"):
            builder.dequantised_matmul(x, b, scales, zeros, b_type=DType.UINT4, n=12, block_k=16,
                                       groups=ids)
    builder.dequantised_matmul(x, b, scale, zero, b_type=DType.UINT4, n=12, block_k=16, groups=ids)
