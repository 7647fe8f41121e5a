"""Attention of com.microsoft: Attention, MultiHeadAttention, RotaryEmbedding."""

from __future__ import annotations

from rlx.errors import ModelError, UnsupportedError
from rlx.importer.ops.checks import all_in_range, in_range, rank_is
from rlx.importer.ops.heads import (
    Heads, Scores, added, attend, heads_of, joined, rotated, within,
)
from rlx.importer.registry import Ints, op
from rlx.ir.build import DType, Value, apply, product

MS = "com.microsoft"


@op("RotaryEmbedding", domain=MS)
def rotary_embedding(b, x, position_ids, cos_cache, sin_cache, *, interleaved: int = 0,
                     is_packed_batching: int = 0, num_heads: int = 0,
                     rotary_embedding_dim: int = 0, scale: float = 1.0):
    """x [B, S, heads * d] or [B, heads, S, d]; positions [B, S], or the first one of all."""
    if is_packed_batching or scale != 1.0:
        raise UnsupportedError("RotaryEmbedding with packed batches or a scale")
    count = num_heads
    if x.rank == 3 and rotary_embedding_dim == 0:
        count = apply("floordiv", x.shape[2], apply("mul", cos_cache.shape[1], 2))
    elif x.rank == 3:
        in_range("num_heads", num_heads, 1)
    heads = heads_of(b, x, count).first(b)
    places = position_ids
    if position_ids.rank == 1:
        first = b.cast(b.reshape(position_ids, (1, 1)), DType.INT64)
        places = b.scalar("add", b.iota((1, heads.shape[2]), 1), first)
    cos, sin = (b.gather(t, places, 0) for t in (cos_cache, sin_cache))
    y = rotated(b, heads, cos, sin, bool(interleaved))
    return y if x.rank == 4 else joined(b, b.transpose(y, (0, 2, 1, 3)))


def _filtered(b, keep: Value, value: float):
    """A bias that lowers the scores where `keep` is false."""
    return lambda s: b.scalar("add", s, b.select(keep, b.like(0.0, s), b.like(value, s)))


def _mask(b, mask: Value, queries, keys, filter_value: float):
    """The bias of a key padding mask in one of its forms."""
    if mask.rank == 4:
        before = apply("sub", keys, queries)
        mask = b.narrow(b.narrow(mask, 2, before, queries), 3, 0, keys)
    elif mask.rank == 3:
        mask = b.unsqueeze(mask, (1,))
    elif mask.rank == 2:
        mask = b.unsqueeze(mask, (1, 2))
    return _filtered(b, b.scalar("gt", mask, b.like(0, mask)), filter_value)


def _index_mask(b, mask: Value, batch, keys, filter_value: float):
    """A mask of rank 1: lengths [B], or ends and then starts [2B]."""
    if mask.shape[0] is batch or mask.shape[0] == batch:
        return _filtered(b, within(b, mask, keys), filter_value)
    b.guard(apply("eq", mask.shape[0], apply("mul", batch, 2)),
            "a mask_index has one or two numbers for each sequence")
    ends, starts = b.split(mask, 0, (batch, batch))
    start = b.reshape(b.cast(starts, DType.INT64), (batch, 1, 1, 1))
    after = b.scalar("le", start, b.iota((1, 1, 1, keys), 3))
    return _filtered(b, b.scalar("and", after, within(b, ends, keys)), filter_value)


@op("Attention", domain=MS)
def attention(b, x, weights, bias=None, mask_index=None, past=None, attention_bias=None,
              past_sequence_length=None, *, do_rotary: int = 0,
              mask_filter_value: float = -10000.0, num_heads: int,
              past_present_share_buffer: int = 0, qkv_hidden_sizes: Ints = None,
              rotary_embedding_dim: int = 0, scale: float = 0.0, unidirectional: int = 0):
    """Projects x to queries, keys and values, then attends; past and present are stacked."""
    if do_rotary or past_present_share_buffer or past_sequence_length is not None:
        raise UnsupportedError("Attention with rotary positions or a shared buffer")
    rank_is(x, 3, "the input")
    width = weights.shape[1]
    sizes = (apply("floordiv", width, 3),) * 3
    if qkv_hidden_sizes:
        sizes = all_in_range("qkv_hidden_sizes", qkv_hidden_sizes, 3, 1)
    y = b.matmul(x, weights)
    y = y if bias is None else b.scalar("add", y, bias)
    return attend_projected(b, y, sizes, num_heads, past, mask_index, attention_bias, scale,
                            bool(unidirectional), mask_filter_value)


def attend_projected(b, y: Value, sizes, num_heads: int, past, mask_index, attention_bias,
                     scale: float, causal: bool, filter_value: float):
    """Attention over queries, keys and values of `sizes` side by side in y -> output, present."""
    in_range("num_heads", num_heads, 1)
    q, k, v = (heads_of(b, part, num_heads) for part in b.split(y, 2, sizes))
    present = None
    if past is not None:
        rank_is(past, 5, "past")
        old = [b.squeeze(part, (0,)) for part in b.split(past, 0, (1, 1))]
        k, v = (Heads(b.concat([x, y.first(b)], 2)) for x, y in zip(old, (k, v)))
    if len(b.wanted) > 1 and b.wanted[1]:
        present = b.concat([b.unsqueeze(x.first(b), (0,)) for x in (k, v)], 0)
    scores = _scores(b, q, k, mask_index, attention_bias, causal, filter_value, scale)
    return joined(b, attend(b, q, k, v, scores, "bshd")), present


def _scores(b, q: Heads, k: Heads, mask, attention_bias, causal: bool, filter_value: float,
            scale: float) -> Scores:
    queries, keys = q.dim("s"), k.dim("s")
    biases = []
    if attention_bias is not None:
        biases.append(added(b, attention_bias))
    if mask is not None and mask.rank == 1:
        biases.append(_index_mask(b, mask, q.dim("b"), keys, filter_value))
    elif mask is not None:
        biases.append(_mask(b, mask, queries, keys, filter_value))
    return Scores(scale, apply("sub", keys, queries) if causal else None, biases)


@op("MultiHeadAttention", domain=MS)
def multi_head_attention(b, query, key=None, value=None, bias=None, key_padding_mask=None,
                         attention_bias=None, past_key=None, past_value=None,
                         past_sequence_length=None, cache_indirection=None, *,
                         mask_filter_value: float = -10000.0, num_heads: int, scale: float = 0.0,
                         unidirectional: int = 0):
    if past_sequence_length is not None or cache_indirection is not None:
        raise UnsupportedError("MultiHeadAttention with a shared buffer")
    in_range("num_heads", num_heads, 1)
    q, k, v = _separated(b, query, key, value, bias, num_heads)
    if past_key is not None:
        k, v = (Heads(b.concat([x, y.first(b)], 2))
                for x, y in ((past_key, k), (past_value, v)))
    scores = _scores(b, q, k, key_padding_mask, attention_bias, bool(unidirectional),
                     mask_filter_value, scale)
    present = [x.first(b) if wanted else None
               for x, wanted in zip((k, v), (*b.wanted[1:], False, False))]
    return joined(b, attend(b, q, k, v, scores, "bshd")), *present


def _separated(b, query, key, value, bias, num_heads: int) -> list[Heads]:
    """Queries, keys and values as heads from packed or separate inputs."""
    if query.rank == 5:  # [B, S, heads, 3, d]
        parts = b.split(query, 3, (1, 1, 1))
    elif key is not None and key.rank == 5:  # [B, T, heads, 2, d]
        parts = [query, *b.split(key, 3, (1, 1))]
    else:
        parts = [query, key, value]
    if any(p is None for p in parts):
        raise ModelError("keys and values are missing")
    flat = [b.reshape(p, (*p.shape[:2], product(p.shape[2:]))) if p.rank == 5 else p
            for p in parts]
    if bias is not None:
        sizes = [p.shape[2] if p.rank == 3 else apply("mul", p.shape[1], p.shape[3]) for p in flat]
        flat = [b.scalar("add", p, _bias_of(b, part, p, num_heads))
                for p, part in zip(flat, b.split(bias, 0, sizes))]
    return [heads_of(b, p, num_heads) for p in flat]


def _bias_of(b, bias: Value, x: Value, num_heads: int) -> Value:
    if x.rank == 3:
        return bias
    return b.reshape(bias, (num_heads, 1, x.shape[3]))
