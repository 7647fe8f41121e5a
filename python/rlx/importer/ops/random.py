"""Random numbers and Dropout; every stream is Philox, seeded by the node or the Session."""

from __future__ import annotations

from rlx.errors import UnsupportedError
from rlx.importer.ops.checks import dims, in_range, rank_is
from rlx.importer.registry import Ints, op
from rlx.ir.build import DType, Random


def _like(x, dtype: int | None) -> DType:
    return x.dtype if dtype is None else DType(dtype)


@op("RandomNormal", since=1)
def random_normal(b, *, shape: Ints, dtype: int = 1, mean: float = 0.0, scale: float = 1.0,
                  seed: float | None = None):
    return b.random(Random("normal", mean, scale, seed), DType(dtype), dims("shape", shape))


@op("RandomNormalLike", since=1)
def random_normal_like(b, x, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0,
                       seed: float | None = None):
    return b.random(Random("normal", mean, scale, seed), _like(x, dtype), x.shape)


@op("RandomUniform", since=1)
def random_uniform(b, *, shape: Ints, dtype: int = 1, low: float = 0.0, high: float = 1.0,
                   seed: float | None = None):
    return b.random(Random("uniform", low, high, seed), DType(dtype), dims("shape", shape))


@op("RandomUniformLike", since=1)
def random_uniform_like(b, x, *, dtype: int | None = None, low: float = 0.0, high: float = 1.0,
                        seed: float | None = None):
    return b.random(Random("uniform", low, high, seed), _like(x, dtype), x.shape)


@op("Bernoulli", since=15)
def bernoulli(b, x, *, dtype: int | None = None, seed: float | None = None):
    return b.random(Random("bernoulli", seed=seed), _like(x, dtype), x.shape, x)


@op("Multinomial", since=7)
def multinomial(b, x, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None):
    rank_is(x, 2, "the input")
    in_range("sample_size", sample_size, 1)
    return b.random(Random("multinomial", seed=seed), DType(dtype), (x.shape[0], sample_size), x)


@op("Dropout", since=12)
def dropout(b, x, ratio=None, training_mode=None, *, seed: int | None = None):
    training = 0 if training_mode is None else b.structural_one(
        training_mode, "whether Dropout drops decides the program")
    if not training or (ratio is not None and ratio.is_const and not ratio.const.any()):
        return x, _all_kept(b, x)
    rate = b.const(0.5, x.dtype) if ratio is None else b.cast(ratio, x.dtype)
    noise = b.random(Random("uniform", 0.0, 1.0, seed), x.dtype, x.shape)
    keep = b.scalar("ge", noise, rate)
    kept = b.scalar("mul", x, b.cast(keep, x.dtype))
    return b.scalar("div", kept, b.scalar("sub", b.like(1, x), rate)), keep


def _all_kept(b, x):
    return b.fill(x.shape, True, DType.BOOL) if len(b.wanted) > 1 else None


@op("Dropout", since=10)
def dropout_10(b, x, *, ratio: float = 0.5):
    return x, _all_kept(b, x)


@op("Dropout", since=7)
def dropout_7(b, x, *, ratio: float = 0.5):
    """The mask has the type of x."""
    mask = _all_kept(b, x)
    return x, mask if mask is None else b.cast(mask, x.dtype)


@op("Dropout", since=1)
def dropout_1(b, x, *, ratio: float = 0.5, is_test: int = 0, consumed_inputs: Ints = None):
    if not is_test:
        raise UnsupportedError("Dropout in training mode before opset 7",
                               remedy="set the attribute is_test to 1, or convert the model to "
                                      "opset 7 or later, whose Dropout passes x through")
    return dropout_7(b, x, ratio=ratio)
