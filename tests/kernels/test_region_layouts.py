"""Random Regions: broadcast, transposed, repeated, tiled and indexed operands, several results,
in place, on few and many threads; exact integers in float32 against the NumPy reference."""

import numpy as np
import pytest

from rlx.ir.prims import AxisMap, Region, RegionOp
from rlx.ir.reference.region import region as reference
from rlx.ir.types import DType, TensorType
from tests.kernels.run_prim import run_prim
from tests.tolerance import tolerance

LOADED = (DType.FLOAT32, DType.FLOAT32, DType.FLOAT16, DType.FLOAT64, DType.INT64, DType.INT8)
STORED = (DType.FLOAT32, DType.FLOAT32, DType.INT32, DType.FLOAT16, DType.FLOAT64)


class Random:
    """A random Region and its inputs."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.shape = self.some_shape()
        self.rank = len(self.shape)
        self.accesses, self.inputs, self.ops = [], [], []
        for _ in range(self.rng.integers(1, 4)):
            self.load()
        if self.rank and self.chance(0.3):
            self.ops.append(RegionOp("index", DType.INT64, (int(self.rng.integers(self.rank)),)))
            self.cast_last(DType.FLOAT32)
        for _ in range(self.rng.integers(0, 6)):
            self.compute()
        self.finish()

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def some_shape(self) -> tuple[int, ...]:
        rank = int(self.rng.integers(0, 6))
        dims = [1, 2, 3, 5, 6, 8, 12, 31] if rank > 3 else [1, 2, 3, 7, 12, 33, 64, 100, 257, 500]
        shape = [int(self.rng.choice(dims)) for _ in range(rank)]
        while np.prod(shape) > 200000:
            shape = [max(1, d // 2) for d in shape]
        if rank and self.chance(0.03):
            shape[0] = 0
        return tuple(shape)

    def axis(self, axis: int) -> tuple[AxisMap, int]:
        """A way to walk along an axis, and the extent that it needs."""
        extent, r, draw = self.shape[axis], self.rng.random(), self.rng.integers
        if r < 0.15 or extent < 2:
            return AxisMap(axis), 1 if r < 0.15 else extent
        if r < 0.25:
            div = int(draw(2, 6))
            return AxisMap(axis, div), -(-extent // div)
        if r < 0.35:
            mod = int(draw(1, 5))
            return AxisMap(axis, 1, mod), mod
        if r < 0.42:
            div, mod = int(draw(2, 4)), int(draw(2, 4))
            return AxisMap(axis, div, mod), mod
        return (AxisMap(-1), 1) if r < 0.45 else (AxisMap(axis), extent)

    def load(self) -> None:
        axes = list(range(self.rank))
        if self.chance(0.3):
            self.rng.shuffle(axes)
        if self.chance(0.4):
            axes = [a for a in axes if self.chance(0.6)]
        found = [self.axis(a) for a in axes] + ([(AxisMap(-1), 1)] if self.chance(0.1) else [])
        dtype = LOADED[self.rng.integers(len(LOADED))]
        self.accesses.append(tuple(m for m, _ in found))
        x = self.rng.integers(-20, 20, [n for _, n in found])
        self.inputs.append(np.asarray(x).astype(dtype.numpy))
        self.ops.append(RegionOp("load", dtype, (len(self.inputs) - 1,)))
        self.cast_last(DType.FLOAT32)

    def cast_last(self, dtype: DType) -> None:
        if self.ops[-1].dtype is not dtype:
            self.ops.append(RegionOp("cast", dtype, (len(self.ops) - 1,), 1))

    def value(self) -> int:
        return int(self.rng.choice([k for k, op in enumerate(self.ops)
                                    if op.dtype is DType.FLOAT32]))

    def compute(self) -> None:
        r, single = self.rng.random(), DType.FLOAT32
        if r < 0.2:
            self.ops.append(RegionOp("const", single, (), float(self.rng.integers(-3, 4))))
        elif r < 0.4:
            self.ops.append(RegionOp("abs", single, (self.value(),)))
        elif r < 0.5:
            self.ops.append(RegionOp("lt", DType.BOOL, (self.value(), self.value())))
            args = (len(self.ops) - 1, self.value(), self.value())
            self.ops.append(RegionOp("select", single, args))
        else:
            name = str(self.rng.choice(["add", "sub", "min", "max"]))
            self.ops.append(RegionOp(name, single, (self.value(), self.value())))

    def finish(self) -> None:
        count = int(self.rng.integers(1, 4)) if self.chance(0.5) else 1
        results, self.types = [], []
        for _ in range(count):
            results.append(self.value() if count > 1 else len(self.ops) - 1)
        for k, r in enumerate(results):
            dtype = STORED[self.rng.integers(len(STORED))]
            if self.ops[r].dtype is not dtype:
                self.ops.append(RegionOp("cast", dtype, (r,), 1))
                results[k] = len(self.ops) - 1
            self.types.append(TensorType(dtype, self.shape))
        self.prim = Region(self.shape, tuple(self.accesses), tuple(self.ops), tuple(results))


@pytest.mark.parametrize("seed", range(240))
def test_random_region(seed):
    case = Random(seed)
    want = reference(case.prim, case.inputs, case.types, lambda dim: dim)
    got = run_prim(case.prim, case.inputs, case.types, threads=(1, 2, 5)[seed % 3],
                   in_place=seed % 2 == 0)
    for g, w in zip(got, want):
        np.testing.assert_array_equal(g, w)


def test_a_long_chain_is_one_step():
    x = np.linspace(-1, 1, 1000, dtype=np.float32)
    ops, want = [RegionOp("load", DType.FLOAT32, (0,))], x.astype(np.float64)
    for k in range(150):
        ops.append(RegionOp("const", DType.FLOAT32, (), 1 + k * 1e-3))
        ops.append(RegionOp("mul" if k % 2 else "add", DType.FLOAT32, (max(len(ops) - 2, 0),
                                                                      len(ops) - 1)))
        c = np.float64(np.float32(1 + k * 1e-3))
        want = want * c if k % 2 else want + c
    prim = Region(x.shape, ((AxisMap(0),),), tuple(ops), (len(ops) - 1,))
    got, = run_prim(prim, [x], [TensorType(DType.FLOAT32, x.shape)])
    np.testing.assert_allclose(got, want, **tolerance("rounded", "float32"))


def test_strings_compare_and_choose():
    a = np.array(["x", "yy", "x", ""], object)
    b = np.array(["x", "x", "z", ""], object)
    ops = [RegionOp("load", DType.STRING, (0,)), RegionOp("load", DType.STRING, (1,)),
           RegionOp("eq", DType.BOOL, (0, 1)), RegionOp("select", DType.STRING, (2, 0, 1))]
    prim = Region((4,), ((AxisMap(0),),) * 2, tuple(ops), (2, 3))
    equal, chosen = run_prim(prim, [a, b], [TensorType(DType.BOOL, (4,)),
                                            TensorType(DType.STRING, (4,))])
    assert equal.tolist() == [True, False, False, True]
    assert chosen.tolist() == ["x", "x", "z", ""]
