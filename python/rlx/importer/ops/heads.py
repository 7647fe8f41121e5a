"""What all attention operators share: heads, scores, masks, turned positions.

Plain attention is the primitive; with masks it is written out, which the attention pass fuses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlx.errors import ModelError, UnsupportedError
from rlx.importer.ops.checks import fits, rank_is
from rlx.ir.build import DType, Number, Value, apply, product

HEADS_LAST = (0, 2, 1, 3)
_PRIMITIVE = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)
Bias = Callable[[Value], Value]  # scores -> scores


@dataclass
class Heads:
    """Queries, keys or values as [B, heads, length, d] ("bhsd") or [B, length, heads, d]."""

    value: Value
    layout: str = "bhsd"

    def dim(self, letter: str) -> Number:
        return self.value.shape[self.layout.index(letter)]

    def first(self, b) -> Value:
        """The tensor with its heads before the length."""
        return self.value if self.layout == "bhsd" else b.transpose(self.value, HEADS_LAST)


def heads_of(b, x: Value, count: Number) -> Heads:
    """[B, S, count * d] seen as heads; [B, count, S, d] as it is."""
    if x.rank == 4:
        return Heads(x)
    rank_is(x, 3, "queries, keys and values")
    size = apply("floordiv", x.shape[2], count)
    return Heads(b.reshape(x, (*x.shape[:2], count, size)), "bshd")


def joined(b, x: Value) -> Value:
    """[B, S, heads, d] as [B, S, heads * d]."""
    return b.reshape(x, (*x.shape[:2], product(x.shape[2:])))


@dataclass
class Scores:
    """What happens between the products: softmax(biases(softcap(scale q k^T)))."""

    scale: float | None = None           # none: 1 / sqrt(d)
    causal: Number | None = None         # keys up to the query's place + this are seen
    biases: Sequence[Bias] = ()
    softcap: float = 0.0
    sink: Value | None = None            # a further score that takes weight and gives no value
    precision: DType | None = None       # what the softmax is computed in

    def factor(self, q: Heads) -> float:
        return self.scale or 1.0 / math.sqrt(static(q.dim("d"), "the size of a head"))

    @property
    def plain(self) -> bool:
        return not self.biases and not self.softcap and self.sink is None and not self.precision


def attend(b, q: Heads, k: Heads, v: Heads, scores: Scores, layout: str) -> Value:
    """The values weighted by the scores, as `layout`; k and v may have fewer heads."""
    if scores.plain and all(x.value.dtype in _PRIMITIVE for x in (q, k, v)):
        for heads in (k.dim("h"), v.dim("h")):
            b.guard(apply("eq", apply("mod", q.dim("h"), heads), 0),
                    f"{q.dim('h')} query heads do not share {heads} key or value heads")
        offset = 0 if scores.causal is None else scores.causal
        return b.attention(q.value, k.value, v.value, scale=scores.factor(q),
                           causal=scores.causal is not None, causal_offset=offset,
                           layouts=(q.layout, k.layout, v.layout, layout))
    weights = weigh(b, q, k, scores)[3]
    y = b.matmul(weights, _repeated(b, v.first(b), q.dim("h")))
    return y if layout == "bhsd" else b.transpose(y, HEADS_LAST)


def weigh(b, q: Heads, k: Heads, scores: Scores) -> list[Value]:
    """[scaled products, those capped, those with biases, weights], each [B, heads, S, T]."""
    found = [b.matmul(q.first(b), _repeated(b, k.first(b), q.dim("h")), trans_b=True)]
    found[0] = b.scalar("mul", found[0], b.like(scores.factor(q), found[0]))
    s = b.cast(found[0], scores.precision) if scores.precision else found[0]
    if scores.softcap:
        cap = b.like(scores.softcap, s)
        s = b.scalar("mul", b.scalar("tanh", b.scalar("div", s, cap)), cap)
    found.append(s)
    biases = list(scores.biases)
    if scores.causal is not None:
        biases.append(kept(b, causal_keys(b, q.dim("s"), k.dim("s"), scores.causal)))
    for bias in biases:
        s = bias(s)
    found.append(s)
    if scores.sink is None:
        s = b.softmax(s, 3)
    else:
        column = b.expand(b.cast(scores.sink, s.dtype), (*s.shape[:3], 1))
        s = b.narrow(b.softmax(b.concat([s, column], 3), 3), 3, 0, s.shape[3])
    return [b.cast(v, q.value.dtype) for v in (*found, s)]


def static(n: Number, what: str) -> int:
    if not isinstance(n, int):
        raise UnsupportedError(f"{what} is known only at run time", got=str(n))
    return n


def _repeated(b, x: Value, heads: Number) -> Value:
    """Key or value heads, each repeated for its group of query heads."""
    if x.shape[1] is heads or x.shape[1] == heads:
        return x
    own = static(x.shape[1], "the number of key heads")
    times, rest = divmod(static(heads, "the number of query heads"), own)
    if rest:
        raise ModelError("query heads do not share the key heads evenly", got=f"{heads} and {own}")
    wide = b.expand(b.unsqueeze(x, (2,)), (x.shape[0], own, times, *x.shape[2:]))
    return b.reshape(wide, (x.shape[0], heads, *x.shape[2:]))


def kept(b, keep: Value) -> Bias:
    """Takes out the keys where `keep` is false."""
    return lambda s: b.select(keep, s, b.like(-math.inf, s))


def added(b, bias: Value) -> Bias:
    """Adds a bias of any float type."""
    return lambda s: b.scalar("add", s, b.cast(bias, s.dtype))


def causal_keys(b, queries: Number, keys: Number, before: Number) -> Value:
    """[S, T] bool: key j is not after query i, which stands at i + before."""
    i = b.scalar("add", b.iota((queries, keys), 0), b.number_tensor(before, DType.INT64))
    return b.scalar("le", b.iota((queries, keys), 1), i)


def within(b, lengths: Value, keys: Number) -> Value:
    """[B, 1, 1, T] bool from the valid lengths of right-padded keys."""
    lengths = b.reshape(b.cast(lengths, DType.INT64), (lengths.shape[0], 1, 1, 1))
    return b.scalar("lt", b.iota((1, 1, 1, keys), 3), lengths)


def rotated(b, x: Value, cos: Value, sin: Value, interleaved: bool) -> Value:
    """x [B, heads, S, d] turned by angles [B or 1, S, n]; what is beyond 2n of d stays."""
    half = cos.shape[2]
    size, rest = apply("mul", half, 2), None
    turned = x
    if size is not x.shape[3] and size != x.shape[3]:
        turned = b.narrow(x, 3, 0, size)
        rest = b.narrow(x, 3, size, apply("sub", x.shape[3], size))
    cos, sin = (b.unsqueeze(fits(b, t, (x.shape[0], x.shape[2], half), "a table of angles"), (1,))
                for t in (cos, sin))
    if interleaved:
        parts = b.split(b.reshape(turned, (*turned.shape[:3], half, 2)), 4, (1, 1))
        cos, sin = b.unsqueeze(cos, (4,)), b.unsqueeze(sin, (4,))
        y = b.reshape(b.concat(_turn(b, *parts, cos, sin), 4), turned.shape)
    else:
        y = b.concat(_turn(b, *b.split(turned, 3, (half, half)), cos, sin), 3)
    return y if rest is None else b.concat([y, rest], 3)


def _turn(b, real: Value, imaginary: Value, cos: Value, sin: Value) -> list[Value]:
    mul = lambda u, v: b.scalar("mul", u, v)  # noqa: E731
    return [b.scalar("sub", mul(real, cos), mul(imaginary, sin)),
            b.scalar("add", mul(imaginary, cos), mul(real, sin))]
