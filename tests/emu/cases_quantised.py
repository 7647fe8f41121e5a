"""Cases of products by quantised weights and by the weights of each row's group."""

import numpy as np

from rlx.ir.prims import MatMul
from rlx.ir.types import DType
from tests.emu.case import BF16, F16, F32, F64, Case, chain, typed
from tests.kernels.quantised_samples import product, weights

FEW, TILES, FLOATS = ("matmul_few",), ("matmul_dequant",), ("dequantise", "matmul")


def activations(m: int, k: int, dtype: DType) -> np.ndarray:
    return (np.random.default_rng(m).standard_normal((m, k)) / k).astype(dtype.numpy)


def _case(name, kernels, x, w, prim, y, ids=None, extra=(), dtype=F32) -> Case:
    return Case(f"{name} {x.shape}", kernels, prim, [x, *w, ids, *extra],
                [typed(dtype, x.shape[0], y)], "sum")


def _types():
    """Every stored type in every way, with odd sizes and zero points."""
    plain = [(DType.INT8, ""), (DType.UINT8, "each"), (DType.INT4, "one"), (DType.UINT4, "each"),
             (DType.UINT4, "float"), (DType.INT2, ""), (DType.UINT2, "each"),
             (DType.FLOAT4E2M1, ""), (DType.FLOAT8E4M3FN, ""), (DType.FLOAT8E4M3FNUZ, ""),
             (DType.FLOAT8E5M2, ""), (DType.FLOAT8E5M2FNUZ, "")]
    for stored, zero in plain:
        for m, dtype, kernels in [(1, F32, FEW), (3, BF16, FEW), (9, F16, TILES), (70, BF16, TILES),
                                  (6, F32, FLOATS)]:
            n, k, block = (19, 96, 32) if m < 9 else (70, 70, 64)
            yield _case(f"{stored.name.lower()} {zero} {dtype.name.lower()}", kernels,
                        activations(m, k, dtype), weights(stored, n, k, block, zero=zero),
                        product(stored, block), n, dtype=dtype)


def _shapes():
    for m, n, k, block, tile in [(1, 5, 33, 5, 1), (2, 64, 4096, 32, 1), (1, 8, 1000, 1000, 8),
                                 (4, 3, 40, 16, 2)]:
        yield _case(f"tiles of {tile} x {block}", FEW, activations(m, k, F32),
                    weights(DType.UINT4, n, k, block, tile, zero="each"),
                    product(DType.UINT4, block, tile, alpha=0.5), n)
    for m, n, k, block in [(5, 64, 31, 7), (16, 3, 32, 16), (65, 129, 100, 20)]:
        yield _case(f"blocks of {block}", TILES, activations(m, k, F16),
                    weights(DType.INT4, n, k, block, scale=F16), product(DType.INT4, block), n,
                    dtype=F16)
    for m, kernels in ((2, FEW), (20, TILES)):
        yield _case("bias and gelu", kernels, activations(m, 64, F16),
                    weights(DType.UINT8, 36, 64, 32),
                    product(DType.UINT8, 32, epilogue=chain((m, 36), F32, "add", "gelu",
                                                            store=F16)),
                    36, extra=[np.linspace(-1, 1, 36, dtype=np.float32)], dtype=F16)


def _groups():
    """Rows in any order; a group without rows; more rows than a tile; plain and stored weights."""
    for rows, groups, stored, dtype, kernels in [
        (1, 4, None, F32, FEW), (7, 3, None, F64, FEW), (6, 4, DType.UINT4, F16, FEW),
        (40, 3, None, F16, ("group_rows", *TILES)), (300, 5, None, BF16, ("group_rows", *TILES)),
        (200, 40, DType.INT8, F16, ("group_rows", *TILES)),
        (150, 2, DType.UINT4, BF16, ("group_rows", *TILES)), (30, 3, DType.UINT4, F32, FEW),
    ]:
        rng = np.random.default_rng(rows)
        ids = rng.integers(0, max(groups - 1, 1), rows).astype(np.int32 if rows % 2 else np.int64)
        if stored is None:
            w = [rng.uniform(-0.4, 0.4, (groups, 20, 40)).astype(dtype.numpy), None, None, None]
            prim = MatMul(trans_b=True, accumulate=F64 if dtype is F64 else F32)
        else:
            w = weights(stored, 20, 40, 16, zero="each", groups=groups)
            prim = product(stored, 16)
        yield _case(f"groups {groups} {dtype.name.lower()}", kernels,
                    activations(rows, 40, dtype), w, prim, 20, ids, dtype=dtype)


def cases():
    yield from _types()
    yield from _shapes()
    yield from _groups()
