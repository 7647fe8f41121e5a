"""Numeric preconditions that several operators share; a refusal names what was expected and got."""

from __future__ import annotations

import math

from rlx.errors import ModelError, UnsupportedError
from rlx.ir.build import DType, Expr, Value, apply

LARGEST = 2**31 - 1  # strides, counts and their like are 32-bit in the kernels


def in_range(name: str, value: int, least: int, most: int = LARGEST) -> int:
    """An attribute that must lie in [least, most]."""
    if not least <= value <= most:
        raise ModelError(f"{name} is out of range", got=value,
                         expected=f"at least {least}" if value < least else f"at most {most}")
    return value


def all_in_range(name: str, values, count: int, least: int) -> tuple[int, ...]:
    """A list attribute of `count` entries, each at least `least`."""
    if len(values) != count:
        raise ModelError(f"{name} has the wrong number of entries", expected=count,
                         got=list(values))
    for v in values:
        in_range(f"an entry of {name}", v, least)
    return tuple(values)


def rank_at_least(x: Value, least: int, what: str = "the input") -> None:
    """The input must have so many axes."""
    if x.rank < least:
        raise ModelError(f"{what} has too few axes", expected=f"rank {least} or more",
                         got=str(x.type))


def rank_is(x: Value, rank: int, what: str) -> None:
    """The input must have exactly so many axes."""
    if x.rank != rank:
        raise ModelError(f"{what} has another rank", expected=f"rank {rank}", got=str(x.type))


def same_type(zero: Value | None, dtype: DType, what: str) -> None:
    """A zero point, where there is one, must have the type of the integers that it belongs to."""
    if zero is not None and zero.dtype is not dtype:
        raise ModelError(f"the zero point of {what} has another type",
                         expected=dtype.name.lower(), got=zero.dtype.name.lower())


def single(b, v: Value) -> Value:
    """v without its axes when it is one number."""
    return b.reshape(v, ()) if all(d == 1 for d in v.shape) else v


def fits(b, v: Value, shape, what: str) -> Value:
    """v, which broadcasts to `shape` and must not make more of it (guarded)."""
    if v.rank > len(shape):
        raise ModelError(f"{what} has too many axes", got=str(v.type),
                         expected=f"what broadcasts to [{', '.join(map(str, shape))}]")
    for d, n in zip(v.shape[::-1], shape[::-1]):
        if d == 1 or d == n:
            continue
        b.guard(apply("or", apply("eq", d, 1), apply("eq", d, n)),
                f"{what} of shape {list(v.shape)} does not broadcast to {list(shape)}")
    return v


def window(x: Value, strides, dilations, kernel=None,
           most: int | None = 3) -> tuple[tuple, tuple]:
    """(strides, dilations) of a sliding window over NC... x, ones where they are not given.

    `most` axes a window may slide along, None for any: the kernels of Conv and Pool know three.
    """
    rank_at_least(x, 3)
    spatial = x.rank - 2
    if most is not None and spatial > most:
        raise UnsupportedError("a window slides along too many axes", got=str(x.type),
                               expected=f"N, C and at most {most} more axes")
    if kernel is not None:
        all_in_range("kernel_shape", kernel, spatial, 1)
    ones = (1,) * spatial
    return (all_in_range("strides", strides or ones, spatial, 1),
            all_in_range("dilations", dilations or ones, spatial, 1))


def scale(b, s, name: str = "a scale"):
    """A factor of sizes: a positive, finite number (guarded)."""
    if not isinstance(s, Expr) and not (0.0 < s < LARGEST):
        raise ModelError(f"{name} is no positive number", expected="a finite number above 0",
                         got=s if math.isfinite(s) else str(s))
    b.guard(apply("lt", 0.0, s), f"{name} is not above 0: {s}")
    b.guard(apply("lt", s, float(LARGEST)), f"{name} is too large: {s}")
    return s


def dims(name: str, values) -> tuple[int, ...]:
    """The entries of a shape attribute: none may be negative."""
    for v in values:
        in_range(f"a dim of {name}", v, 0, 2**63 - 1)
    return tuple(values)
