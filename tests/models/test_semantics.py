"""What makes each network that network: masks hide, causality holds, a cache changes nothing.

All in float64 by onnx.reference. A hidden key weighs exactly zero, so most comparisons are exact.
"""

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import models


@pytest.fixture(scope="module")
def evaluate():
    """evaluate(name, inputs): the outputs of a narrow float64 copy by name."""
    evaluators = {}

    def run(name, given):
        builder = models.BUILDERS[name]
        if name not in evaluators:
            evaluators[name] = ReferenceEvaluator(builder.build(0, np.float64, **builder.NARROW))
        # The lowest float twice is minus infinity, which Softmax takes as well.
        with np.errstate(over="ignore"):
            results = evaluators[name].run(None, given)
        return dict(zip(evaluators[name].output_names, results, strict=True))

    return run


def inputs(name, *size, **rest):
    builder = models.BUILDERS[name]
    return builder.inputs(*size, dtype=np.float64, **rest, **builder.NARROW)


@pytest.mark.parametrize("name, output", [("bert-base", "last_hidden_state"), ("gpt2", "logits")])
def test_padding_is_hidden(evaluate, name, output):
    given = inputs(name, 3, 24)
    # A hole in the middle too, which causality alone would not hide.
    given["attention_mask"][:, 3] = 0
    mask = given["attention_mask"].astype(bool)
    assert not mask[1:, -1].all()
    before = evaluate(name, given)[output]
    given["input_ids"][~mask] = 7
    after = evaluate(name, given)[output]
    assert np.array_equal(before[mask], after[mask])


def test_bert_reads_segments_and_both_directions(evaluate):
    given = inputs("bert-base", 1, 12)
    before = evaluate("bert-base", given)["last_hidden_state"]
    for name, position in ("token_type_ids", 6), ("input_ids", 6):
        changed = {**given, name: given[name].copy()}
        changed[name][0, position] = 1 - min(given[name][0, position], 1)
        after = evaluate("bert-base", changed)["last_hidden_state"]
        assert (before != after).any(axis=2).all()


def test_gpt2_sees_no_future(evaluate):
    given = inputs("gpt2", 1, 12)
    before = evaluate("gpt2", given)["logits"]
    given["input_ids"][0, 6] += 1
    changed = (before != evaluate("gpt2", given)["logits"]).any(axis=2)[0]
    assert not changed[:6].any() and changed[6:].all()


def test_llama_with_a_cache_equals_llama_at_once(evaluate):
    given = inputs("llama", 2, 9, past=0)
    whole = evaluate("llama", given)
    cache = {name: value for name, value in given.items() if name.startswith("past")}
    for start, end in (0, 4), (4, 5), (5, 9):
        part = evaluate("llama", {
            "input_ids": given["input_ids"][:, start:end],
            "position_ids": given["position_ids"][:, start:end],
            "attention_mask": given["attention_mask"][:, :end],
            **cache,
        })
        np.testing.assert_allclose(part["logits"], whole["logits"][:, start:end])
        cache = {name: part[name.replace("past_key_values", "present")] for name in cache}
    for name, value in cache.items():
        np.testing.assert_allclose(value, whole[name.replace("past_key_values", "present")])


def test_llama_padding_on_the_left_is_hidden(evaluate):
    given = inputs("llama", 4, 2, past=10)
    padding = given["attention_mask"][:, :10] == 0
    assert padding.any()
    before = evaluate("llama", given)["logits"]
    for name, value in given.items():
        if name.startswith("past"):
            given[name] = np.where(padding[:, None, :, None], 5.0, value)
    assert np.array_equal(before, evaluate("llama", given)["logits"])


def test_llama_rotation_depends_on_distance_only(evaluate):
    given = inputs("llama", 1, 6, past=0)
    near = evaluate("llama", given)["logits"]
    far = evaluate("llama", {**given, "position_ids": given["position_ids"] + 100})["logits"]
    spread = evaluate("llama", {**given, "position_ids": given["position_ids"] * 3})["logits"]
    np.testing.assert_allclose(near, far)
    assert not np.allclose(near, spread)
