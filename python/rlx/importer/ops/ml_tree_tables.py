"""Tables of tree ensembles from both of ONNX's forms, checked: what a tree is, and that it ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlx.errors import ModelError
from rlx.ir.build import Value

_MODES = {"BRANCH_LEQ": 0, "BRANCH_LT": 1, "BRANCH_GTE": 2, "BRANCH_GT": 3, "BRANCH_EQ": 4,
          "BRANCH_NEQ": 5, "LEAF": 6}
_LEAF = _MODES["LEAF"]
_EQUAL, MEMBER = 4, 6  # of TreeEnsemble, which has no leaves among its nodes


@dataclass(slots=True)
class Trees:
    """Inner nodes; a child c < 0 is leaf -1 - c, whose votes begin at starts[leaf]."""

    features: np.ndarray
    modes: np.ndarray
    tracks: np.ndarray   # whether NaN takes the true branch
    splits: np.ndarray
    yes: np.ndarray
    no: np.ndarray
    roots: np.ndarray
    starts: np.ndarray
    targets: np.ndarray
    weights: np.ndarray


def same_length(**tables: np.ndarray | None) -> int:
    """The length that all the tables must have; None stands for an absent one."""
    sizes = {name: len(t) for name, t in tables.items() if t is not None}
    if len(set(sizes.values())) > 1:
        raise ModelError("tables of the trees differ in length",
                         got=", ".join(f"{name}: {size}" for name, size in sizes.items()))
    return next(iter(sizes.values()), 0)


# -- the older form: nodes, leaves among them, and votes by tree and node -----------------------


def from_votes(nodes: dict, votes: dict) -> Trees:
    """Trees of TreeEnsembleRegressor and -Classifier."""
    trees, ids, modes = nodes["treeids"], nodes["nodeids"], nodes["modes"]
    count = same_length(**nodes)
    same_length(**votes)
    unknown = set(modes) - _MODES.keys()
    if unknown:
        raise ModelError("unknown nodes_modes", expected=", ".join(_MODES), got=sorted(unknown))
    mode = np.array([_MODES[m] for m in modes], np.int64)
    find = _Finder(trees, ids)
    leaf = mode == _LEAF
    place = np.where(leaf, -np.cumsum(leaf), np.cumsum(~leaf) - 1)
    inner = np.flatnonzero(~leaf)
    child = [place[find(trees[inner], nodes[side][inner], "a child")]
             for side in ("truenodeids", "falsenodeids")]
    roots = _roots(find, place, np.concatenate(child), trees)
    voted = find(votes["treeids"], votes["nodeids"], "the node of a vote")
    voted = np.where(leaf[voted], -1 - place[voted], -1)  # votes of inner nodes do not count
    order = np.argsort(voted, kind="stable")
    order = order[voted[order] >= 0]
    tracks = nodes["tracks"] if nodes["tracks"] is not None else np.zeros(count, np.int64)
    return Trees(nodes["features"][inner], mode[inner], tracks[inner] != 0,
                  nodes["values"][inner], *child, roots,
                  np.searchsorted(voted[order], np.arange(leaf.sum() + 1)),
                  votes["ids"][order], votes["weights"][order])


class _Finder:
    """Rows of nodes by (tree, node)."""

    def __init__(self, trees: np.ndarray, ids: np.ndarray):
        if trees.size and (min(trees.min(), ids.min()) < 0
                           or (trees.max() + 1) * (ids.max() + 1) >= 2**62):
            raise ModelError("ids of trees and nodes are negative or too large")
        self.span = int(ids.max(initial=0)) + 1
        keys = trees * self.span + ids
        self.order = np.argsort(keys, kind="stable")
        self.keys = keys[self.order]
        if (self.keys[1:] == self.keys[:-1]).any():
            raise ModelError("a node is listed twice in a tree")

    def __call__(self, trees: np.ndarray, ids: np.ndarray, what: str) -> np.ndarray:
        wanted = trees * self.span + ids
        at = np.searchsorted(self.keys, wanted)
        there = (at < self.keys.size) & (ids >= 0) & (ids < self.span)
        there[there] = self.keys[at[there]] == wanted[there]
        if not there.all():
            k = int(np.flatnonzero(~there)[0])
            raise ModelError(f"{what} does not exist", got=f"tree {trees[k]}, node {ids[k]}")
        return self.order[at]


def _roots(find: _Finder, place: np.ndarray, children: np.ndarray, trees: np.ndarray) -> np.ndarray:
    """The places of the nodes that are no child: one for each tree."""
    check_inner(children, int((place >= 0).sum()))
    free = np.ones(place.size, bool)
    inner, leaves = np.flatnonzero(place >= 0), np.flatnonzero(place < 0)
    free[inner[children[children >= 0]]] = False
    free[leaves[-1 - children[children < 0]]] = False
    roots = np.flatnonzero(free)
    listed = find.keys // find.span  # the tree of each node, sorted
    distinct = listed[np.flatnonzero(np.diff(listed, prepend=-1))]
    if not np.array_equal(np.sort(trees[roots]), distinct):
        raise ModelError("the nodes of a tree have no root, or several")
    _check_reach(place[roots], children.reshape(2, -1))
    return place[roots]


def _check_reach(roots: np.ndarray, children: np.ndarray) -> None:
    """Every inner node hangs on a root; those that do not go round in circles."""
    seen, level = 0, roots[roots >= 0]
    while level.size:
        seen += level.size
        level = children[:, level].reshape(-1)
        level = level[level >= 0]
    if seen != children.shape[1]:
        raise ModelError("nodes of a tree are children of each other")


def check_inner(children: np.ndarray, count: int) -> None:
    """No inner node is a child twice: from a root that is none, no walk is endless."""
    inner = children[children >= 0]
    if inner.size and np.bincount(inner, minlength=count).max() > 1:
        raise ModelError("the nodes form no trees: one is reached by two ways")


def children_of(ids: np.ndarray, leaf: np.ndarray, nodes: int, leaves: int) -> np.ndarray:
    """Children of TreeEnsemble's nodes, those that are leaves as -1 - leaf."""
    if (ids < 0).any() or (ids >= np.where(leaf != 0, leaves, nodes)).any():
        raise ModelError("a child of a node does not exist",
                         expected=f"one of {nodes} nodes or {leaves} leaves")
    return np.where(leaf != 0, -1 - ids, ids)


def expand_members(trees: Trees, values: Value | None) -> None:
    """A test of membership becomes a chain of tests of equality, one for each member."""
    at = np.flatnonzero(trees.modes == MEMBER)
    if not at.size:
        return
    flat = np.zeros(0) if values is None else values.const.reshape(-1)
    ends = np.flatnonzero(np.isnan(flat))
    sets = np.split(flat, ends)
    sets = [s[1:] if k else s for k, s in enumerate(sets)]
    if sets and not sets[-1].size and len(sets) > at.size:
        sets.pop()  # a NaN stands behind the last set
    if len(sets) != at.size or not all(s.size for s in sets):
        raise ModelError("membership_values has one set for each BRANCH_MEMBER", got=len(sets),
                         expected=at.size)
    names = ("features", "modes", "tracks", "splits", "yes", "no")
    rows: list[tuple] = []
    trees.modes[at] = _EQUAL
    for node, members in zip(at.tolist(), sets):
        end = trees.no[node]
        for k, member in enumerate(members.tolist()):
            more = k + 1 < len(members)
            then = len(trees.modes) + len(rows) + (1 if k else 0) if more else end
            row = (trees.features[node], _EQUAL, trees.tracks[node], member, trees.yes[node], then)
            if k:
                rows.append(row)
            else:
                trees.splits[node], trees.no[node] = member, then
    for name, column in zip(names, zip(*rows)):
        table = getattr(trees, name)
        setattr(trees, name, np.concatenate([table, np.array(column, table.dtype)]))
