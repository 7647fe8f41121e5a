"""rlx runs every builder's network: two sizes on one Session, eight threads, narrow and true."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import models
from rlx.importer.importer import import_model
from rlx.importer.reader import read
from rlx.ir.evaluate import evaluate_graph
import rlx
from tests.models.test_builders import SIZES, inputs, narrow
from tests.tolerance import assert_network_output

# Two (batch, size or length) pairs per network at true size.
TRUE_SIZES = {
    "resnet50": [(1, 224), (2, 160)],
    "mobilenet_v2": [(1, 224), (3, 160)],
    "bert-base": [(1, 128), (2, 37)],
    "gpt2": [(1, 64), (2, 21)],
    "vit-b16": [(1, 224), (2, 224)],
    "unet": [(1, 32), (2, 24)],
    "llama": [(1, 1), (2, 5)],
    "yolo": [(1, 320), (2, 256)],
    "tagger": [(2, 24), (3, 40)],
}
NAMES = pytest.mark.parametrize("name", models.BUILDERS)
THREADS = 8


def check(found: dict, truth: dict) -> None:
    assert list(found) == list(truth)
    for name, y in truth.items():
        assert_network_output(found[name], y, "float32", name)


def check_from_threads(session: rlx.Session, cases: list) -> None:
    """Each of eight threads runs every (inputs, truth), beginning at another one."""
    def work(first: int) -> list:
        order = cases[first % len(cases):] + cases[:first % len(cases)]
        return [(session.run(given), truth) for given, truth in order]

    with ThreadPoolExecutor(THREADS) as pool:
        for pairs in pool.map(work, range(THREADS)):
            for found, truth in pairs:
                check(found, truth)


@NAMES
def test_narrow_copy_equals_float64_at_two_sizes_and_from_threads(name):
    model = narrow(name)
    graph = import_model(read(model))
    given = [inputs(name, size, seed) for seed, size in enumerate(SIZES[name])]
    cases = [(feeds, evaluate_graph(graph, feeds, double=True)) for feeds in given]
    with rlx.load(model) as session:
        for feeds, truth in cases + cases[:1]:
            check(session.run(feeds), truth)
        check_from_threads(session, cases)


@pytest.mark.slow
@pytest.mark.ort
@NAMES
def test_true_size_equals_onnxruntime_at_two_sizes_and_from_threads(name, tmp_path):
    builder, path = models.BUILDERS[name], tmp_path / "net.onnx"
    onnx.save(builder.build(), path)
    other = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [value.name for value in other.get_outputs()]
    given = [builder.inputs(*size) for size in TRUE_SIZES[name]]
    cases = [(feeds, dict(zip(names, other.run(None, feeds)))) for feeds in given]
    del other
    with rlx.load(path) as session:
        for feeds, truth in cases:
            check(session.run(feeds), truth)
        check_from_threads(session, cases)


def test_digits_are_read_right():
    folder = Path(models.__file__).parent / "digits"
    held_out = np.load(folder / "held_out.npz")
    with rlx.load(folder / "digits.onnx") as session:
        images = held_out["images"][:, None].astype(np.float32)
        found = session.run({"image": images})["probabilities"].argmax(axis=1)
        assert (found == held_out["labels"]).mean() >= 0.97
        assert session.run(np.load(folder / "three.npy"))["probabilities"].argmax() == 3
