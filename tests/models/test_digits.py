"""The trained digit classifier reads pictures that it was not trained on."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import models

FOLDER = Path(models.__file__).parent / "digits"


@pytest.fixture(scope="module")
def classify():
    path = str(FOLDER / "digits.onnx")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return lambda images: session.run(["probabilities"], {"image": images})[0]


def test_held_out_accuracy(classify):
    held_out = np.load(FOLDER / "held_out.npz")
    labels = held_out["labels"]
    assert len(labels) == 200 and set(labels) == set(range(10))
    probabilities = classify(held_out["images"][:, None].astype(np.float32))
    assert (probabilities.argmax(axis=1) == labels).mean() >= 0.97


def test_the_example_is_a_three(classify):
    assert classify(np.load(FOLDER / "three.npy")).argmax() == 3


def test_the_model_is_small_and_valid():
    path = FOLDER / "digits.onnx"
    assert path.stat().st_size <= 100_000
    onnx.checker.check_model(onnx.load(path), full_check=True)
    assert models.parameters(onnx.load(path)) == 9_978
