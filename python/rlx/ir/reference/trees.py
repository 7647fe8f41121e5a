"""References of the Map bodies of ai.onnx.ml: trees, and probabilities from pairwise ones."""

from __future__ import annotations

import numpy as np

from rlx.ir.prims import Map

_TESTS = (np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal)


def tree_ensemble(prim: Map, inputs, types, value_of) -> list[np.ndarray]:
    """Votes of each share of the trees, from tables as kernels/map/tree_ensemble.h has them."""
    x, nodes, roots, leaves, targets, weights = inputs
    rows, shares, count = (int(value_of(d)) for d in types[0].shape)
    kind = int(value_of(prim.ints[0]))
    words = x.dtype.itemsize // 4
    splits = nodes[:, :words].copy().view(weights.dtype).reshape(-1)
    table = list(zip(splits, *nodes[:, words:words + 3].T.tolist()))
    y = np.full((rows, shares, count), (0.0, np.inf, -np.inf)[kind])
    for row in range(rows):
        for share in range(shares):
            for root in roots[len(roots) * share // shares:len(roots) * (share + 1) // shares]:
                leaf = _leaf(table, int(root), x[row])
                for v in range(leaves[leaf], leaves[leaf + 1]):
                    place = (row, share, targets[v])
                    y[place] = (np.add, np.minimum, np.maximum)[kind](y[place], weights[v])
    return [y]


def _leaf(table: list, at: int, x: np.ndarray) -> int:
    while at >= 0:
        split, test, yes, no = table[at]
        flags, value = (test >> 28) & 15, x[test & 0x0fffffff]
        passes = _TESTS[flags & 7](value, split) or (flags & 8 and np.isnan(value))
        at = yes if passes else no
    return -1 - at


def pairwise_coupling(prim: Map, inputs, types, value_of) -> list[np.ndarray]:
    """What the iteration tends to: the p of sum 1 with Q p the same for every class."""
    classes = int(value_of(types[0].shape[1]))
    rows = []
    for pairs in inputs[0].astype(np.float64):
        chance = np.zeros((classes, classes))
        chance[np.triu_indices(classes, 1)] = pairs
        chance += np.tril(1 - chance.T, -1)
        q = -chance.T * chance
        np.fill_diagonal(q, (chance**2).sum(axis=0))
        system = np.block([[q, -np.ones((classes, 1))], [np.ones((1, classes)), np.zeros((1, 1))]])
        rows.append(np.linalg.solve(system, np.eye(classes + 1)[-1])[:classes])
    room = np.zeros((len(rows), classes, classes + 1))
    return [np.array(rows).reshape(-1, classes).astype(types[0].dtype.numpy), room]
