"""Attention of com.microsoft: Attention, MultiHeadAttention, GroupQueryAttention, rotary positions.

Written out as products and a softmax, which the attention pass makes one primitive.
"""

from __future__ import annotations

import math

from rlx.errors import ModelError, UnsupportedError
from rlx.importer.ops.checks import all_in_range, in_range, rank_is
from rlx.importer.registry import Ints, op
from rlx.ir.build import DType, Value, apply, product

MS = "com.microsoft"
_NEVER = {DType.FLOAT16: -65504.0}  # a score that no key takes part with, else:
_NEVER_WIDE = -1e30


@op("RotaryEmbedding", domain=MS)
def rotary_embedding(b, x, position_ids, cos_cache, sin_cache, *, interleaved: int = 0,
                     is_packed_batching: int = 0, num_heads: int = 0,
                     rotary_embedding_dim: int = 0, scale: float = 1.0):
    """x [B, S, heads * d] or [B, heads, S, d]; positions [B, S], or the first one of all."""
    if is_packed_batching or scale != 1.0:
        raise UnsupportedError("RotaryEmbedding with packed batches or a scale")
    if x.rank == 4:
        heads = x
    else:
        rank_is(x, 3, "the input")
        size = apply("mul", cos_cache.shape[1], 2)
        if rotary_embedding_dim > 0:
            size = apply("floordiv", x.shape[2], in_range("num_heads", num_heads, 1))
        heads = heads_of(b, x, apply("floordiv", x.shape[2], size))
    length = heads.shape[2]
    places = position_ids
    if position_ids.rank == 1:
        first = b.reshape(position_ids, (1, 1))
        places = b.scalar("add", b.iota((1, length), 1), b.cast(first, DType.INT64))
    y = rotated(b, heads, places, cos_cache, sin_cache, bool(interleaved))
    return y if x.rank == 4 else joined(b, y)


def rotated(b, x: Value, places: Value, cos: Value, sin: Value, interleaved: bool) -> Value:
    """x [B, heads, S, d] turned by the angles of its places [B or 1, S]; the rest of d stays."""
    half = cos.shape[1]
    size, axis = apply("mul", half, 2), 3
    turned, rest = x, None
    if size is not x.shape[3] and size != x.shape[3]:
        turned = b.narrow(x, axis, 0, size)
        rest = b.narrow(x, axis, size, apply("sub", x.shape[3], size))
    cos, sin = (b.unsqueeze(b.gather(t, places, 0), (1,)) for t in (cos, sin))
    if interleaved:
        pairs = b.reshape(turned, (*turned.shape[:3], half, 2))
        parts = b.split(pairs, 4, (1, 1))
        cos, sin = b.unsqueeze(cos, (4,)), b.unsqueeze(sin, (4,))
        y = b.reshape(b.concat(_turn(b, *parts, cos, sin), 4), turned.shape)
    else:
        parts = b.split(turned, axis, (half, half))
        y = b.concat(_turn(b, *parts, cos, sin), axis)
    return y if rest is None else b.concat([y, rest], axis)


def _turn(b, real: Value, imaginary: Value, cos: Value, sin: Value) -> list[Value]:
    mul = lambda u, v: b.scalar("mul", u, v)  # noqa: E731
    return [b.scalar("sub", mul(real, cos), mul(imaginary, sin)),
            b.scalar("add", mul(imaginary, cos), mul(real, sin))]


def heads_of(b, x: Value, count) -> Value:
    """[B, S, count * d] as [B, count, S, d]."""
    size = apply("floordiv", x.shape[2], count)
    return b.transpose(b.reshape(x, (*x.shape[:2], count, size)), (0, 2, 1, 3))


def joined(b, x: Value) -> Value:
    """[B, heads, S, d] as [B, S, heads * d]."""
    x = b.transpose(x, (0, 2, 1, 3))
    return b.reshape(x, (*x.shape[:2], product(x.shape[2:])))


def attend(b, q: Value, k: Value, v: Value, scale: float | None, biases, softcap=0.0,
            sink: Value | None = None) -> Value:
    """softmax(scale q k^T + biases) v of [B, heads, length, d]; k and v may have fewer heads."""
    scale = scale if scale else 1.0 / math.sqrt(_static(q.shape[3], "the size of a head"))
    k, v = _repeated(b, k, q.shape[1]), _repeated(b, v, q.shape[1])
    scores = b.matmul(q, k, trans_b=True)
    scores = b.scalar("mul", scores, b.like(scale, scores))
    if softcap:
        capped = b.scalar("tanh", b.scalar("div", scores, b.like(softcap, scores)))
        scores = b.scalar("mul", capped, b.like(softcap, scores))
    for bias in biases:
        scores = bias(scores)
    if sink is None:
        return b.matmul(b.softmax(scores, 3), v)
    keys = scores.shape[3]
    column = b.expand(sink, (*scores.shape[:3], 1))
    weights = b.softmax(b.concat([scores, column], 3), 3)
    return b.matmul(b.narrow(weights, 3, 0, keys), v)


def _static(n, what: str) -> int:
    if not isinstance(n, int):
        raise UnsupportedError(f"{what} is known only at run time", got=str(n))
    return n


def _repeated(b, x: Value, heads) -> Value:
    """Key or value heads, each repeated for its group of query heads."""
    if x.shape[1] is heads or x.shape[1] == heads:
        return x
    own = _static(x.shape[1], "the number of key heads")
    times = _static(heads, "the number of query heads") // own
    wide = b.expand(b.unsqueeze(x, (2,)), (x.shape[0], own, times, *x.shape[2:]))
    return b.reshape(wide, (x.shape[0], heads, *x.shape[2:]))


def kept(b, keep: Value):
    """A bias that takes out the keys where `keep` is false."""
    return lambda s: b.select(keep, s, b.like(_NEVER.get(s.dtype, _NEVER_WIDE), s))


def _filtered(b, keep: Value, value: float):
    """A bias that lowers the scores where `keep` is false."""
    return lambda s: b.scalar("add", s, b.select(keep, b.like(0.0, s), b.like(value, s)))


def added(b, bias: Value):
    """A bias that is added to the scores."""
    return lambda s: b.scalar("add", s, bias)


def causal_keys(b, queries, keys, before) -> Value:
    """[S, T] bool: key j is not after query i, which stands at i + before."""
    i = b.scalar("add", b.iota((queries, keys), 0), b.number_tensor(before, DType.INT64))
    return b.scalar("le", b.iota((queries, keys), 1), i)


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


def within(b, lengths: Value, keys) -> Value:
    """[B, 1, 1, T] bool from the valid lengths of right-padded keys."""
    lengths = b.reshape(b.cast(lengths, DType.INT64), (lengths.shape[0], 1, 1, 1))
    return b.scalar("lt", b.iota((1, 1, 1, keys), 3), lengths)


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
        k, v = b.concat([old[0], k], 2), b.concat([old[1], v], 2)
    if len(b.wanted) > 1 and b.wanted[1]:
        present = b.concat([b.unsqueeze(k, (0,)), b.unsqueeze(v, (0,))], 0)
    biases = _biases(b, q, k, mask_index, attention_bias, causal, filter_value)
    return joined(b, attend(b, q, k, v, scale, biases)), present


def _biases(b, q: Value, k: Value, mask, attention_bias, causal: bool, filter_value: float) -> list:
    queries, keys = q.shape[2], k.shape[2]
    biases = []
    if attention_bias is not None:
        biases.append(added(b, attention_bias))
    if mask is not None and mask.rank == 1:
        biases.append(_index_mask(b, mask, q.shape[0], keys, filter_value))
    elif mask is not None:
        biases.append(_mask(b, mask, queries, keys, filter_value))
    if causal:
        keep = causal_keys(b, queries, keys, apply("sub", keys, queries))
        biases.append(kept(b, keep))
    return biases


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
        k, v = b.concat([past_key, k], 2), b.concat([past_value, v], 2)
    biases = _biases(b, q, k, key_padding_mask, attention_bias, bool(unidirectional),
                     mask_filter_value)
    return joined(b, attend(b, q, k, v, scale, biases)), k, v


def _separated(b, query, key, value, bias, num_heads: int) -> list[Value]:
    """Queries, keys and values as [B, heads, length, d] from packed or separate inputs."""
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
    return [heads_of(b, p, num_heads) if p.rank == 3 else p for p in flat]


def _bias_of(b, bias: Value, x: Value, num_heads: int) -> Value:
    if x.rank == 3:
        return bias
    return b.reshape(bias, (num_heads, 1, x.shape[3]))
