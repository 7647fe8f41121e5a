"""Attention with its masks, views and caches; RotaryEmbedding; LinearAttention."""

from __future__ import annotations

import math
from typing import Literal

from rlx.errors import ModelError
from rlx.importer.ops.checks import fits, in_range, rank_is
from rlx.importer.ops.heads import (
    HEADS_LAST, Bias, Heads, Scores, added, attend, causal_keys, heads_of, joined, kept, rotated,
    static, weigh, within,
)
from rlx.importer.registry import op
from rlx.ir.build import DType, Number, Value, apply


@op("Attention", since=25)
def attention(b, q, k, v, attn_mask=None, past_key=None, past_value=None, nonpad_kv_seqlen=None,
              *, is_causal: int = 0, kv_num_heads: int = 0, left_window_size: int = -1,
              q_num_heads: int = 0, qk_matmul_output_mode: int = 0, right_window_size: int = -1,
              scale: float | None = None, softcap: float = 0.0,
              softmax_precision: int | None = None):
    in_range("qk_matmul_output_mode", qk_matmul_output_mode, 0, 3)
    if q.rank == 3:
        in_range("q_num_heads", q_num_heads, 1)
        in_range("kv_num_heads", kv_num_heads, 1)
    queries, keys, values = (heads_of(b, x, n) for x, n in (
        (q, q_num_heads), (k, kv_num_heads), (v, kv_num_heads)))
    before: Number = 0
    if past_key is not None and past_value is not None:
        before = past_key.shape[2]
        keys = Heads(b.concat([past_key, keys.first(b)], 2))
        values = Heads(b.concat([past_value, values.first(b)], 2))
    view = _View(b, queries, keys, before, nonpad_kv_seqlen)
    if is_causal:
        view.causal()
    view.window(left_window_size, right_window_size)
    if attn_mask is not None:
        view.mask(attn_mask)
    scores = Scores(scale, view.offset, view.biases(), softcap, None,
                    _precision(q, softmax_precision))
    layout = "bhsd" if q.rank == 4 else "bshd"
    qk = None
    if len(b.wanted) > 3 and b.wanted[3]:
        qk = weigh(b, queries, keys, scores)
        qk[3] = view.guarded(qk[3], "bhsd")
    y = view.guarded(attend(b, queries, keys, values, scores, layout), layout)
    present = [x.first(b) if wanted else None
               for x, wanted in zip((keys, values), (*b.wanted[1:], False, False))]
    y = y if q.rank == 4 else joined(b, y)
    return y, *present, qk and qk[qk_matmul_output_mode]


@op("Attention", since=24)
def attention_24(b, q, k, v, attn_mask=None, past_key=None, past_value=None,
                 nonpad_kv_seqlen=None, *, is_causal: int = 0, kv_num_heads: int = 0,
                 q_num_heads: int = 0, qk_matmul_output_mode: int = 0,
                 scale: float | None = None, softcap: float = 0.0,
                 softmax_precision: int | None = None):
    return attention(b, q, k, v, attn_mask, past_key, past_value, nonpad_kv_seqlen,
                     is_causal=is_causal, kv_num_heads=kv_num_heads, q_num_heads=q_num_heads,
                     qk_matmul_output_mode=qk_matmul_output_mode, scale=scale, softcap=softcap,
                     softmax_precision=softmax_precision)


@op("Attention", since=23)
def attention_23(b, q, k, v, attn_mask=None, past_key=None, past_value=None, *,
                 is_causal: int = 0, kv_num_heads: int = 0, q_num_heads: int = 0,
                 qk_matmul_output_mode: int = 0, scale: float | None = None,
                 softcap: float = 0.0, softmax_precision: int | None = None):
    return attention_24(b, q, k, v, attn_mask, past_key, past_value, is_causal=is_causal,
                        kv_num_heads=kv_num_heads, q_num_heads=q_num_heads,
                        qk_matmul_output_mode=qk_matmul_output_mode, scale=scale,
                        softcap=softcap, softmax_precision=softmax_precision)


def _precision(x: Value, given: int | None) -> DType | None:
    """The softmax's type where it differs from what the primitive computes x in."""
    if given is None:
        return None
    wanted = DType(given)
    own = DType.FLOAT64 if x.dtype is DType.FLOAT64 else DType.FLOAT32
    return None if wanted in (own, x.dtype) else wanted


class _View:
    """Which keys the queries of an Attention see."""

    def __init__(self, b, q: Heads, k: Heads, before: Number, lengths: Value | None):
        self.b, self.queries, self.keys = b, q.dim("s"), k.dim("s")
        self.scores = (q.dim("b"), q.dim("h"), self.queries, self.keys)
        self.offset: Number | None = None   # a causal view that the primitive knows itself
        self.keep: list[Value] = []         # bool masks, one of which may hide all keys
        self.float_mask: Value | None = None
        self.hides_all = lengths is not None
        self.before = b.number_tensor(before, DType.INT64)
        self._before = before
        if lengths is not None:
            self.keep.append(within(b, lengths, self.keys))
            rows = b.reshape(b.cast(lengths, DType.INT64), (lengths.shape[0], 1, 1, 1))
            self.before = b.scalar("sub", rows, b.number_tensor(self.queries, DType.INT64))

    def _apart(self) -> Value:
        """How far each key is behind each query's place: [S, T] or [B, 1, S, T]."""
        b, shape = self.b, (self.queries, self.keys)
        place = b.scalar("add", b.iota(shape, 0), self.before)
        return b.scalar("sub", place, b.iota(shape, 1))

    def causal(self) -> None:
        if self.hides_all:
            self.keep.append(self.b.scalar("ge", self._apart(), self.b.const(0, DType.INT64)))
        else:
            self.offset = self._before

    def window(self, left: int, right: int) -> None:
        apart = self._apart() if left >= 0 or right >= 0 else None
        if left >= 0:
            self.hides_all = True  # of queries far behind the last key
            self.keep.append(self.b.scalar("le", apart, self.b.const(left, DType.INT64)))
        if right >= 0:
            self.keep.append(self.b.scalar("ge", apart, self.b.const(-right, DType.INT64)))

    def mask(self, mask: Value) -> None:
        """A bool or float mask; from opset 24 on what it lacks of the keys is hidden."""
        b, hidden = self.b, self.b.const(False if mask.dtype is DType.BOOL else -math.inf,
                                         mask.dtype)
        self.hides_all = True
        own, known = mask.shape[-1], isinstance(mask.shape[-1], int)
        # Two open dims are mostly one; a number beside an open dim says nothing about it.
        if b.opset >= 24 and (known != isinstance(self.keys, int) or not b.assume(
                apply("eq", own, self.keys), f"mask:{b.origin.name}",
                f"the mask is for {self.keys} keys")):
            zeros = (0,) * mask.rank
            mask = b.pad(mask, zeros, (*zeros[1:], apply("sub", self.keys, own)), fill=hidden)
        fits(b, mask, self.scores, "the mask")
        if mask.dtype is DType.BOOL:
            self.keep.append(mask)
        else:
            self.float_mask = mask

    def biases(self) -> list[Bias]:
        found = [] if self.float_mask is None else [added(self.b, self.float_mask)]
        return found + [kept(self.b, keep) for keep in self.keep]

    def guarded(self, x: Value, layout: str) -> Value:
        """x with zeros for the queries that see no key."""
        if not self.hides_all:
            return x
        b, seen = self.b, None
        masks = list(self.keep)
        if self.float_mask is not None:
            masks.append(b.scalar("ne", self.float_mask, b.like(-math.inf, self.float_mask)))
        if self.offset is not None:
            masks.append(causal_keys(b, self.queries, self.keys, self.offset))
        for mask in masks:
            seen = mask if seen is None else b.scalar("and", seen, mask)
        if seen.shape[-1] == 1:  # one entry for all keys
            seen = b.cast(seen, DType.UINT8)
        else:
            seen = b.reduce("max", b.cast(seen, DType.UINT8), (-1,))
        seen = b.reshape(seen, (*(1,) * (4 - seen.rank), *seen.shape))
        if layout == "bshd":
            seen = b.transpose(seen, HEADS_LAST)
        return b.select(b.scalar("ne", seen, b.like(0, seen)), x, b.like(0.0, x))


@op("RotaryEmbedding", since=23)
def rotary_embedding(b, x, cos_cache, sin_cache, position_ids=None, *, interleaved: int = 0,
                     num_heads: int = 0, rotary_embedding_dim: int = 0):
    """x [B, S, heads * d] or [B, heads, S, d]; the caches are [B, S, d / 2] without positions."""
    if x.rank == 3:
        in_range("num_heads", num_heads, 1)
    heads = heads_of(b, x, num_heads).first(b)
    if position_ids is not None:
        cos_cache, sin_cache = (b.gather(t, position_ids, 0) for t in (cos_cache, sin_cache))
    if rotary_embedding_dim:
        b.guard(apply("eq", apply("mul", cos_cache.shape[-1], 2), rotary_embedding_dim),
                "the caches are not for rotary_embedding_dim")
    y = rotated(b, heads, cos_cache, sin_cache, bool(interleaved))
    return y if x.rank == 4 else joined(b, b.transpose(y, HEADS_LAST))


Rule = Literal["linear", "gated", "delta", "gated_delta"]


@op("LinearAttention", since=27)
def linear_attention(b, q, k, v, past_state=None, decay=None, beta=None, *, chunk_size: int = 64,
                     kv_num_heads: int, q_num_heads: int, scale: float = 0.0,
                     update_rule: Rule = "gated_delta"):
    """A state of [d_k, d_v] a head that each token decays, corrects and adds to."""
    for x in (q, k, v):
        rank_is(x, 3, "queries, keys and values")
    in_range("kv_num_heads", kv_num_heads, 1)
    in_range("q_num_heads", q_num_heads, 1)
    if q_num_heads % kv_num_heads:
        raise ModelError("query heads do not share the key heads evenly",
                         got=f"{q_num_heads} and {kv_num_heads}")
    if q.dtype is DType.FLOAT64:
        raise ModelError("LinearAttention takes no float64", got=str(q.type))
    gated, delta = "gated" in update_rule, "delta" in update_rule
    if (gated and decay is None) or (delta and beta is None):
        raise ModelError(f"update_rule {update_rule!r} needs {'decay' if gated else 'beta'}")
    size = static(apply("floordiv", q.shape[2], q_num_heads), "the size of a head")
    past = None if past_state is None else b.cast(past_state, DType.FLOAT32)
    y, state = b.linear_attention(q, k, v, past, decay if gated else None,
                                  beta if delta else None, q_num_heads, kv_num_heads,
                                  scale or 1.0 / math.sqrt(size))
    return y, b.cast(state, q.dtype if past_state is None else past_state.dtype)
