"""GroupQueryAttention of com.microsoft: attention over a cache whose sequences may differ."""

from __future__ import annotations

from rlx.errors import ModelError, UnsupportedError
from rlx.importer.ops.checks import in_range, rank_is
from rlx.importer.ops.heads import (
    Heads, Scores, added, attend, heads_of, joined, kept, rotated, within,
)
from rlx.importer.registry import op
from rlx.ir.build import DType, Value, apply

MS = "com.microsoft"


@op("GroupQueryAttention", domain=MS)
def group_query_attention(
        b, query, key=None, value=None, past_key=None, past_value=None, seqlens_k=None,
        total_sequence_length=None, cos_cache=None, sin_cache=None, position_ids=None,
        attention_bias=None, head_sink=None, k_scale=None, v_scale=None, q_norm_weight=None,
        k_norm_weight=None, query_seqlens=None, *, causal: int = 1, do_rotary: int = 0,
        k_norm_epsilon: float = 0.0, k_quant_type: str = "NONE", kv_cache_bit_width: int = 0,
        kv_num_heads: int, local_window_size: int = -1, num_heads: int,
        q_norm_epsilon: float = 0.0, qk_norm_epsilon: float = 1e-6, qk_output: int = 0,
        rotary_interleaved: int = 0, scale: float = 0.0, sliding_window_cache: int = 0,
        smooth_softmax: int = 0, softcap: float = 0.0, v_quant_type: str = "NONE"):
    if k_scale is not None or v_scale is not None or kv_cache_bit_width \
            or (k_quant_type, v_quant_type) != ("NONE", "NONE"):
        raise UnsupportedError("GroupQueryAttention with a quantised cache")
    if query_seqlens is not None or sliding_window_cache or qk_output:
        raise UnsupportedError("GroupQueryAttention with padded queries, a window-sized cache or "
                               "its scores as an output")
    if seqlens_k is None or total_sequence_length is None:
        raise ModelError("seqlens_k and total_sequence_length are needed")
    in_range("num_heads", num_heads, 1)
    in_range("kv_num_heads", kv_num_heads, 1, num_heads)
    q, k, v = _separated(b, query, key, value, num_heads, kv_num_heads)
    if q_norm_weight is not None and k_norm_weight is not None:
        q = b.norm("rms", q, q_norm_weight, None, q_norm_epsilon or qk_norm_epsilon, axis=3)[0]
        k = b.norm("rms", k, k_norm_weight, None, k_norm_epsilon or qk_norm_epsilon, axis=3)[0]
    cache = _Cache(b, q, past_key, seqlens_k, b.number(total_sequence_length))
    if do_rotary:
        if cos_cache is None or sin_cache is None:
            raise ModelError("do_rotary needs cos_cache and sin_cache")
        places = cache.places if position_ids is None else position_ids
        cos, sin = (b.gather(t, places, 0) for t in (cos_cache, sin_cache))
        q, k = (rotated(b, x, cos, sin, bool(rotary_interleaved)) for x in (q, k))
    k, v = cache.grown(past_key, k), cache.grown(past_value, v)
    biases = [] if attention_bias is None else [added(b, attention_bias)]
    offset = None
    if causal and cache.plain and local_window_size < 0:
        offset = cache.past
    else:
        biases.append(kept(b, cache.visible(k.shape[2], bool(causal), local_window_size)))
    scores = Scores(scale, offset, biases, softcap, _sink(b, q, head_sink, smooth_softmax))
    return joined(b, attend(b, Heads(q), Heads(k), Heads(v), scores, "bshd")), k, v


def _separated(b, query, key, value, num_heads: int, kv_num_heads: int) -> list[Value]:
    """Queries, keys and values as [B, heads, S, d]; without a key they are packed."""
    rank_is(query, 3, "the query")
    if key is None:
        size = apply("floordiv", query.shape[2], num_heads + 2 * kv_num_heads)
        widths = [apply("mul", size, n) for n in (num_heads, kv_num_heads, kv_num_heads)]
        query, key, value = b.split(query, 2, widths)
    counts = (num_heads, kv_num_heads, kv_num_heads)
    return [heads_of(b, x, n).first(b) for x, n in zip((query, key, value), counts)]


def _sink(b, q: Value, head_sink: Value | None, smooth: int) -> Value | None:
    """A further score of each head that takes weight and gives no value."""
    if head_sink is not None:
        return b.reshape(head_sink, (1, q.shape[1], 1, 1))
    return b.const(0.0, q.dtype) if smooth > 0 else None


class _Cache:
    """Where the new tokens of each sequence stand, and which keys they see."""

    def __init__(self, b, q: Value, past: Value | None, seqlens_k: Value, total):
        self.b, self.total, self.new = b, total, q.shape[2]
        self.past = 0 if past is None else past.shape[2]
        self.batch = q.shape[0]
        whole = apply("add", self.past, self.new)
        name = f"gqa:{b.origin.name}"
        # One sequence, or none before: the new tokens follow the past and fill the cache.
        self.plain = b.assume(apply("eq", total, whole), f"{name}:grows",
                              f"total_sequence_length {total} is {whole}") and (
            b.assume(apply("eq", self.batch, 1), f"{name}:one", "the batch is one sequence"))
        if self.plain:
            b.grows_as(total, whole)
        length = b.scalar("add", b.cast(seqlens_k, DType.INT64), b.const(1, DType.INT64))
        self.lengths = b.reshape(length, (self.batch, 1))
        self.before = self._before()
        self.places = b.scalar("add", b.iota((1, self.new), 1), self.before)

    def _before(self) -> Value:
        """[B or 1, 1]: how many tokens each sequence had; none in a first prompt."""
        b = self.b
        if self.plain:
            return b.number_tensor(self.past, DType.INT64, (1, 1))
        first = b.number_tensor(apply("eq", self.total, self.new), DType.BOOL)
        before = b.scalar("sub", self.lengths, b.number_tensor(self.new, DType.INT64))
        return b.select(first, b.const(0, DType.INT64), before)

    def grown(self, past: Value | None, x: Value) -> Value:
        """The cache with the new tokens behind those of each sequence."""
        b = self.b
        if self.plain:
            return x if past is None else b.concat([past, x], 2)
        both = x if past is None else b.concat([past, x], 2)
        length = apply("max", self.past, self.total)
        at = b.iota((1, length), 1)
        shifted = b.scalar("sub", at, self.before)
        from_new = b.scalar("add", shifted, b.number_tensor(self.past, DType.INT64))
        source = b.select(b.scalar("lt", shifted, b.const(0, DType.INT64)), at, from_new)
        # Beyond the last token of a sequence nothing is looked at.
        last = apply("sub", apply("add", self.past, self.new), 1)
        source = b.scalar("min", source, b.number_tensor(last, DType.INT64))
        source = b.reshape(source, (self.batch, 1, length, 1))
        indices = b.expand(source, (*x.shape[:2], length, x.shape[3]))
        return b.gather_elements(both, indices, 2)

    def visible(self, keys, causal: bool, window: int) -> Value:
        """[B or 1, 1, S, T] bool: the keys that each query attends to."""
        b = self.b
        rows = self.batch if not self.plain else 1
        place = b.reshape(self.places, (rows, 1, self.new, 1))
        j = b.iota((1, 1, 1, keys), 3)
        if causal:
            keep = b.scalar("le", j, place)
        else:
            keep = within(b, b.reshape(self.lengths, (self.batch,)), keys)
        if window > 0:
            # The query's own place and those before it: `window` of them.
            low = b.scalar("sub", place, b.const(window, DType.INT64))
            keep = b.scalar("and", keep, b.scalar("lt", low, j))
        return keep
