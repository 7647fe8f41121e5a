"""Attention operators of com.microsoft against NumPy in float64, by their documentation."""

import numpy as np
import pytest
from onnx import helper

import rlx
from rlx.errors import UnsupportedError
from tests.onnx.test_contrib import FLOAT, check, model, normal, run, softmax  # noqa: F401

HEADS, SIZE = 2, 4


def heads(x, count=HEADS):
    """[B, S, count * d] as [B, count, S, d]."""
    return x.reshape(*x.shape[:2], count, -1).swapaxes(1, 2).astype(np.float64)


def joined(x):
    x = x.swapaxes(1, 2)
    return x.reshape(*x.shape[:2], -1)


def attend(q, k, v, bias=0.0, scale=None, softcap=0.0):
    times = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, times, 1), np.repeat(v, times, 1)
    scores = q @ k.swapaxes(2, 3) * (scale or 1 / np.sqrt(q.shape[3]))
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    return softmax(scores + bias, (-1,)) @ v


def causal(queries, keys, window=0):
    place = np.arange(queries)[:, None] + keys - queries
    seen = np.arange(keys) <= place
    if window:
        seen &= np.arange(keys) > place - window
    return np.where(seen, 0.0, -np.inf)


MASKS = {
    "none": (None, np.zeros((2, 1, 1, 5), bool)),
    "by key": (np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]]), None),
    "lengths": (np.array([3, 5]), np.array([[0, 0, 0, 1, 1], [0] * 5], bool)[:, None, None]),
    "ends and starts": (np.array([5, 4, 2, 0]),
                        np.array([[1, 1, 0, 0, 0], [0, 0, 0, 0, 1]], bool)[:, None, None]),
}


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("unidirectional", [0, 1])
def test_attention(normal, kind, unidirectional):  # noqa: F811
    x, w, bias = normal(2, 5, 8), normal(8, 24) / 2, normal(24)
    mask, hidden = MASKS[kind]
    if hidden is None:
        hidden = (mask == 0)[:, None, None]
    q, k, v = (heads(p) for p in np.split(x.astype(np.float64) @ w + bias, 3, -1))
    score = np.where(hidden, -1e4, 0.0) + (causal(5, 5) if unidirectional else 0.0)
    # A query that sees only hidden keys has no meaning.
    rows = ~(hidden | (score == -np.inf)).all(-1)
    found, = run("Attention", [x, w, bias, None if mask is None else mask.astype(np.int32)],
                 num_heads=HEADS, unidirectional=unidirectional)
    expected = joined(attend(q, k, v, score))
    rows = np.broadcast_to(rows[:, 0], (2, 5))
    check([found[rows]], [expected[rows]])


def test_attention_with_past_and_sizes(normal):  # noqa: F811
    x, w, bias, past = normal(2, 5, 8), normal(8, 24), normal(24), normal(2, 2, HEADS, 3, SIZE)
    q, k, v = (heads(p) for p in np.split(x.astype(np.float64) @ w + bias, 3, -1))
    k, v = np.concatenate([past[0], k], 2), np.concatenate([past[1], v], 2)
    check(run("Attention", [x, w, bias, None, past], (FLOAT, FLOAT), num_heads=HEADS,
              unidirectional=1), [joined(attend(q, k, v, causal(5, 8))), np.stack([k, v])])
    w, extra = normal(8, 28), normal(1, HEADS, 5, 5)
    q, k, v = (heads(p) for p in np.split(x.astype(np.float64) @ w, [8, 16], -1))
    check(run("Attention", [x, w, None, None, None, extra], num_heads=HEADS, scale=0.3,
              qkv_hidden_sizes=[8, 8, 12]), [joined(attend(q, k, v, extra, 0.3))])


def test_multi_head_attention(normal):  # noqa: F811
    q, k, v, bias = normal(2, 5, 8), normal(2, 7, 8), normal(2, 7, 8), normal(24)
    b = np.split(bias, 3)
    expected = joined(attend(heads(q + b[0]), heads(k + b[1]), heads(v + b[2])))
    check(run("MultiHeadAttention", [q, k, v, bias], num_heads=HEADS), [expected])
    mask = np.array([[1] * 5 + [0] * 2, [1] * 7], np.int32)
    extra = normal(2, 1, 5, 7)
    score = extra + np.where(mask == 0, -1e4, 0.0)[:, None, None]
    check(run("MultiHeadAttention", [q, k, v, None, mask, extra], num_heads=HEADS),
          [joined(attend(heads(q), heads(k), heads(v), score))])
    check(run("MultiHeadAttention", [q, heads(k).astype(np.float32),
                                     heads(v).astype(np.float32)], num_heads=HEADS),
          [joined(attend(heads(q), heads(k), heads(v)))])
    past_k, past_v, new = normal(2, HEADS, 3, SIZE), normal(2, HEADS, 3, SIZE), normal(2, 5, 8)
    k, v = np.concatenate([past_k, heads(new)], 2), np.concatenate([past_v, heads(new)], 2)
    check(run("MultiHeadAttention", [q, new, new, None, None, None, past_k, past_v],
              (FLOAT, FLOAT, FLOAT), num_heads=HEADS, unidirectional=1),
          [joined(attend(heads(q), k, v, causal(5, 8))), k, v])


def test_packed_heads(normal):  # noqa: F811
    qkv = normal(2, 5, HEADS, 3, SIZE)
    q, k, v = (qkv[..., i, :].swapaxes(1, 2).astype(np.float64) for i in range(3))
    check(run("MultiHeadAttention", [qkv], num_heads=HEADS), [joined(attend(q, k, v))])
    query = normal(2, 6, 8)
    check(run("MultiHeadAttention", [query, qkv[:, :, :, 1:].copy()], num_heads=HEADS),
          [joined(attend(heads(query), k, v))])


def rotated(x, places, cos, sin, interleaved):
    """x [B, heads, S, d]; places [B, S]."""
    half = cos.shape[1]
    c, s = cos[places][:, None].astype(np.float64), sin[places][:, None].astype(np.float64)
    turned, y = x[..., :2 * half], x.astype(np.float64).copy()
    if interleaved:
        real, imaginary = turned[..., 0::2], turned[..., 1::2]
        y[..., 0:2 * half:2], y[..., 1:2 * half:2] = (real * c - imaginary * s,
                                                     imaginary * c + real * s)
    else:
        real, imaginary = turned[..., :half], turned[..., half:]
        y[..., :half], y[..., half:2 * half] = real * c - imaginary * s, imaginary * c + real * s
    return y


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(normal, interleaved):  # noqa: F811
    angles = normal(20, 2)
    cos, sin = np.cos(angles), np.sin(angles)
    x, first = normal(2, 5, 8), np.array([3])
    places = np.tile(np.arange(3, 8), (2, 1))
    check(run("RotaryEmbedding", [x, first, cos, sin], interleaved=interleaved),
          [joined(rotated(heads(x), places, cos, sin, interleaved))])
    places = np.random.default_rng(1).integers(0, 20, (2, 5))
    x = normal(2, 3, 5, 4)
    check(run("RotaryEmbedding", [x, places, cos, sin], interleaved=interleaved),
          [rotated(x, places, cos, sin, interleaved)])
    x = normal(2, 5, 16)
    check(run("RotaryEmbedding", [x, places, cos, sin], interleaved=interleaved, num_heads=2,
              rotary_embedding_dim=4),
          [joined(rotated(heads(x), places, cos, sin, interleaved))])


class Grouped:
    """A case of GroupQueryAttention: 4 query heads share 2 key heads of size 8."""

    def __init__(self, normal, batch, new, past):
        angles = normal(40, 4)
        self.cos, self.sin = np.cos(angles), np.sin(angles)
        self.q, self.k, self.v = normal(batch, new, 32), normal(batch, new, 16), normal(
            batch, new, 16)
        self.past = [normal(batch, 2, past, 8) for _ in "kv"]

    def run(self, lengths, total, **attributes):
        lengths = np.asarray(lengths, np.int32) - 1
        inputs = [self.q, self.k, self.v, *self.past, lengths, np.array(total, np.int32),
                  self.cos, self.sin]
        return run("GroupQueryAttention", inputs, (FLOAT, FLOAT, FLOAT), num_heads=4,
                   kv_num_heads=2, **attributes)

    def one(self, i, before, length, rotary=False, window=0, **more):
        """What sequence i gives: output, keys and values, of `before` and new tokens."""
        pick = slice(i, i + 1)
        new = length - before
        q, k, v = (heads(x[pick, :new], n) for x, n in ((self.q, 4), (self.k, 2), (self.v, 2)))
        if rotary:
            places = np.arange(before, length)[None]
            q, k = (rotated(x, places, self.cos, self.sin, False) for x in (q, k))
        k, v = (np.concatenate([p[pick, :, :before], x], 2) for p, x in zip(self.past, (k, v)))
        return joined(attend(q, k, v, causal(new, length, window), **more)), k, v


@pytest.mark.parametrize("new, past", [(5, 0), (1, 6), (3, 6)])
@pytest.mark.parametrize("rotary", [0, 1])
def test_grouped_query_attention(normal, new, past, rotary):  # noqa: F811
    case = Grouped(normal, 1, new, past)
    total = new + past
    check(case.run([total], total, do_rotary=rotary), case.one(0, past, total, rotary))


def test_windows_caps_and_scales(normal):  # noqa: F811
    case = Grouped(normal, 1, 4, 6)
    check(case.run([10], 10, local_window_size=3), case.one(0, 6, 10, window=3))
    check(case.run([10], 10, softcap=2.0), case.one(0, 6, 10, softcap=2.0))
    check(case.run([10], 10, scale=0.2), case.one(0, 6, 10, scale=0.2))


@pytest.mark.parametrize("capacity", [6, 16])
def test_sequences_of_their_own_lengths(normal, capacity):  # noqa: F811
    """The new token of each sequence follows its own past, in a cache that may be longer."""
    case = Grouped(normal, 2, 1, capacity)
    found = case.run([5, 7], 7, do_rotary=1)
    assert found[1].shape == (2, 2, max(capacity, 7), 8)
    for i, length in enumerate((5, 7)):
        y, k, v = case.one(i, length - 1, length, rotary=True)
        check([found[0][i:i + 1], *(c[i:i + 1, :, :length] for c in found[1:])], [y, k, v])


def test_first_prompts_of_their_own_lengths(normal):  # noqa: F811
    case = Grouped(normal, 2, 5, 0)
    found = case.run([3, 5], 5)
    for i, length in enumerate((3, 5)):
        y, k, v = case.one(i, 0, length)
        check([found[0][i:i + 1, :length], *(c[i:i + 1, :, :length] for c in found[1:])],
              [y, k, v])


def test_batches_known_when_run(normal):  # noqa: F811
    """One sequence is what the operator is taken to have; more import it anew."""
    case = Grouped(normal, 2, 1, 6)
    names = {"x0": case.q, "x1": case.k, "x2": case.v, "x3": case.past[0], "x4": case.past[1],
             "x5": np.array([6, 6], np.int32)}
    built, _ = model("GroupQueryAttention", [*names.values(), np.array(7, np.int32), case.cos,
                                             case.sin], (FLOAT, FLOAT, FLOAT), num_heads=4,
                     kv_num_heads=2)
    for info in built.graph.input[:6]:
        info.type.tensor_type.shape.dim[0].dim_param = "batch"
    session = rlx.load(built, device="cpu")
    for batch in (1, 2, 1):
        given = {n: x[:batch] for n, x in names.items()}
        found = session.run(given | {"x6": np.array(7, np.int32), "x7": case.cos, "x8": case.sin})
        for i in range(batch):
            check([x[i:i + 1] for x in found.values()], case.one(i, 6, 7))


def test_a_cache_that_grows_keeps_its_plan(normal):  # noqa: F811
    """Token by token with a State: one plan for the prompt, one for all tokens."""
    case = Grouped(normal, 1, 12, 0)
    built, _ = model("GroupQueryAttention", [case.q, case.k, case.v, *case.past,
                                             np.array([0], np.int32), np.array(0, np.int32),
                                             case.cos, case.sin], (FLOAT, FLOAT, FLOAT),
                     num_heads=4, kv_num_heads=2, do_rotary=1)
    for info, dims in zip(built.graph.input, (["b", "s", 32], ["b", "s", 16], ["b", "s", 16],
                                              ["b", 2, "p", 8], ["b", 2, "p", 8])):
        info.CopyFrom(helper.make_tensor_value_info(info.name, FLOAT, dims))
    session = rlx.load(built, device="cpu")
    state = session.state({"x3": "y1", "x4": "y2"}, axis=2, capacity=32)
    expected = case.one(0, 0, 12, rotary=True)[0]
    past = 0
    for new in (5, *[1] * 7):
        at = slice(past, past + new)
        past += new
        y = session.run({"x0": case.q[:, at], "x1": case.k[:, at], "x2": case.v[:, at],
                         "x5": np.array([past - 1], np.int32), "x6": np.array(past, np.int32),
                         "x7": case.cos, "x8": case.sin}, state=state)
        check([y["y0"]], [expected[:, at]])
    assert state.counters()["plans"] == 2


def test_refusals(normal):  # noqa: F811
    case = Grouped(normal, 1, 1, 3)
    with pytest.raises(UnsupportedError, match="window-sized"):
        case.run([4], 4, sliding_window_cache=1, local_window_size=2)
    with pytest.raises(rlx.Error, match="kv_num_heads"):
        run("GroupQueryAttention", [case.q, case.k, case.v, *case.past, np.array([3], np.int32),
                                    np.array(4, np.int32)], num_heads=2, kv_num_heads=4)
