"""Quantised weights for tests of products: codes, zero points, scales, and what reads them."""

import numpy as np

from rlx.ir.packing import is_narrow, pack_rows
from rlx.ir.prims import MatMul
from rlx.ir.types import DType

RANGES = {DType.INT8: (-128, 128), DType.UINT8: (0, 256), DType.INT4: (-8, 8),
          DType.UINT4: (0, 16), DType.INT2: (-2, 2), DType.UINT2: (0, 4)}


def codes(dtype: DType, shape, rng) -> np.ndarray:
    """Every value of the type, as it is stored."""
    if dtype in RANGES:
        made = rng.integers(*RANGES[dtype], shape).astype(dtype.numpy)
    else:
        made = rng.uniform(-6, 6, shape).astype(np.float32).astype(dtype.numpy)
    return pack_rows(made, dtype) if is_narrow(dtype) else made


def weights(dtype: DType, n: int, k: int, block_k: int, block_n: int = 1, *, zero: str = "",
            scale: DType = DType.FLOAT32, groups: int = 0, seed: int = 0) -> list:
    """[b, None, b_zero, b_scale] of a product; zero is "one", "each", "float" or nothing."""
    rng = np.random.default_rng(seed)
    lead = (groups,) if groups else ()
    tiles = (*lead, -(-n // block_n), -(-k // block_k))
    low, high = RANGES.get(dtype, (0, 6))
    size = rng.uniform(0.5, 1.5, tiles) / (8 * max(-low, high))  # weights of at most 0.4
    scales = (size * rng.choice([-1, 1], tiles)).astype(scale.numpy)
    kept = np.uint8 if low == 0 else np.int8
    zeros = {"": None, "one": np.array(rng.integers(low, high), kept),
             "each": rng.integers(low, high, tiles).astype(kept),
             "float": rng.uniform(low, high, tiles).astype(np.float32)}[zero]
    return [codes(dtype, (*lead, n, k), rng), None, zeros, scales]


def product(dtype: DType, block_k: int, block_n: int = 1, **more) -> MatMul:
    return MatMul(trans_b=True, b_type=dtype, block_k=block_k, block_n=block_n, **more)
