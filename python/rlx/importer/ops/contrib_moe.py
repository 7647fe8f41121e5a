"""Mixtures of experts of com.microsoft: routing by TopK, then products by each row's expert."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from rlx.errors import ModelError, UnsupportedError
from rlx.importer.ops.activation import gelu, relu
from rlx.importer.ops.checks import in_range, rank_is
from rlx.importer.ops.contrib_quant import needed
from rlx.importer.ops.contrib_quant_product import STORED, unpacked
from rlx.importer.registry import op
from rlx.ir.build import DType, Value, apply, as_int

MS = "com.microsoft"
Kind = Literal["relu", "gelu", "silu", "swiglu", "identity", "relu2", "geglu"]

Project = Callable[[Value, Value], Value]  # rows and the expert of each -> rows


@dataclass(frozen=True, slots=True)
class _Activation:
    """What stands between the products of an expert."""

    kind: str
    alpha: float
    beta: float
    limit: float
    limit_after: bool
    fusion: int

    def of(self, b, g: Value, up: Value | None) -> Value:
        """The activation of g; gated by `up`, or by half of g's columns where they are fused."""
        if self.fusion or self.kind == "geglu":
            g, up = self.halves(b, g)
        if self.kind == "swiglu":
            if up is None:
                raise ModelError("swiglu needs fc3 or swiglu_fusion")
            return self.swiglu(b, g, up)
        y = self.plain(b, g)
        return y if up is None else b.scalar("mul", y, up)

    def plain(self, b, g: Value) -> Value:
        if self.kind == "gelu":
            return gelu(b, g)
        if self.kind == "geglu":
            return gelu(b, g, approximate="tanh")
        if self.kind == "silu":
            return b.scalar("silu", g)
        if self.kind == "identity":
            return g
        y = relu(b, g)
        return b.scalar("mul", y, y) if self.kind == "relu2" else y

    def halves(self, b, h: Value) -> tuple[Value, Value]:
        rows, width = h.shape
        half = apply("floordiv", width, 2)
        if self.fusion == 1:  # g and l alternate
            pairs = b.reshape(h, (rows, half, 2))
            return tuple(b.squeeze(b.narrow(pairs, 2, k, 1), (2,)) for k in (0, 1))
        return tuple(b.narrow(h, 1, start, half) for start in (0, half))

    def swiglu(self, b, g: Value, up: Value) -> Value:
        def at_most(x: Value) -> Value:
            return x if math.isinf(self.limit) else b.scalar("min", x, b.like(self.limit, x))

        g = g if self.limit_after else at_most(g)
        gate = b.scalar("mul", g, b.scalar("sigmoid", b.scalar("mul", g, b.like(self.alpha, g))))
        gate = at_most(gate) if self.limit_after else gate
        up = at_most(up)
        if not math.isinf(self.limit):
            up = b.scalar("max", up, b.like(-self.limit, up))
        return b.scalar("mul", gate, b.scalar("add", up, b.like(self.beta, up)))


def _activation(kind: str, alpha: float, beta: float, limit: float | None, after: int,
                fusion: int, fc3: Value | None) -> _Activation:
    in_range("swiglu_fusion", fusion, 0, 2)
    if fusion and fc3 is not None:
        raise ModelError("fc3 is given, and its columns in fc1 too: swiglu_fusion is not 0",
                         got=f"swiglu_fusion {fusion} and fc3")
    if fusion and kind not in ("swiglu", "geglu") or not fusion and kind == "geglu":
        raise ModelError("swiglu_fusion does not fit the activation", got=f"{fusion} and {kind}")
    return _Activation(kind, alpha, beta, math.inf if limit is None else limit, bool(after), fusion)


def _mixture(b, x: Value, router: Value, mixing: Value | None, k: int, normalise: bool,
             activation: _Activation, projects: tuple[Project, Project, Project | None]) -> Value:
    """The k likeliest experts of each token, weighted."""
    rank_is(router, 2, "router_probs")
    if x.rank not in (2, 3):
        raise ModelError("the input of experts has another rank", expected="rank 2 or 3",
                         got=str(x.type))
    tokens, hidden = router.shape[0], x.shape[-1]
    in_range("k", k, 1)
    probabilities = b.softmax(b.cast(router, DType.FLOAT32), -1)
    weights, experts = b.topk(probabilities, k, -1)
    if mixing is not None:
        weights = b.gather_elements(b.cast(mixing, DType.FLOAT32), experts, 1)
    if normalise:
        weights = b.scalar("div", weights, b.reduce("sum", weights, (1,)))
    count = apply("mul", tokens, k)
    flat = b.reshape(experts, (count,))
    rows = b.expand(b.reshape(x, (tokens, 1, hidden)), (tokens, k, hidden))
    rows = b.reshape(rows, (count, hidden))
    up = None if projects[2] is None else projects[2](rows, flat)
    h = activation.of(b, projects[0](rows, flat), up)
    y = b.cast(projects[1](h, flat), DType.FLOAT32)
    y = b.reshape(y, (tokens, k, y.shape[1]))
    y = b.reduce("sum", b.scalar("mul", y, b.reshape(weights, (tokens, k, 1))), (1,), False)
    return b.reshape(b.cast(y, x.dtype), x.shape)


def _check_bias(b, bias: Value | None, w: Value) -> None:
    if bias is not None:
        rank_is(bias, 2, "the bias of experts")
        for axis, what in enumerate(("experts", "columns")):
            b.same_dim(bias.shape[axis], w.shape[axis], f"the {what} of weights and bias")


def _biased(b, y: Value, bias: Value | None, experts: Value) -> Value:
    return y if bias is None else b.scalar("add", y, b.gather(bias, experts, 0))


@op("MoE", domain=MS)
def moe(b, x, router, fc1, bias1=None, fc2=None, bias2=None, fc3=None, bias3=None, *,
        activation_alpha: float = 1.0, activation_beta: float = 0.0,
        activation_type: Kind = "relu", k: int = 1, normalize_routing_weights: int = 0,
        swiglu_fusion: int = 0, swiglu_limit: float | None = None,
        swiglu_limit_after_activation: int = 0, use_sparse_mixer: int = 0):
    """Weights are [experts, N, K]."""
    needed(fc2_experts_weights=fc2)
    rank_is(router, 2, "router_probs")
    if use_sparse_mixer:
        raise UnsupportedError("experts with use_sparse_mixer")
    activation = _activation(activation_type, activation_alpha, activation_beta, swiglu_limit,
                             swiglu_limit_after_activation, swiglu_fusion, fc3)

    def project(w: Value | None, bias: Value | None) -> Project | None:
        if w is None:
            return None
        rank_is(w, 3, "the weights of experts")
        _check_bias(b, bias, w)
        b.same_dim(w.shape[0], router.shape[1], "the experts of weights and router_probs")
        return lambda rows, experts: _biased(b, b.grouped_matmul(rows, w, experts), bias, experts)

    return _mixture(b, x, router, None, k, bool(normalize_routing_weights), activation,
                    (project(fc1, bias1), project(fc2, bias2), project(fc3, bias3)))


@dataclass(frozen=True, slots=True)
class _Quantised:
    """The weights of one projection of all experts."""

    weights: Value | None
    scales: Value | None
    bias: Value | None
    zeros: Value | None
    whole: Value | None  # one scale for each expert
    bits: int

    def project(self, b, block: int) -> Project | None:
        if self.weights is None:
            return None
        w = self.weights
        rank_is(w, 3, "the weights of experts")
        _check_bias(b, self.bias, w)
        experts, n, held = w.shape
        if w.dtype is DType.FLOAT8E4M3FN:
            dtype, zero = w.dtype, None
            scale, tile = self.float8(b, block, held, n)
        else:
            dtype = STORED.get(self.bits)
            if dtype is None or w.dtype is not DType.UINT8:
                raise UnsupportedError("experts of this number of bits", got=self.bits)
            width = _known(held) * 8 // self.bits
            needed(scales=self.scales)
            if block:
                rank_is(self.scales, 3, "the scales of blocks")
            scale = self.scales if block else b.reshape(self.scales, (experts, n, 1))
            tile = (block or width, 1)
            zero = self.zero(b, scale)
        b.same_dim(scale.shape[0], experts, "the experts of weights and scales")
        return lambda rows, groups: _biased(b, b.dequantised_matmul(
            rows, w, scale, zero, b_type=dtype, n=n, block_k=tile[0], block_n=tile[1],
            groups=groups), self.bias, groups)

    def float8(self, b, block: int, k, n) -> tuple[Value, tuple[int, int]]:
        if block:
            needed(scales=self.scales)
            rank_is(self.scales, 3, "the scales of blocks")
            return self.scales, (block, block)
        needed(global_scale=self.whole)
        rank_is(self.whole, 1, "the global scales of experts")
        return b.reshape(self.whole, (self.whole.shape[0], 1, 1)), (_known(k), _known(n))

    def zero(self, b, scale: Value) -> Value:
        if self.zeros is None:
            return b.const(1 << (self.bits - 1), DType.UINT8)
        along = 2 if self.zeros.rank == 3 else 1  # blocks, or the columns themselves
        return b.reshape(unpacked(b, self.zeros, self.bits, scale.shape[along]), scale.shape)


def _known(d) -> int:
    size = as_int(d)
    if size is None:
        raise UnsupportedError("experts whose size is only known when they run")
    return max(size, 1)


@op("QMoE", domain=MS)
def qmoe(b, x, router, fc1, scales1=None, bias1=None, fc2=None, scales2=None, bias2=None, fc3=None,
         scales3=None, bias3=None, zeros1=None, zeros2=None, zeros3=None, mixing=None, whole1=None,
         whole2=None, act1=None, act2=None, act_block1=None, act_block2=None, *,
         accuracy_level: int = 0, activation_alpha: float = 1.0, activation_beta: float = 0.0,
         activation_type: Kind = "relu", block_size: int = 0, expert_weight_bits: int = 4,
         fc1_expert_weight_bits: int = 0, fc2_expert_weight_bits: int = 0,
         fc3_expert_weight_bits: int = 0, k: int = 1, normalize_routing_weights: int = 0,
         quant_type: Literal["int", "fp8", "fp4", "nvfp4", "wfp4afp8"] = "int",
         swiglu_fusion: int = 0, swiglu_limit: float | None = None,
         swiglu_limit_after_activation: int = 0, use_sparse_mixer: int = 0,
         weights_prepacked: int = -1):
    """Weights are [experts, N, K] of 2, 4 or 8 bits, or float8e4m3fn, with scales by block of K."""
    needed(fc2_experts_weights=fc2)
    if use_sparse_mixer or weights_prepacked == 1:
        raise UnsupportedError("experts with use_sparse_mixer or prepared weights")
    if quant_type not in ("int", "fp8") or any(v is not None for v in (act1, act2, act_block1,
                                                                       act_block2)):
        raise UnsupportedError("experts of this quant_type", got=quant_type,
                               expected="int or fp8, activations in floats")
    activation = _activation(activation_type, activation_alpha, activation_beta, swiglu_limit,
                             swiglu_limit_after_activation, swiglu_fusion, fc3)
    bits = expert_weight_bits
    projections = (_Quantised(fc1, scales1, bias1, zeros1, whole1, fc1_expert_weight_bits or bits),
                   _Quantised(fc2, scales2, bias2, zeros2, whole2, fc2_expert_weight_bits or bits),
                   _Quantised(fc3, scales3, bias3, zeros3, None, fc3_expert_weight_bits or bits))
    return _mixture(b, x, router, mixing, k, bool(normalize_routing_weights), activation,
                    tuple(p.project(b, max(block_size, 0)) for p in projections))
