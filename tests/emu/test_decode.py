"""Attention of few query rows: all forms against the operator's text, forced and of its own."""

import numpy as np
import pytest

from models import llama
import rlx
from tests.attention import (
    DTYPES, Form, attention_row, check, feeds_of, forms, model_of, truth_of,
)
from tests.emu.case import emulated
from tests.tolerance import tolerance


@pytest.fixture(scope="module", params=["emu", "emu:descending"])
def device(request) -> str:
    emulated(request.param)
    return request.param


@pytest.mark.parametrize("form", forms(), ids=str)
def test_the_operators_text(device, form):
    assert check(device, form)["rung"] == "decode attention"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mask", ["none", "causal", "bool"])
def test_forced_for_many_rows(mask, dtype):
    """The kernels take any number of rows, and are taken where they are asked for."""
    emulated("emu")
    form = Form(1, 2, 2, 40, 60, 24, mask, dtype)
    row = check("emu", form)
    assert row["rung"] != "decode attention" and "fewer than 16 query rows" in row["reason"]
    assert check("emu", form, "decode attention")["rung"] == "decode attention"


def test_other_rungs_forced_for_few_rows():
    emulated("emu")
    form = Form(1, 2, 2, 3, 60, 24)
    assert check("emu", form, "tiled attention")["rung"] == "tiled attention"
    row = check("emu", form, "tensor core attention")
    assert row["rung"] == "decode attention" and "float32 without TF32" in row["reason"]
    huge = check("emu", Form(1, 1, 1, 1, 3, 2000), "decode attention")
    assert huge["rung"] == "tiled attention" and "no block holds" in huge["reason"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_long_keys_are_split(device, dtype):
    row = check(device, Form(1, 1, 4, 1, 5000, 64, dtype=dtype))
    assert "keys in 8 parts" in row["reason"] and len(row["steps"]) == 2
    row = check(device, Form(1, 1, 4, 1, 500, 64, dtype=dtype))
    assert "parts" not in row["reason"] and len(row["steps"]) == 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ratio", [1, 3, 8])
def test_what_shares_a_key_head_shares_a_block(ratio, dtype):
    """Keys and values are read once for all their rows: by a block for each image and key head."""
    emulated("emu")
    for rows in (1, 4):
        assert ", 6 blocks" in check("emu", Form(2, 3, ratio, rows, 40, 16, dtype=dtype))["reason"]


def test_a_part_that_is_hidden_leaves_no_trace(device):
    """Parts of which no row sees a key, and rows that see no key at all."""
    form = Form(1, 1, 2, 2, 2000, 32, "bool", "float16")
    feeds, attributes = feeds_of(form)
    feeds["mask"][...] = False
    feeds["mask"][0, 0, 0, 1900:1903] = True
    with rlx.load(model_of(form), device=device) as session:
        found = session.run(feeds)["y"]
        assert "parts" in attention_row(session)["reason"]
    np.testing.assert_allclose(found, truth_of(feeds, attributes), **tolerance("norm", "float16"))
    assert not found[0, :, 1].any() and found[0, :, 0].all()


@pytest.mark.parametrize("mask", ["none", "causal", "by head"])
def test_lengths_known_only_when_it_runs(device, mask):
    small = Form(1, 2, 4, 2, 17, 64, mask, "float16")
    with rlx.load(model_of(small, open_keys=True), device=device) as session:
        for keys in (17, 5000, 1, 600, 513, 17):
            feeds, attributes = feeds_of(Form(1, 2, 4, 2, keys, 64, mask, "float16"), keys)
            np.testing.assert_allclose(session.run(feeds)["y"], truth_of(feeds, attributes),
                                       **tolerance("norm", "float16"))


@pytest.mark.parametrize("mode", range(4))
def test_scores_that_are_an_output_too(mode):
    """They are written by products; y stays Attention where nothing but the softmax changes it."""
    emulated("emu")
    form = Form(1, 2, 2, 3, 20, 16)
    feeds, attributes = feeds_of(form)
    made = model_of(form)
    made.graph.node[0].output.extend(["", "", "scores"])
    made.graph.node[0].attribute.add(name="qk_matmul_output_mode", type=2, i=mode)
    made.graph.output.add(name="scores").type.tensor_type.elem_type = 1
    with rlx.load(made, device="emu") as session:
        found = session.run(feeds)
    q, k = feeds["q"].astype(float), np.repeat(feeds["k"].astype(float), 2, 1)
    scores = q @ k.swapaxes(2, 3) / 4
    if mode == 3:
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
    allowed = tolerance("norm", "float32")
    np.testing.assert_allclose(found["y"], truth_of(feeds, attributes), **allowed)
    np.testing.assert_allclose(found["scores"], scores, **allowed)


def test_a_growing_past_needs_no_further_memory():
    """Split keys of a State: planned for its capacity, in workspace that is large enough."""
    emulated("emu")
    size = llama.NARROW
    pairs = {f"past_key_values.{i}.{part}": f"present.{i}.{part}"
             for i in range(size["layers"]) for part in ("key", "value")}

    def given(ids, past):
        return {"input_ids": np.int64([ids]),
                "attention_mask": np.ones((1, past + len(ids)), np.int64),
                "position_ids": np.arange(past, past + len(ids))[None]}

    tokens = list(np.random.default_rng(3).integers(0, 50, 600))
    with rlx.load(llama.build(0, **size), device="cpu") as session:
        state = session.state(pairs, axis=2)
        session.run(given(tokens, 0), state=state)
        past = {name: state.value(name).copy() for name in pairs}
        whole = [session.run(given([t], 600 + t), state=state)["logits"] for t in range(3)]
    with rlx.load(llama.build(0, **size), device="emu") as session:
        state = session.state(pairs, axis=2, capacity=800)
        found = [session.run(given([0], 600) | past, state=state)["logits"]]
        before = session.counters()["dynamic_allocations"]
        found += [session.run(given([t], 600 + t), state=state)["logits"] for t in (1, 2)]
        rows = [r for r in session.explain() if r["rung"] == "decode attention"]
        assert rows and all("parts" in r["reason"] for r in rows)
        assert session.counters()["dynamic_allocations"] == before
    np.testing.assert_allclose(found, whole, **tolerance("rounded", "float32"))
