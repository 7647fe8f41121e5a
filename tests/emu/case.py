"""One case of a kernel: a primitive at one size, what it reads, and how closely it must agree."""

from dataclasses import dataclass

import numpy as np
import pytest

from rlx import _core
from rlx.errors import DeviceError
from rlx.ir.prims import AxisMap, MovePart, Region, RegionOp
from rlx.ir.types import DType, TensorType
from tests.kernels.run_prim import run_prim

F32, F16, BF16, F64 = DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT64
I8, U8, I32, I64, BOOL = DType.INT8, DType.UINT8, DType.INT32, DType.INT64, DType.BOOL


@dataclass(frozen=True)
class Case:
    """kernels names the files under kernels/ that run; what is a row of tests/tolerance.py; a rung
    is forced; constants are the inputs that belong to the model."""

    name: str
    kernels: tuple[str, ...]
    prim: object
    inputs: list
    outputs: list
    what: str = "exact"
    in_place: bool = False
    rung: str = ""
    constants: tuple[int, ...] = ()

    def run(self, device):
        return run_prim(self.prim, self.inputs, self.outputs, in_place=self.in_place,
                        device=device, rung=self.rung, constants=self.constants)


def emulated(name: str):
    """The emulated device of that name; skips where the build has none."""
    try:
        return _core.make_device(name)
    except DeviceError:
        pytest.skip("this build has no emulator: configure with -DRLX_EMULATOR=ON")


def values(shape, dtype: DType = F32, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype is BOOL:
        return rng.random(shape) < 0.5
    if dtype.is_integer:
        low = 0 if dtype.name.startswith("U") else -100
        return rng.integers(low, 100, shape).astype(dtype.numpy)
    return np.asarray(rng.standard_normal(shape) * scale).astype(dtype.numpy)


def typed(dtype: DType, *shape: int) -> TensorType:
    return TensorType(dtype, shape)


def identity(rank: int) -> tuple[AxisMap, ...]:
    return tuple(AxisMap(k) for k in range(rank))


def region(shape, accesses, ops, results=None) -> Region:
    return Region(tuple(shape), tuple(accesses), tuple(ops), results or (len(ops) - 1,))


def chain(shape, dtype: DType, *steps: str, given: DType = F32, store: DType | None = None):
    """An epilogue: load 0, then each of `steps` with an extra operand broadcast from the last axis
    ("add") or alone ("gelu"), stored as `store`."""
    ops = [RegionOp("load", given, (0,))]
    accesses = [identity(len(shape))]
    for step in steps:
        value = len(ops) - 1
        if step in ("add", "mul", "sub"):
            ops.append(RegionOp("load", given, (len(accesses),)))
            accesses.append((AxisMap(len(shape) - 1),))
            ops.append(RegionOp(step, given, (value, len(ops) - 1)))
        else:
            ops.append(RegionOp(step, given, (value,)))
    if store and store is not given:
        ops.append(RegionOp("cast", store, (len(ops) - 1,)))
    return region(shape, accesses, ops)


def part(index: int, extents, perm=None, starts=None, steps=None, offsets=None) -> MovePart:
    n = len(extents)
    return MovePart(index, tuple(perm or range(n)), tuple(starts or (0,) * n),
                    tuple(steps or (1,) * n), tuple(extents), tuple(offsets or (0,) * n))
