"""Optimiser steps of ai.onnx.preview.training, as compositions."""

from __future__ import annotations

from typing import Literal

from rlx.errors import ModelError
from rlx.importer.registry import op
from rlx.ir.build import DType, Value

TRAINING = "ai.onnx.preview.training"


def _groups(values: tuple, count: int) -> list[tuple]:
    """The `count` tensors of each optimised one: all first ones come first."""
    if not values or len(values) % count:
        raise ModelError("an optimiser takes groups of equally many tensors",
                         expected=f"a multiple of {count}", got=len(values))
    size = len(values) // count
    return [values[i::size] for i in range(size)]


def _by_kind(results: list[tuple]) -> list[Value]:
    return [v for kind in zip(*results) for v in kind]


def _scaled(b, factor, x: Value) -> Value:
    """factor * x for a number or a scalar tensor of any float type."""
    factor = b.cast(factor, x.dtype) if isinstance(factor, Value) else b.like(factor, x)
    return b.scalar("mul", x, factor)


def _regularised(b, x: Value, gradient: Value, coefficient: float) -> Value:
    return b.scalar("add", _scaled(b, coefficient, x), gradient)


def _started(b, count: Value) -> Value:
    """Whether any step was made before."""
    return b.scalar("gt", count, b.like(0, count))


@op("Adagrad", domain=TRAINING)
def adagrad(b, rate, count, *tensors, decay_factor: float = 0.0, epsilon: float = 0.0,
            norm_coefficient: float = 0.0):
    decayed = b.scalar("add", _scaled(b, decay_factor, b.cast(count, rate.dtype)),
                       b.like(1.0, rate))
    rate = b.scalar("div", rate, decayed)
    results = []
    for x, gradient, squares in _groups(tensors, 3):
        g = _regularised(b, x, gradient, norm_coefficient)
        squares = b.scalar("add", squares, b.scalar("mul", g, g))
        size = b.scalar("add", b.scalar("sqrt", squares), b.like(epsilon, x))
        step = _scaled(b, rate, b.scalar("div", g, size))
        results.append((b.scalar("sub", x, step), squares))
    return _by_kind(results)


@op("Adam", domain=TRAINING)
def adam(b, rate, count, *tensors, alpha: float = 0.9, beta: float = 0.999,
         epsilon: float = 0.0, norm_coefficient: float = 0.0, norm_coefficient_post: float = 0.0):
    steps = b.cast(count, rate.dtype)
    left = lambda f: b.scalar("sub", b.like(1.0, rate), b.scalar(  # noqa: E731
        "pow", b.like(f, rate), steps))
    adjusted = b.scalar("div", b.scalar("mul", rate, b.scalar("sqrt", left(beta))), left(alpha))
    rate = b.select(_started(b, count), adjusted, rate)
    results = []
    for x, gradient, momentum, squares in _groups(tensors, 4):
        g = _regularised(b, x, gradient, norm_coefficient)
        momentum = _mixed(b, momentum, g, alpha)
        squares = _mixed(b, squares, b.scalar("mul", g, g), beta)
        size = b.scalar("add", b.scalar("sqrt", squares), b.like(epsilon, x))
        new = b.scalar("sub", x, b.scalar("div", _scaled(b, rate, momentum), size))
        results.append((_scaled(b, 1.0 - norm_coefficient_post, new), momentum, squares))
    return _by_kind(results)


def _mixed(b, old: Value, new: Value, kept: float) -> Value:
    return b.scalar("add", _scaled(b, kept, old), _scaled(b, 1.0 - kept, new))


@op("Momentum", domain=TRAINING)
def momentum(b, rate, count, *tensors, alpha: float, beta: float,
             mode: Literal["standard", "nesterov"], norm_coefficient: float):
    weight = b.select(_started(b, count), b.const(beta, DType.FLOAT32),
                      b.const(1.0, DType.FLOAT32))
    results = []
    for x, gradient, velocity in _groups(tensors, 3):
        g = _regularised(b, x, gradient, norm_coefficient)
        velocity = b.scalar("add", _scaled(b, alpha, velocity), _scaled(b, weight, g))
        step = velocity
        if mode == "nesterov":
            step = b.scalar("add", g, _scaled(b, alpha, velocity))
        results.append((b.scalar("sub", x, _scaled(b, rate, step)), velocity))
    return _by_kind(results)
