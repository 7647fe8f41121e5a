"""Mixtures of experts of com.microsoft against NumPy in float64, by their documentation."""

import math

import ml_dtypes
import numpy as np
import pytest

import rlx
from rlx.ir.packing import pack_rows
from rlx.ir.types import DType
from tests.emu.case import emulated
from tests.onnx.test_contrib import FLOAT, model, run
from tests.tolerance import tolerance

TOKENS, EXPERTS, HIDDEN, INNER, K = 9, 5, 32, 48, 2
BITS = {2: DType.UINT2, 4: DType.UINT4, 8: DType.UINT8}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def erf(x):
    return np.vectorize(math.erf)(x)


def activate(kind, h, up, fusion, alpha=1.0, beta=0.0, limit=math.inf):
    if fusion:
        half = h.shape[-1] // 2
        h, up = (h[..., ::2], h[..., 1::2]) if fusion == 1 else (h[..., :half], h[..., half:])
    if kind == "swiglu":
        g, up = np.minimum(h, limit), np.clip(up, -limit, limit)
        return g * sigmoid(alpha * g) * (up + beta)
    y = {"relu": lambda: np.maximum(h, 0), "silu": lambda: h * sigmoid(h),
         "gelu": lambda: h * 0.5 * (1 + erf(h / math.sqrt(2))), "identity": lambda: h,
         "relu2": lambda: np.maximum(h, 0) ** 2,
         "geglu": lambda: 0.5 * h * (1 + np.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3))),
         }[kind]()
    return y if up is None else y * up


def mixture(x, router, w, bias, k, normalise, kind, fusion=0, mixing=None, **options):
    """w and bias: of the first, second and perhaps third product, [experts, N, K] and [experts, N];
    the k likeliest experts of a token, weighted by their probability."""
    x = x.reshape(-1, x.shape[-1]).astype(np.float64)
    likely = np.exp(router - router.max(1, keepdims=True), dtype=np.float64)
    likely /= likely.sum(1, keepdims=True)
    y = np.zeros((len(x), w[1].shape[1]))
    for t, row in enumerate(x):
        chosen = np.argsort(-likely[t], kind="stable")[:k]
        shares = (likely if mixing is None else mixing)[t][chosen].astype(np.float64)
        if normalise:
            shares = shares / shares.sum()
        for e, share in zip(chosen, shares):
            h, up = (None if m is None else m[e] @ row + (0 if b is None else b[e])
                     for m, b in ((w[0], bias[0]), (w[2], bias[2])))
            h = activate(kind, h, up, fusion, **options)
            y[t] += share * (w[1][e] @ h + (0 if bias[1] is None else bias[1][e]))
    return y


def values(rng, *shape):
    return (rng.standard_normal(shape) / math.sqrt(shape[-1])).astype(np.float32)


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def near(found, wanted):
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted,
                               **tolerance("rounded", "float32"))


@pytest.mark.parametrize("kind, fusion, third, extra", [
    ("relu", 0, False, {}), ("gelu", 0, False, {}), ("silu", 0, True, {}),
    ("identity", 0, False, {}), ("relu2", 0, False, {}), ("geglu", 2, False, {}),
    ("swiglu", 1, False, {"alpha": 1.702, "beta": 1.0, "limit": 0.6}),
    ("swiglu", 2, False, {}), ("swiglu", 0, True, {"alpha": 0.5}),
])
@pytest.mark.parametrize("normalise", [0, 1])
def test_moe(rng, kind, fusion, third, extra, normalise):
    x, router = values(rng, 3, 3, HIDDEN), values(rng, TOKENS, EXPERTS) * 4
    wide = INNER * (2 if fusion else 1)
    w = [values(rng, EXPERTS, wide, HIDDEN), values(rng, EXPERTS, HIDDEN, INNER),
         values(rng, EXPERTS, INNER, HIDDEN) if third else None]
    bias = [values(rng, EXPERTS, wide), values(rng, EXPERTS, HIDDEN), None]
    names = {"alpha": "activation_alpha", "beta": "activation_beta", "limit": "swiglu_limit"}
    found = run("MoE", [x, router, w[0], bias[0], w[1], bias[1], w[2]], k=K, activation_type=kind,
                swiglu_fusion=fusion, normalize_routing_weights=normalise,
                **{names[n]: v for n, v in extra.items()})[0]
    assert found.shape == x.shape
    near(found, mixture(x, router, w, bias, K, normalise, kind, fusion, **extra))


def quantised(rng, bits, n, k, block, with_zeros):
    """Codes and zero points as they are stored, scales, and what they stand for."""
    codes = rng.integers(0, 1 << bits, (EXPERTS, n, k)).astype(np.uint8)
    tiles = (EXPERTS, n, k // block) if block else (EXPERTS, n)
    scales = rng.uniform(0.5, 1.5, tiles).astype(np.float32) / (1 << bits)
    zeros = rng.integers(0, 1 << bits, tiles).astype(np.uint8)
    size = block or k
    spread = [a.reshape(EXPERTS, n, -1).astype(np.float64).repeat(size, 2) for a in (scales, zeros)]
    middle = spread[1] if with_zeros else float(1 << (bits - 1))
    stands = (codes - middle) * spread[0]
    if bits < 8:
        codes, zeros = (pack_rows(a.astype(BITS[bits].numpy), BITS[bits]) for a in (codes, zeros))
    return codes, scales, zeros if with_zeros else None, stands


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("block", [0, 16])
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("device", ["cpu", "emu"])
def test_qmoe(rng, bits, block, zeros, device):
    if device == "emu":
        emulated("emu")
    x, router = values(rng, TOKENS, HIDDEN), values(rng, TOKENS, EXPERTS) * 4
    mixing = rng.uniform(0, 1, router.shape).astype(np.float32)
    c1, s1, z1, w1 = quantised(rng, bits, INNER, HIDDEN, block, zeros)
    c2, s2, z2, w2 = quantised(rng, bits, HIDDEN, INNER, block, zeros)
    bias = [values(rng, EXPERTS, INNER), None, None]
    for shares in (None, mixing):
        inputs = [x, router, c1, s1, bias[0], c2, s2, *[None] * 4, z1, z2, None, shares]
        built, given = model("QMoE", inputs, [FLOAT], constant=range(2, 13), k=K,
                             activation_type="silu", expert_weight_bits=bits, block_size=block,
                             normalize_routing_weights=1)
        with rlx.load(built, device=device) as session:
            found = session.run(given)["y0"]
        near(found, mixture(x, router, [w1, w2, None], bias, K, True, "silu", mixing=shares))


@pytest.mark.parametrize("block", [0, 16])
def test_qmoe_of_float8(rng, block):
    x, router = values(rng, TOKENS, HIDDEN), values(rng, TOKENS, EXPERTS) * 4
    inputs, w = [x, router], []
    whole = []
    for n, k in ((INNER, HIDDEN), (HIDDEN, INNER)):
        codes = values(rng, EXPERTS, n, k).astype(ml_dtypes.float8_e4m3fn)
        tiles = (EXPERTS, n // 16, k // 16) if block else (EXPERTS,)
        scales = rng.uniform(0.5, 1.5, tiles).astype(np.float32)
        spread = scales.repeat(16, 1).repeat(16, 2) if block else scales.reshape(-1, 1, 1)
        w.append(codes.astype(np.float64) * spread)
        inputs += [codes, scales if block else None, None]
        whole.append(None if block else scales)
    found = run("QMoE", [*inputs, *[None] * 7, *whole], k=K, quant_type="fp8", block_size=block)[0]
    near(found, mixture(x, router, [*w, None], [None] * 3, K, False, "relu"))


@pytest.mark.parametrize("device", ["cpu", "emu", "emu:descending"])
def test_a_recording_routes_anew(rng, device):
    """Experts are found on the device: a recorded run serves tokens that choose others."""
    if device != "cpu":
        emulated(device)
    w = [values(rng, EXPERTS, INNER, HIDDEN), values(rng, EXPERTS, HIDDEN, INNER), None]
    x, router = values(rng, 40, HIDDEN), values(rng, 40, EXPERTS)
    built, _ = model("MoE", [x, router, w[0], None, w[1]], [FLOAT], constant=(2, 4), k=K)
    with rlx.load(built, device=device) as session:
        for shift in range(4):
            router = np.roll(router, shift, 1) * 3
            found = session.run({"x0": x, "x1": router})["y0"]
            near(found, mixture(x, router, w, [None] * 3, K, False, "relu"))
        assert session.counters()["host_calls"] == 0
        rungs = {row["rung"] for row in session.explain() if row["prim"] == "MatMul"}
    assert rungs and all("group" in r or r == "kernel of few rows" for r in rungs)


@pytest.mark.parametrize("op, message, more", [
    ("MoE", "use_sparse_mixer", {"use_sparse_mixer": 1}),
    ("MoE", "swiglu_fusion", {"swiglu_fusion": 1}),
    ("MoE", "needs fc3", {"activation_type": "swiglu"}),
    ("MoE", "activation_type", {"activation_type": "elu"}),
    ("MoE", "fc3 is given", {"activation_type": "swiglu", "swiglu_fusion": 1, "fc3": True}),
    ("MoE", "fc3 is given", {"activation_type": "swiglu", "swiglu_fusion": 2, "fc3": True}),
])
def test_refusals(rng, op, message, more):
    more = dict(more)
    third = [None, values(rng, 3, 6, 8)] if more.pop("fc3", False) else []
    with pytest.raises(rlx.Error, match=message) as caught:
        run(op, [values(rng, 4, 8), values(rng, 4, 3), values(rng, 3, 6, 8), None,
                 values(rng, 3, 8, 6), *third], **more)
    assert caught.value.op == op and caught.value.node
