"""What a matrix product must satisfy: its shapes, quantised weights, groups of rows."""

from __future__ import annotations

from rlx.ir.expr import Expr
from rlx.ir.packing import bits_of, is_narrow
from rlx.ir.prims import MatMul
from rlx.ir.types import DType
from rlx.ir.verify_region import may_equal, of_rank, require, same_shape, verify_fused


def check_matmul(p: MatMul, x, y) -> None:
    a, b = x[0], x[1]
    require(a.rank >= 2 and b.rank >= 2, "a product takes ranks of at least 2")
    _check_groups(x)
    require((p.b_type is None) == (x[4] is None), "a quantised b, and no other, has scales")
    if p.b_type is not None:
        _check_quantised(p, x, y)
        return
    m, ka = a.shape[-2:][::-1] if p.trans_a else a.shape[-2:]
    kb, n = b.shape[-2:][::-1] if p.trans_b else b.shape[-2:]
    require(may_equal(ka, kb), f"{a!r} and {b!r} differ in their inner dims")
    of_rank(y[0], max(a.rank, b.rank) if x[5] is None else 2)
    fits = may_equal(y[0].shape[-2], m) and may_equal(y[0].shape[-1], n)
    require(fits, f"{y[0]!r} has another shape")
    verify_fused(p.epilogue, None, x[6:])


def _check_groups(x) -> None:
    a, b, groups = x[0], x[1], x[5]
    if groups is not None:
        require(a.rank == 2 and b.rank == 3, "with groups a has rank 2 and b rank 3")
        require(groups.dtype in (DType.INT32, DType.INT64), "groups are int32 or int64")
        same_shape(groups, a.shape[:1])


def _check_quantised(p: MatMul, x, y) -> None:
    a, b, zero, scale = x[0], x[1], x[3], x[4]
    narrow = is_narrow(p.b_type)
    require(b.dtype is (DType.UINT8 if narrow else p.b_type), f"{b!r} does not hold {p.b_type!r}")
    require(p.trans_b and not p.trans_a and x[2] is None, "only b [.., N, C] can be quantised")
    require(a.dtype in (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16),
            "a quantised b is multiplied by float32, float16 or bfloat16")
    require(p.block_k > 0 and p.block_n > 0, "blocks must not be empty")
    require(scale.dtype.is_float, "scales are floats")
    n, held = y[0].shape[-1], b.shape[-1]
    require(may_equal(b.shape[-2], n), f"{y[0]!r} has another shape")
    if not isinstance(held, Expr) and not isinstance(a.shape[-1], Expr):
        require(held * 8 // bits_of(p.b_type) >= a.shape[-1], f"{b!r} has too few columns")
    of_rank(scale, b.rank)
    if zero is not None and zero.type.static_shape() not in ((), (1,)):
        same_shape(zero, scale.shape)
    verify_fused(p.epilogue, None, x[6:])
