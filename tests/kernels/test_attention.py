"""Attention at head dims, lengths and layouts that are no multiples of a vector, with masks."""

import numpy as np
import pytest

from rlx.ir.prims import Attention
from rlx.ir.reference.normalise import attention as reference
from rlx.ir.types import DType, TensorType
from tests.kernels.run_prim import elementwise_ops, region, run_prim
from tests.tolerance import tolerance

HALVES = [DType.FLOAT16, DType.BFLOAT16]
# batch, heads, kv heads, queries, keys, depth, value depth
SIZES = [(1, 8, 8, 256, 256, 24, 24), (2, 4, 4, 200, 300, 29, 29), (1, 12, 12, 197, 197, 64, 64),
         (1, 2, 1, 1, 300, 64, 40), (1, 12, 4, 1, 600, 64, 64), (3, 1, 1, 500, 77, 9, 17),
         (1, 1, 1, 4, 260, 128, 8), (1, 2, 2, 3, 5, 1, 1), (1, 1, 1, 70, 140, 300, 2),
         (1, 5, 5, 33, 129, 100, 72)]


def operands(sizes, dtype=DType.FLOAT32, layout="bhsd"):
    batch, heads, kv_heads, queries, keys, depth, value_depth = sizes
    rng = np.random.default_rng(5)
    shapes = [(batch, heads, queries, depth), (batch, kv_heads, keys, depth),
              (batch, kv_heads, keys, value_depth)]
    made = [rng.standard_normal(s).astype(dtype.numpy) for s in shapes]
    return made if layout == "bhsd" else [x.swapaxes(1, 2).copy() for x in made]


def check(prim: Attention, inputs, sizes, dtype=DType.FLOAT32, threads: int = 2) -> np.ndarray:
    batch, heads, _, queries, _, _, value_depth = sizes
    shape = (batch, heads, queries, value_depth)
    if prim.y_layout == "bshd":
        shape = (batch, queries, heads, value_depth)
    out = TensorType(dtype, shape)
    with np.errstate(invalid="ignore"):
        want = reference(prim, inputs, [out], lambda dim: dim)[0]
    got, = run_prim(prim, inputs, [out], threads)
    np.testing.assert_allclose(got.astype(float), want.astype(float),
                               **tolerance("norm", dtype.name.lower()))
    return got


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_sizes(sizes, causal, layout):
    prim = Attention(0.2, causal, max(sizes[4] - sizes[3], 0), *[layout] * 4)
    for threads in (1, 2, 5):
        check(prim, operands(sizes, layout=layout), sizes, threads=threads)


@pytest.mark.parametrize("dtype", HALVES, ids=lambda d: d.name)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_half_types(sizes, dtype):
    check(Attention(0.2), operands(sizes, dtype), sizes, dtype)


def masked(sizes, mask) -> Attention:
    batch, heads, _, queries, keys = sizes[:5]
    ops = elementwise_ops("add", [DType.FLOAT32] * 2, DType.FLOAT32)
    shape = (batch, heads, queries, keys)
    return Attention(0.2, score=region(shape, [shape, mask.shape], ops))


@pytest.mark.parametrize("sizes", [(2, 3, 3, 130, 300, 24, 24), (1, 8, 2, 1, 300, 64, 64)],
                         ids=str)
def test_masked_rows_and_blocks(sizes):
    """A row without keys is NaN, as the formula says; a block without keys leaves no trace."""
    batch, _, _, queries, keys = sizes[:5]
    mask = np.zeros((batch, 1, queries, keys), np.float32)
    mask[..., :200] = -np.inf
    mask[0, 0, 0] = -np.inf
    got = check(masked(sizes, mask), [*operands(sizes), mask], sizes)
    assert np.isnan(got[0, :, 0]).all()
    assert batch == 1 or np.isfinite(got[1]).all()


@pytest.mark.parametrize("key", [3, 140])
@pytest.mark.parametrize("queries", [1, 50])
@pytest.mark.parametrize("others", [0.0, -np.inf])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_special_scores(value, others, queries, key):
    """A score of NaN or infinity reaches its row, also from a block that is masked else."""
    sizes = (1, 1, 1, queries, 200, 16, 16)
    mask = np.zeros((1, 1, queries, 200), np.float32)
    mask[..., :128] = others
    mask[0, 0, 0, key] = value
    got = check(masked(sizes, mask), [*operands(sizes), mask], sizes)
    assert np.isnan(got[0, 0, 0]).all() and np.isfinite(got[0, 0, 1:]).all()


@pytest.mark.parametrize("sizes", [(1, 2, 2, 40, 150, 24, 24), (1, 2, 1, 1, 150, 64, 64)], ids=str)
def test_scores_far_apart(sizes):
    """Running maxima that leap between blocks; weights too small for a float are 0."""
    inputs = operands(sizes)
    inputs[:2] = [np.round(x) for x in inputs[:2]]  # so that the scores are exact
    inputs[1][:, :, 140] *= 20
    inputs[1][:, :, 10] *= -6
    check(Attention(1.0), inputs, sizes)
