"""Matrix products: MatMul, Gemm, MatMulInteger."""

from __future__ import annotations

from collections.abc import Callable

from rlx.errors import ModelError
from rlx.importer.ops.checks import fits, same_type, single
from rlx.importer.registry import op
from rlx.ir.build import DType, Value


@op("MatMul", since=1)
def matmul(b, x, y):
    return of_matrices(b, x, y, b.matmul)


def of_matrices(b, x: Value, y: Value, product: Callable[[Value, Value], Value]) -> Value:
    """product(x, y) of matrices, by NumPy's matmul: a vector on the left is a row, on the right a
    column, and the result lacks that axis."""
    if not x.rank or not y.rank:
        raise ModelError("MatMul takes no scalars", got=f"{x.type} and {y.type}")
    row, column = x.rank == 1, y.rank == 1
    z = product(b.unsqueeze(x, (0,)) if row else x, b.unsqueeze(y, (1,)) if column else y)
    dropped = [z.rank - 2] * row + [z.rank - 1] * column
    return b.squeeze(z, dropped) if dropped else z


@op("MatMulInteger", since=10)
def matmul_integer(b, x, y, x_zero=None, y_zero=None):
    same_type(x_zero, x.dtype, "A")
    same_type(y_zero, y.dtype, "B")
    return of_matrices(b, x, y, lambda x, y: quantised_product(b, x, y, x_zero, y_zero))


def quantised_product(b, x: Value, y: Value, x_zero: Value | None, y_zero: Value | None) -> Value:
    """(x - x_zero) (y - y_zero) of matrices: int32, float32 where one of them is float8.

    A zero point is one number, one for each row of x or column of y, or has the rank of its
    operand when each matrix of a batch has its own: those are taken off before.
    """
    x_zero = slices(b, x, x_zero, -2, "the zero point of A")
    y_zero = slices(b, y, y_zero, -1, "the zero point of B")
    floats = x.dtype.is_float or y.dtype.is_float
    if not floats and all(zero is None or zero.rank < 2 for zero in (x_zero, y_zero)):
        return b.matmul(x, y, a_zero=x_zero, b_zero=y_zero, dtype=DType.INT32)
    dtype = DType.FLOAT32 if floats else DType.INT32
    if x_zero is not None and x_zero.rank == 1:
        x_zero = b.unsqueeze(x_zero, (1,))
    x, y = (v if zero is None else b.scalar("sub", v, b.cast(zero, dtype))
            for v, zero in ((b.cast(x, dtype), x_zero), (b.cast(y, dtype), y_zero)))
    return b.matmul(x, y)


def slices(b, x: Value, v: Value | None, axis: int, what: str) -> Value | None:
    """A scale or zero point of x: one number, rank 1 along `axis` of x, or of x's rank."""
    if v is None:
        return None
    v = single(b, v)
    if v.rank < 2:
        if v.rank:
            b.same_dim(v.shape[0], x.shape[axis], what)
        return v
    b.has_rank(v, x.rank, what)
    for k, (given, wanted) in enumerate(zip(v.shape, x.shape), -x.rank):
        if given != 1:
            b.same_dim(given, 1 if k >= -2 and k != axis else wanted, f"axis {k} of {what}")
    if all(d == 1 for d in v.shape[:-2]):
        return b.reshape(v, (v.shape[axis],))
    return v


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
    fits(b, c, product.shape, "C")
    if beta != 1.0:
        c = b.scalar("mul", c, b.like(beta if not whole else int(beta), c))
    return b.scalar("add", product, c)


@op("Gemm", since=1)
def gemm_1(b, x, y, c, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0,
           broadcast: int = 0):
    return gemm(b, x, y, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
