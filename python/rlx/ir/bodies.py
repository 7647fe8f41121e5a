"""The bodies of Map: what they take and give; twin of kernels/params/map.h (a test compares)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Body:
    """The first `required` of its inputs must be given; kernels/map/<name>.h says what
    the operands, ints and floats mean."""

    required: int
    inputs: int
    outputs: int


BODIES: dict[str, Body] = {
    "bit_cast": Body(1, 1, 1),
    "col2im": Body(1, 1, 1),
    "crop_and_resize": Body(3, 3, 1),
    "deform_columns": Body(2, 3, 1),
    "det": Body(1, 1, 2),
    "frames": Body(1, 1, 1),
    "grid_nearest": Body(2, 2, 1),
    "grid_sample": Body(2, 2, 1),
    "inverse": Body(1, 1, 2),
    "linear_attention": Body(3, 6, 2),
    "max_roi_pool": Body(2, 2, 1),
    "pairwise_coupling": Body(1, 1, 2),
    "roi_align": Body(3, 3, 1),
    "tree_ensemble": Body(6, 6, 1),
}
MAX_RANK = 8  # of an operand
