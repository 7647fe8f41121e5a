"""Outputs with structure: the tagger's path, the detector's boxes, the U-Net's conditions."""

import itertools

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

import models


@pytest.fixture(scope="module")
def tagger():
    model = models.BUILDERS["tagger"].build(**models.BUILDERS["tagger"].NARROW)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    weights = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    return session, weights


def tags_inputs(batch, length):
    builder = models.BUILDERS["tagger"]
    return builder.inputs(batch, length, **builder.NARROW)


def path_score(weights, emissions, path):
    total = weights["crf.start"][path[0]] + weights["crf.end"][path[-1]]
    total += sum(emissions[time, tag] for time, tag in enumerate(path))
    return total + sum(weights["crf.transitions"][pair] for pair in itertools.pairwise(path))


@pytest.mark.parametrize("length", [1, 2, 6])
def test_tagger_finds_the_best_of_all_paths(tagger, length):
    session, weights = tagger
    given = tags_inputs(3, length)
    tags, scores, emissions = session.run(["tags", "score", "emissions"], given)
    count = emissions.shape[2]
    for row, end in enumerate(given["lengths"]):
        paths = list(itertools.product(range(count), repeat=int(end)))
        all_scores = [path_score(weights, emissions[row], path) for path in paths]
        assert tuple(tags[row, :end]) == paths[int(np.argmax(all_scores))]
        assert not tags[row, end:].any()
        assert np.isclose(scores[row], max(all_scores))


def test_tagger_ignores_tokens_after_a_row(tagger):
    session, _ = tagger
    given = tags_inputs(4, 20)
    outside = np.arange(20) >= given["lengths"][:, None]
    assert outside.any()
    before = session.run(["tags", "score"], given)
    given["input_ids"][outside] = 9
    for old, new in zip(before, session.run(["tags", "score"], given), strict=True):
        assert np.array_equal(old, new)


def overlap(a, b):
    """Intersection over union of two boxes given by centre and size."""
    low = np.maximum(a[:2] - a[2:] / 2, b[:2] - b[2:] / 2)
    high = np.minimum(a[:2] + a[2:] / 2, b[:2] + b[2:] / 2)
    both = np.prod(np.maximum(high - low, 0))
    return both / (np.prod(a[2:]) + np.prod(b[2:]) - both)


def test_yolo_keeps_confident_boxes_that_do_not_overlap():
    builder = models.BUILDERS["yolo"]
    model = builder.build(**builder.NARROW)
    given = builder.inputs(3, 96, **builder.NARROW)
    selected, boxes, scores = ReferenceEvaluator(model).run(None, given)
    config = builder.Config(**builder.NARROW)
    assert 10 < len(selected) < 500
    assert set(selected[:, 0]) == {0, 1, 2} and len(set(selected[:, 1])) > 2
    assert (scores > config.score).all() and scores.std() > 0.05
    assert (boxes[:, 2:] > 0).all()
    for i, j in itertools.combinations(range(len(selected)), 2):
        if (selected[i, :2] == selected[j, :2]).all():
            assert overlap(boxes[i], boxes[j]) <= config.overlap


def test_unet_depends_on_time_and_prompt_but_not_on_the_order_of_its_vectors():
    builder = models.BUILDERS["unet"]
    run = ReferenceEvaluator(builder.build(0, np.float64, **builder.NARROW)).run
    given = builder.inputs(1, 8, dtype=np.float64, tokens=5, **builder.NARROW)
    (first,) = run(None, given)
    prompt = given["encoder_hidden_states"]
    (turned,) = run(None, {**given, "encoder_hidden_states": prompt[:, ::-1]})
    np.testing.assert_allclose(turned, first)
    for name, value in ("timestep", given["timestep"] + 50), ("encoder_hidden_states", -prompt):
        (other,) = run(None, {**given, name: value})
        assert abs(other - first).max() > 0.05
