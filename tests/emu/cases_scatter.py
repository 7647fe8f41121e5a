"""Cases of scatters whose lines are long and few, so that their rows are sorted by target."""

import numpy as np

from rlx.ir.prims import Scatter
from tests.emu.case import BF16, BOOL, F16, F32, F64, I32, I64, I8, U8, Case, typed

REDUCTIONS = ("add", "mul", "min", "max")
SHAPES = [  # data, indices, axis
    ((9, 7), (150, 7), 0), ((9, 7), (150, 5), 0), ((4, 11, 5), (3, 65, 4), 1),
    ((4, 11, 5), (4, 100, 1), 1), ((6, 40), (5, 200), 1), ((40,), (128,), 0), ((1, 3), (70, 3), 0),
]


def numbers(rng, dtype, shape, reduction):
    """Values whose sums and products are exact in `dtype`, whatever their order."""
    if dtype is BOOL:
        return rng.random(shape) < 0.5
    if reduction == "mul":
        return rng.choice([1] if dtype is U8 else [-1, 1], shape).astype(dtype.numpy)
    small = 0 if dtype is U8 else 1 if reduction == "add" else 9
    return rng.integers(-small, small + 1 + (dtype is U8), shape).astype(dtype.numpy)


def _elements():
    for k, (shape, at, axis) in enumerate(SHAPES):
        for n, dtype in enumerate((F32, F16, BF16, F64, I32, I64, I8, U8, BOOL)):
            rng = np.random.default_rng(9 * k + n)
            reduction = REDUCTIONS[(k + n) % 4]
            indices = rng.integers(-shape[axis], shape[axis], at)
            yield Case(f"sorted {reduction} {dtype.name.lower()} {at} {axis}",
                       ("scatter", "sort", "move"), Scatter("elements", axis, reduction),
                       [numbers(rng, dtype, shape, reduction),
                        indices.astype(np.int32 if n % 2 else np.int64),
                        numbers(rng, dtype, at, reduction)],
                       [typed(dtype, *shape)], in_place=bool(n % 3 == 1))
    # Features of nodes summed by the edges of a graph: every line has the same indices.
    rng = np.random.default_rng(1)
    for nodes, edges, features in ((300, 3000, 8), (1, 500, 6), (30, 100, 1024)):
        indices = np.broadcast_to(rng.integers(0, nodes, (edges, 1)), (edges, features))
        yield Case(f"edges {edges} to {nodes}", ("scatter", "sort", "move"),
                   Scatter("elements", 0, "add"),
                   [numbers(rng, F32, (nodes, features), "add"), indices.copy(),
                    numbers(rng, F32, (edges, features), "add")], [typed(F32, nodes, features)])


def _tuples():
    rng = np.random.default_rng(2)
    for reduction in REDUCTIONS:
        for rows, inner in (((64,), 3), ((13, 25), 2)):
            indices = rng.integers([-4, -5], [4, 5], (*rows, 2)).astype(np.int64)
            yield Case(f"sorted tuples {reduction} {rows}", ("scatter", "sort", "move"),
                       Scatter("nd", reduction=reduction),
                       [numbers(rng, F32, (4, 5, inner), reduction), indices,
                        numbers(rng, F32, (*rows, inner), reduction)], [typed(F32, 4, 5, inner)])


def cases():
    """All of them."""
    return [*_elements(), *_tuples()]
