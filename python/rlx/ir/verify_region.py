"""What a Region must satisfy: accesses, SSA order, types of loads and scalar functions; and what
checks of all primitives ask."""

from __future__ import annotations

from rlx.errors import InternalError
from rlx.ir.expr import Expr, Number
from rlx.ir.graph import Value
from rlx.ir.prims import Region, RegionOp
from rlx.ir.scalars import SCALAR_OPS
from rlx.ir.types import DType


def require(condition: bool, message: str) -> None:
    """Raises InternalError with the message unless the condition holds."""
    if not condition:
        raise InternalError(f"broken graph: {message}")


def verify_region(region: Region, loads: list[Value | None]) -> None:
    """loads[k] is what load k reads; None for what the primitive itself computes."""
    require(len(region.accesses) == len(loads), "a region has another number of loads")
    for v, access in zip(loads, region.accesses):
        require(v is None or len(access) == v.rank, f"the access of {v!r} has another rank")
        for m in access:
            require(-1 <= m.axis < len(region.shape), "an access maps an axis that is not there")
    for k, op in enumerate(region.ops):
        _verify_op(op, k, region, loads)
    require(len(region.results) > 0, "a region has no result")
    for r in region.results:
        require(0 <= r < len(region.ops), "a region's result does not exist")


def _verify_op(op: RegionOp, at: int, region: Region, loads: list[Value | None]) -> None:
    where = f"region op {at} ({op.op})"
    require(isinstance(op.dtype, DType), f"{where} has no element type")
    if op.op in ("const", "dim"):
        return
    if op.op in ("load", "index"):
        limit = len(loads) if op.op == "load" else len(region.shape)
        require(len(op.args) == 1 and 0 <= op.args[0] < limit, f"{where} is out of range")
        if op.op == "index":
            require(op.dtype is DType.INT64, f"{where} must be int64")
        elif loads[op.args[0]] is not None:
            require(loads[op.args[0]].dtype is op.dtype, f"{where} loads another element type")
        return
    require(op.op == "cast" or op.op in SCALAR_OPS, f"{where} is no scalar function")
    arity = 1 if op.op == "cast" else SCALAR_OPS[op.op].arity
    require(len(op.args) == arity, f"{where} takes {arity} arguments")
    require(all(0 <= a < at for a in op.args), f"{where} precedes its argument")
    if op.op != "cast":
        last = region.ops[op.args[-1]].dtype
        require(SCALAR_OPS[op.op].allows(last), f"{where} is not defined for {last.name}")
        require(SCALAR_OPS[op.op].result_dtype(last) is op.dtype,
                f"{where} of {last.name} does not give {op.dtype.name}")


def verify_fused(region: Region | None, first: Value | None, extras: list[Value]) -> list[Value]:
    """Checks a Region fused with a primitive; the extras that it does not take."""
    if region is None:
        return extras
    taken = len(region.accesses) - 1
    verify_region(region, [first, *extras[:taken]])
    require(len(region.results) == 1, "a fused region has one result")
    return extras[taken:]


def of_rank(v: Value, rank: int) -> None:
    require(v.rank == rank, f"{v!r} must have rank {rank}")


def may_equal(a: Number, b: Number) -> bool:
    """Whether two numbers may be equal: a symbolic one is only equal or not when bound."""
    return isinstance(a, Expr) or isinstance(b, Expr) or a == b


def same_shape(v: Value, shape) -> None:
    require(v.rank == len(shape) and all(map(may_equal, v.shape, shape)),
            f"{v!r} must have the shape {list(shape)}")
