"""The seeded builders: true size, valid and deterministic files, inputs that matter to outputs."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

import models

# Two (batch, size or length) pairs per network, for its narrow copy.
SIZES = {
    "resnet50": [(2, 64), (3, 96)],
    "mobilenet_v2": [(2, 64), (3, 96)],
    "bert-base": [(2, 16), (3, 48)],
    "gpt2": [(2, 16), (3, 48)],
    "vit-b16": [(2, 32), (3, 32)],
    "unet": [(2, 16), (3, 24)],
    "llama": [(2, 1), (3, 5)],
    "yolo": [(2, 64), (3, 96)],
    "tagger": [(2, 16), (3, 24)],
}
NAMES = pytest.mark.parametrize("name", models.BUILDERS)
# onnx.reference ignores LSTM's sequence_lens and joins scan outputs of rank 2 on a wrong axis.
REFERENCE = pytest.mark.parametrize("name", [n for n in models.BUILDERS if n != "tagger"])


def narrow(name, seed=0, dtype=np.float32):
    builder = models.BUILDERS[name]
    return builder.build(seed, dtype, **builder.NARROW)


def inputs(name, size, seed=0, dtype=np.float32):
    builder = models.BUILDERS[name]
    return builder.inputs(*size, seed, dtype, **builder.NARROW)


def session(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    data = model.SerializeToString()
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


@NAMES
def test_true_size_has_the_stated_parameters(name):
    builder = models.BUILDERS[name]
    assert models.parameters(builder.build()) == builder.PARAMETERS


@NAMES
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_narrow_copy_passes_the_full_checker(name, dtype):
    onnx.checker.check_model(narrow(name, dtype=np.dtype(dtype)), full_check=True)


@NAMES
def test_a_seed_means_the_same_bytes(name):
    first, again, other = (narrow(name, seed).SerializeToString() for seed in (3, 3, 4))
    assert first == again
    assert first != other


@NAMES
def test_inputs_are_those_of_the_graph(name):
    given = inputs(name, SIZES[name][0])
    for value in narrow(name).graph.input:
        array = given.pop(value.name)
        assert onnx.helper.np_dtype_to_tensor_dtype(array.dtype) == value.type.tensor_type.elem_type
        assert array.ndim == len(value.type.tensor_type.shape.dim)
    assert not given


@NAMES
def test_one_session_runs_two_sizes_and_the_input_matters(name):
    run = session(narrow(name))
    for size in SIZES[name]:
        results = [run.run(None, inputs(name, size, seed)) for seed in (0, 1)]
        for value, here, there in zip(run.get_outputs(), *results, strict=True):
            if value.shape[0] == "batch":
                assert here.shape[0] == size[0], value.name
            if here.dtype.kind == "f":
                assert np.isfinite(here).all(), value.name
                assert here.std() > 0.02 and abs(here).max() < 1000, value.name
                assert differ(here, there), value.name


def differ(here, there):
    """By more than a tenth of the spread; a detector finds different numbers of boxes."""
    return here.shape != there.shape or abs(here - there).max() > 0.1 * here.std()


@NAMES
def test_float64_copy_holds_the_same_weights(name):
    wide = narrow(name, dtype=np.float64)
    for a, b in zip(narrow(name).graph.initializer, wide.graph.initializer, strict=True):
        assert np.array_equal(onnx.numpy_helper.to_array(a), onnx.numpy_helper.to_array(b))


@REFERENCE
def test_float64_copy_evaluates(name):
    wide = narrow(name, dtype=np.float64)
    given = inputs(name, SIZES[name][0], dtype=np.float64)
    # The lowest float twice is minus infinity, which Softmax takes as well.
    with np.errstate(over="ignore"):
        results = ReferenceEvaluator(wide).run(None, given)
    for value, result in zip(wide.graph.output, results, strict=True):
        assert np.isfinite(result).all(), value.name


@pytest.mark.slow
@pytest.mark.ort
@NAMES
def test_true_size_passes_the_checker_and_tells_rows_apart(name, tmp_path):
    builder = models.BUILDERS[name]
    model = builder.build()
    onnx.checker.check_model(model)
    # By file: the serialised bytes would be one more copy of all weights.
    path = tmp_path / "net.onnx"
    onnx.save(model, path)
    del model
    run = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    results = run.run(None, builder.inputs(2))
    for value, result in zip(run.get_outputs(), results, strict=True):
        if value.shape[0] == "batch" and result.dtype.kind == "f":
            assert np.isfinite(result).all(), value.name
            assert abs(result[0] - result[1]).max() > 0.1 * result.std(), value.name
            assert result.std() > 0.3 and abs(result).max() < 150, value.name
        elif value.name == "selected":
            assert 20 < len(result) < 2000


def test_command_line_writes_a_model(tmp_path):
    path = tmp_path / "net.onnx"
    root = Path(models.__file__).parents[1]
    command = [sys.executable, "-m", "models", "resnet50", "--narrow", "--seed", "5", "-o", path]
    subprocess.run(command, cwd=root, check=True)
    assert path.read_bytes() == narrow("resnet50", 5).SerializeToString()
