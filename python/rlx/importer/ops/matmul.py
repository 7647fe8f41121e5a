"""Matrix products: MatMul, Gemm, MatMulInteger."""

from __future__ import annotations

from rlx.errors import ModelError
from rlx.importer.ops.checks import same_type
from rlx.importer.registry import op
from rlx.ir.build import DType, Value


@op("MatMul", since=1)
def matmul(b, x, y):
    return _matmul(b, x, y)


def _matmul(b, x: Value, y: Value, **more) -> Value:
    """NumPy's matmul: a vector on the left is a row, on the right a column, then dropped."""
    if not x.rank or not y.rank:
        raise ModelError("MatMul takes no scalars", got=f"{x.type} and {y.type}")
    row, column = x.rank == 1, y.rank == 1
    x = b.unsqueeze(x, (0,)) if row else x
    y = b.unsqueeze(y, (1,)) if column else y
    z = b.matmul(x, y, **more)
    dropped = [z.rank - 2] * row + [z.rank - 1] * column
    return b.squeeze(z, dropped) if dropped else z


@op("MatMulInteger", since=10)
def matmul_integer(b, x, y, x_zero=None, y_zero=None):
    same_type(x_zero, x.dtype, "A")
    same_type(y_zero, y.dtype, "B")
    return _matmul(b, x, y, a_zero=x_zero, b_zero=y_zero, dtype=DType.INT32)


@op("Gemm", since=7)
def gemm(b, x, y, c=None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
         transB: int = 0):
    """alpha * op(x) op(y) + beta * c."""
    whole = not x.dtype.is_float
    product = b.matmul(x, y, trans_a=bool(transA), trans_b=bool(transB),
                       alpha=1.0 if whole else alpha)
    if whole and alpha != 1.0:
        product = b.scalar("mul", product, b.like(int(alpha), x))
    if c is None or beta == 0.0:
        return product
    if beta != 1.0:
        c = b.scalar("mul", c, b.like(beta if not whole else int(beta), c))
    return b.scalar("add", product, c)


@op("Gemm", since=1)
def gemm_1(b, x, y, c, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0,
           broadcast: int = 0):
    return gemm(b, x, y, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
