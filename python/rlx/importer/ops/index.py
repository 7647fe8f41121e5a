"""Indexing by data: Gather*, Scatter*, TopK, NonZero, Compress, Unique, NonMaxSuppression."""

from __future__ import annotations

from typing import Literal

import numpy as np

from rlx.errors import ModelError
from rlx.importer.ops.checks import in_range, rank_at_least
from rlx.importer.ops.text import unique_text
from rlx.importer.registry import op
from rlx.ir.build import DType, as_int

Reduction = Literal["none", "add", "mul", "max", "min"]


@op("Gather", since=1)
def gather(b, data, indices, *, axis: int = 0):
    return b.gather(data, indices, axis)


@op("GatherElements", since=11)
def gather_elements(b, data, indices, *, axis: int = 0):
    return b.gather_elements(data, indices, axis)


@op("GatherND", since=11)
def gather_nd(b, data, indices, *, batch_dims: int = 0):
    rank_at_least(indices, 1, "indices")
    in_range("batch_dims", batch_dims, 0, min(data.rank, indices.rank) - 1)
    depth = as_int(indices.shape[-1])
    if depth is None:
        depth = b.structural_one(b.from_numbers([indices.shape[-1]], DType.INT64),
                                "the last dim of GatherND's indices decides the rank")
    if batch_dims + depth > data.rank:
        raise ModelError("indices reach past the data's rank", got=depth,
                         expected=f"at most {data.rank - batch_dims}")
    return b.gather_nd(data, indices, batch_dims, depth)


@op("ScatterElements", since=11)
def scatter_elements(b, data, indices, updates, *, axis: int = 0, reduction: Reduction = "none"):
    return b.scatter("elements", data, indices, updates, axis=axis, reduction=reduction)


@op("Scatter", since=9)
def scatter(b, data, indices, updates, *, axis: int = 0):
    return b.scatter("elements", data, indices, updates, axis=axis)


@op("ScatterND", since=11)
def scatter_nd(b, data, indices, updates, *, reduction: Reduction = "none"):
    return b.scatter("nd", data, indices, updates, reduction=reduction)


@op("TensorScatter", since=24)
def tensor_scatter(b, past, update, write_indices=None, *, axis: int = -2,
                   mode: Literal["linear", "circular"] = "linear"):
    """Writes update at write_indices[batch] along axis; circular wraps around the cache."""
    b.has_rank(update, past.rank, "update")
    axis = b.axis(axis, past.rank)
    place = b.iota(update.shape, axis)
    if write_indices is not None:
        b.has_rank(write_indices, 1, "write_indices")
        wide = tuple(d if k == 0 else 1 for k, d in enumerate(update.shape))
        place = b.scalar("add", place, b.reshape(write_indices, wide))
    if mode == "circular":
        size = b.from_numbers([past.shape[axis]], DType.INT64, ())
        place = b.scalar("mod", place, size)
    return b.scatter("elements", past, place, update, axis=axis)


@op("TopK", since=10)
def topk(b, x, k, *, axis: int = -1, largest: int = 1, sorted: int = 1):
    return b.topk(x, b.number(k), axis, largest, sorted)


@op("TopK", since=1)
def topk_1(b, x, *, k: int, axis: int = -1):
    return b.topk(x, k, axis)


@op("NonZero", since=9)
def nonzero(b, x):
    if x.is_const:
        return b.const(np.array(np.nonzero(np.atleast_1d(x.const))), DType.INT64)
    return b.nonzero(x)


@op("Compress", since=9)
def compress(b, x, condition, *, axis: int | None = None):
    return b.compress(x, condition, axis)


@op("Unique", since=11)
def unique(b, x, *, axis: int | None = None, sorted: int = 1):
    if sorted and x.dtype is DType.STRING:
        return unique_text(b, x, axis)
    return b.unique(x, axis, sorted)


@op("NonMaxSuppression", since=10)
def non_max_suppression(b, boxes, scores, max_output=None, iou=None, score=None, *,
                        center_point_box: int = 0):
    return b.non_max_suppression(boxes, scores, max_output, iou, score, bool(center_point_box))


