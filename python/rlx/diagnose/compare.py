"""How far a tensor is from its reference, and how far it may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# Largest difference allowed, as a part of the largest value of the reference. `whole`: after a
# whole model, whose rounding errors add up. `alone`: of one primitive on the very same inputs.
WHOLE = {"float64": 1e-9, "float32": 1e-3, "float16": 2e-2, "bfloat16": 6e-2}
ALONE = {"float64": 1e-11, "float32": 5e-5, "float16": 4e-3, "bfloat16": 3e-2}
SMALL_FLOATS = 0.25     # float8 and narrower: a step of their own or two
FLIPPED = 1e-3          # part of the integers that rounding of floats before them may change


@dataclass(frozen=True, slots=True)
class Difference:
    """error is a part of the reference's largest value, or of the elements for integers."""

    error: float
    limit: float
    what: str = ""

    @property
    def bad(self) -> bool:
        return not self.error <= self.limit  # a NaN is bad


def difference(found: Any, expected: Any, limits: dict[str, float] = WHOLE) -> Difference:
    """The Difference of a tensor, sequence (the worst of its items) or absent value."""
    if found is None or expected is None:
        same = found is None and expected is None
        return Difference(0.0 if same else np.inf, 0.0, "" if same else "one is absent")
    if isinstance(found, (list, tuple)) or isinstance(expected, (list, tuple)):
        if len(found) != len(expected):
            return Difference(np.inf, 0.0, f"{len(found)} items instead of {len(expected)}")
        items = [difference(f, e, limits) for f, e in zip(found, expected)]
        return max(items, key=lambda d: d.error - d.limit, default=Difference(0.0, 0.0))
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return Difference(np.inf, 0.0, f"shape {list(found.shape)}, not {list(expected.shape)}")
    if found.size == 0:
        return Difference(0.0, 0.0)
    if found.dtype.kind in "OUS":
        return _counted(found.astype(str) != expected.astype(str), 0.0)
    if _is_integer(found.dtype):
        return _integers(found, expected)
    return _floats(found, expected, limits.get(found.dtype.name, SMALL_FLOATS)
                   if found.dtype.kind != "c" else limits["float32"])


def _is_integer(dtype: np.dtype) -> bool:
    return dtype.kind in "biu" or dtype.name in ("int4", "uint4", "int2", "uint2")


def _integers(found: Any, expected: Any) -> Difference:
    """Narrow ones are mostly quantised floats, which may be one step off."""
    a, b = found.astype(np.int64), expected.astype(np.int64)
    allowed = 1 if found.dtype.itemsize == 1 and found.dtype.kind != "b" else 0
    return _counted(abs(a - b) > allowed, FLIPPED)


def _counted(wrong: Any, limit: float) -> Difference:
    count = int(np.count_nonzero(wrong))
    return Difference(count / wrong.size, limit, f"{count} of {wrong.size} differ")


def _floats(found: Any, expected: Any, limit: float) -> Difference:
    wide = np.complex128 if found.dtype.kind == "c" else np.float64
    a, b = found.astype(wide), expected.astype(wide)
    largest = float(np.finfo(np.float32).max) if limit > 1e-8 else float(np.finfo(wide).max)
    with np.errstate(invalid="ignore", over="ignore"):
        # What float64 still holds may have overflowed where it was computed.
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.isinf(a) & (abs(b) >= largest))
        apart = np.where(same, 0.0, abs(a - b))
    finite = abs(b[np.isfinite(b)])
    scale = max(float(finite.max()) if finite.size else 0.0, float(np.finfo(np.float32).tiny))
    return Difference(float(apart.max()) / scale, limit, f"largest difference {apart.max():.3g}")
