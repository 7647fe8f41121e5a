"""Quantised products of com.microsoft: dynamic ranges, blocked weights, attention, LSTM."""

from __future__ import annotations

import numpy as np

from rlx.errors import ModelError, UnsupportedError
from rlx.importer.ops import norm, recurrent
from rlx.importer.ops.checks import fits, in_range, rank_is, same_type, single
from rlx.importer.ops.contrib import mask_index_of
from rlx.importer.ops.contrib_attention import attend_projected
from rlx.importer.ops.contrib_quant import needed, real, whole
from rlx.importer.ops.matmul import matmul_integer
from rlx.importer.ops.quant import dequantize_linear
from rlx.importer.registry import Floats, Texts, op
from rlx.ir.build import DType, Value, apply

MS = "com.microsoft"
# What stands in bytes of packed values, by their bits.
STORED = {2: DType.UINT2, 4: DType.UINT4, 8: DType.UINT8}


def _dynamic(b, x: Value) -> tuple[Value, Value, Value]:
    """x in uint8 by its own range, which holds 0, with the scale and zero point."""
    axes = tuple(range(x.rank))
    low = b.scalar("min", b.reduce("min", x, axes, False), b.like(0.0, x))
    high = b.scalar("max", b.reduce("max", x, axes, False), b.like(0.0, x))
    scale = b.scalar("div", b.scalar("sub", high, low), b.like(255.0, x))
    scale = b.select(b.scalar("eq", scale, b.like(0.0, x)), b.like(1.0, x), scale)
    zero = b.scalar("round", b.scalar("div", b.scalar("neg", low), scale))
    zero = b.cast(b.scalar("min", b.scalar("max", zero, b.like(0.0, x)), b.like(255.0, x)),
                  DType.UINT8)
    return whole(b, x, scale, zero, DType.UINT8), scale, zero


@op("MatMulIntegerToFloat", domain=MS)
def matmul_integer_to_float(b, x, y, x_scale, y_scale, x_zero=None, y_zero=None, bias=None):
    sums = b.cast(matmul_integer(b, x, y, x_zero, y_zero), DType.FLOAT32)
    factor = b.scalar("mul", *(
        b.cast(fits(b, single(b, s), sums.shape, f"the scale of {name}"), DType.FLOAT32)
        for s, name in ((x_scale, "A"), (y_scale, "B"))))
    z = b.cast(b.scalar("mul", sums, factor), x_scale.dtype)
    return z if bias is None else b.scalar("add", z, fits(b, bias, z.shape, "the bias"))


@op("DynamicQuantizeMatMul", domain=MS)
def dynamic_quantize_matmul(b, x, y, y_scale, y_zero=None, bias=None):
    small, scale, zero = _dynamic(b, x)
    return matmul_integer_to_float(b, small, y, scale, y_scale, zero, y_zero, bias)


@op("QGemm", domain=MS)
def qgemm(b, x, x_scale, x_zero, y, y_scale, y_zero, c=None, z_scale=None, z_zero=None, *,
          alpha: float = 1.0, transA: int = 0, transB: int = 0):
    """alpha * scales * (products + c) in float, or quantised where z_scale is given."""
    same_type(x_zero, x.dtype, "A")
    same_type(y_zero, y.dtype, "B")
    sums = b.matmul(x, y, trans_a=bool(transA), trans_b=bool(transB), a_zero=x_zero,
                    b_zero=y_zero, dtype=DType.INT32)
    sums = sums if c is None else b.scalar("add", sums, fits(b, c, sums.shape, "C"))
    y_scale = fits(b, single(b, y_scale), sums.shape[-1:], "the scale of B")
    factor = b.scalar("mul", single(b, x_scale), y_scale)
    z = b.scalar("mul", b.cast(sums, DType.FLOAT32),
                 b.scalar("mul", factor, b.like(alpha, factor)))
    if z_scale is None:
        return z
    return whole(b, z, z_scale, z_zero, x.dtype if z_zero is None else z_zero.dtype)


def check_bits(bits: int) -> None:
    """Packed values fill bytes evenly."""
    if bits not in STORED:
        raise UnsupportedError("packed weights of so many bits", expected="2, 4 or 8", got=bits,
                               remedy="quantise the weights to 2, 4 or 8 bits")


def unpacked(b, packed: Value, bits: int, count) -> Value:
    """The values of 2, 4 or 8 bits of each row of bytes, the lowest bits first; `count` a row."""
    if bits == 8:
        return b.narrow(packed, packed.rank - 1, 0, count)
    each = 8 // bits
    if packed.is_const:  # now, since the fold pass keeps what grows this much
        shifts = np.arange(each, dtype=np.uint8) * bits
        values = packed.const[..., None] >> shifts & ((1 << bits) - 1)
        flat = values.reshape(*packed.const.shape[:-1], -1)
        return b.const(np.ascontiguousarray(flat[..., :count]).astype(np.uint8), DType.UINT8)
    parts = []
    for k in range(each):
        part = b.scalar("shift_right", packed, b.like(bits * k, packed)) if k else packed
        part = b.scalar("bitwise_and", part, b.like((1 << bits) - 1, packed))
        parts.append(b.unsqueeze(part, (packed.rank,)))
    rows = packed.shape[:-1]
    wide = b.reshape(b.concat(parts, packed.rank), (*rows, apply("mul", packed.shape[-1], each)))
    return b.narrow(wide, wide.rank - 1, 0, count)


@op("MatMulNBits", domain=MS)
def matmul_n_bits(b, x, packed, scales, zeros=None, g_idx=None, bias=None, *, K: int, N: int,
                  accuracy_level: int = 0, bits: int = 4, block_size: int,
                  weight_prepacked: int = 0):
    """x times the transpose of [N, K] weights in blocks of block_size along K."""
    check_bits(bits)
    if weight_prepacked:
        raise UnsupportedError("MatMulNBits with weights that are prepared for one kind of GPU",
                               got=f"weight_prepacked={weight_prepacked}",
                               remedy="export the model without weight_prepacked")
    if g_idx is not None:
        raise UnsupportedError("MatMulNBits with the order of groups (g_idx)")
    for name, value in (("K", K), ("N", N), ("block_size", block_size)):
        in_range(name, value, 1)
    if block_size * bits % 8:
        raise ModelError("a block of MatMulNBits fills no bytes", expected=f"{8 // bits} values or "
                         "a multiple of that", got=block_size)
    if x.rank == 0 or packed.dtype is not DType.UINT8:
        raise ModelError("MatMulNBits takes rows A and bytes B", expected="uint8 B, A with dims",
                         got=f"{packed.dtype.name.lower()} B, A of rank {x.rank}")
    blocks = -(-K // block_size)
    packed = b.reshape(packed, (N, blocks * (block_size * bits // 8)))
    zero = b.const(1 << (bits - 1), DType.UINT8)
    if zeros is not None and zeros.dtype is DType.UINT8:
        rows = b.reshape(zeros, (N, -(-blocks * bits // 8)))
        zero = unpacked(b, rows, bits, blocks)
    elif zeros is not None:
        zero = b.reshape(zeros, (N, blocks))
    row = x.rank == 1
    x = b.unsqueeze(x, (0,)) if row else x
    b.same_dim(x.shape[-1], K, "the columns of A and K")
    y = b.dequantised_matmul(x, packed, b.reshape(scales, (N, blocks)), zero, b_type=STORED[bits],
                             n=N, block_k=block_size)
    y = y if bias is None else b.scalar("add", y, fits(b, bias, (N,), "the bias"))
    return b.squeeze(y, (0,)) if row else y


@op("GatherBlockQuantized", domain=MS)
def gather_block_quantized(b, data, indices, scales, zeros=None, *, bits: int = 4,
                           block_size: int = 128, gather_axis: int = 0, quantize_axis: int = 1):
    """Rows of a blocked table, gathered before they are dequantised."""
    check_bits(bits)
    axis, blocked = b.axis(gather_axis, data.rank), b.axis(quantize_axis, data.rank)
    if axis == blocked or axis + 1 == data.rank:
        raise UnsupportedError("GatherBlockQuantized along the blocked or the last axis")
    in_range("block_size", block_size, 1)
    rows, factors = b.gather(data, indices, axis), b.gather(scales, indices, axis)
    zero = None if zeros is None else b.gather(zeros, indices, axis)
    if data.dtype is DType.UINT8 and bits < 8:
        rows = unpacked(b, rows, bits, apply("mul", rows.shape[-1], 8 // bits))
        if zero is not None:
            zero = unpacked(b, zero, bits, factors.shape[-1])
    if zero is None and rows.dtype is DType.UINT8:
        zero = b.expand(b.like(1 << (bits - 1), rows), factors.shape)
    blocked += (indices.rank - 1) * (blocked > axis)
    return dequantize_linear(b, rows, factors, zero, axis=blocked, block_size=block_size)


@op("QAttention", domain=MS)
def qattention(b, x, weights, bias, x_scale, w_scale, mask_index=None, x_zero=None, w_zero=None,
               past=None, *, do_rotary: int = 0, mask_filter_value: float = -10000.0,
               num_heads: int, past_present_share_buffer: int = 0, rotary_embedding_dim: int = 0,
               scale: float = 0.0, unidirectional: int = 0):
    if do_rotary or past_present_share_buffer:
        raise UnsupportedError("QAttention with rotary positions or a shared buffer")
    rank_is(x, 3, "the input")
    y = matmul_integer_to_float(b, x, weights, x_scale, w_scale, x_zero, w_zero, bias)
    sizes = (apply("floordiv", weights.shape[1], 3),) * 3
    return attend_projected(b, y, sizes, num_heads, past, mask_index, None, scale,
                            bool(unidirectional), mask_filter_value)


@op("QEmbedLayerNormalization", domain=MS)
def qembed_layer_norm(b, ids, segment_ids=None, words=None, positions=None, segments=None,
                      gamma=None, beta=None, mask=None, word_scale=None, position_scale=None,
                      segment_scale=None, gamma_scale=None, beta_scale=None, word_zero=None,
                      position_zero=None, segment_zero=None, gamma_zero=None, beta_zero=None, *,
                      epsilon: float = 1e-12):
    """Sums quantised embeddings of words, positions and segments, then normalises."""
    needed(word_embedding_quant=words, position_embedding_quant=positions, gamma_quant=gamma,
           beta_quant=beta, word_embedding_scale=word_scale, gamma_scale=gamma_scale,
           position_embedding_scale=position_scale, beta_scale=beta_scale)
    rank_is(ids, 2, "input_ids")
    total = b.scalar("add", real(b, b.gather(words, ids, 0), word_scale, word_zero),
                     real(b, b.narrow(positions, 0, 0, ids.shape[1]), position_scale,
                          position_zero))
    if segments is not None and segment_ids is not None:
        needed(segment_embedding_scale=segment_scale)
        total = b.scalar("add", total, real(b, b.gather(segments, segment_ids, 0), segment_scale,
                                            segment_zero))
    y = norm.layer_normalization(b, total, real(b, gamma, gamma_scale, gamma_zero),
                                 real(b, beta, beta_scale, beta_zero), epsilon=epsilon)[0]
    return y, mask_index_of(b, ids, mask)


@op("DynamicQuantizeLSTM", domain=MS)
def dynamic_quantize_lstm(b, x, w, r, bias=None, sequence_lens=None, initial_h=None,
                          initial_c=None, p=None, w_scale=None, w_zero=None, r_scale=None,
                          r_zero=None, *, activation_alpha: Floats = None,
                          activation_beta: Floats = None, activations: Texts = None,
                          clip: float | None = None, direction: recurrent.Direction = "forward",
                          hidden_size: int | None = None, input_forget: int = 0):
    """An LSTM that rounds x, and the state before each step, to uint8 by their own ranges.

    The range of the state is that of the rows that go on: what stands behind the end of a shorter
    sequence changes nothing. CUDA multiplies x and the state unrounded.
    """
    needed(W_scale=w_scale, W_zero_point=w_zero, R_scale=r_scale, R_zero_point=r_zero)
    for v, what in ((x, "X"), (w, "W"), (r, "R")):
        rank_is(v, 3, what)
    return recurrent.layer(
        b, "lstm", (x, *(b.transpose(v, (0, 2, 1)) for v in (w, r)), bias, sequence_lens,
                    initial_h, initial_c, p),
        hidden_size, direction, activations, activation_alpha, activation_beta, clip, 0,
        tuple(_by_direction(b, v) for v in (w_scale, w_zero, r_scale, r_zero)),
        input_forget=bool(input_forget))


def _by_direction(b, v: Value) -> Value:
    """A scale or zero point for each direction, or for each of its gates, with two axes."""
    if v.rank not in (1, 2):
        raise ModelError("scales and zero points of weights have one or two axes",
                         got=str(v.type))
    return b.unsqueeze(v, (1,)) if v.rank == 1 else v
