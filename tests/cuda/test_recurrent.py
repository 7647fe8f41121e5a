"""Recurrent layers by cuDNN, without a card: fake_cudnn.cpp computes by cuDNN's own equations."""

import pytest

from tests.cuda.test_runs import on_fake_gpu  # noqa: F401  (a fixture)
from tests.recurrent import BY_LIBRARY, NOT_BY_LIBRARY

CHECK = """
import os
from tests.recurrent import BY_LIBRARY, NOT_BY_LIBRARY, layer
from tests.tolerance import tolerance
def check(kind, options, force="", compare=True):
    made, feeds, expected = layer(kind, **options)
    with rlx.load(made, device="cuda", force=force) as s:
        for _ in range(3): found = s.run(feeds)
        row, = [r for r in s.explain() if r["prim"] == "Recurrent"]
    # A fake GPU has no kernels: what one moves behind the library is not there.
    moved = ["y"] if options.get("direction") == "bidirectional" else []
    for name, y in found.items():
        if compare and name not in moved:
            np.testing.assert_allclose(y, expected[name], **tolerance("rounded", "float32"))
    return row
"""


@pytest.fixture
def run(on_fake_gpu, fake_cudnn):  # noqa: F811
    return lambda code: on_fake_gpu(f"sys.path.insert(0, {str(fake_cudnn)!r})\n{CHECK}{code}")


@pytest.mark.parametrize("name", BY_LIBRARY)
def test_layers_by_the_library(run, name):
    done, calls = run(f"row = check(*BY_LIBRARY[{name!r}])\nprint(row['rung'], row['reason'])")
    assert done.stdout.strip() == "cudnn weights packed once"
    assert calls["cudnnRNNForward"] == 2  # walked once, recorded once


@pytest.mark.parametrize("name", NOT_BY_LIBRARY)
def test_other_layers_say_why_not(run, name):
    done, calls = run(f"""
kind, options, _ = NOT_BY_LIBRARY[{name!r}]
row = check(kind, options, compare=False)
print(row["rung"], row["reason"])
""")
    assert done.stdout.startswith("a block for each row")
    assert NOT_BY_LIBRARY[name][2] in done.stdout
    assert calls["cudnnRNNForward"] == 0


@pytest.mark.parametrize("kind, attributes, kernels", [
    ("LSTM", {}, 1), ("GRU", {"linear_before_reset": 0}, 2), ("RNN", {}, 1)])
def test_each_step_of_a_layer_with_many_weights_is_a_launch(run, kind, attributes, kernels):
    done, calls = run(f"""
row = check({kind!r}, {attributes | {"steps": 7, "hidden": 256, "size": 16}!r}, "kernel", False)
print(row["rung"], row["steps"])
""")
    assert done.stdout.strip() == "a launch for each step ['launch', 'launch']"
    assert calls["cuLaunchKernelEx"] == 2 * (1 + 7 * kernels)  # walked once, recorded once


def test_a_layer_of_too_many_steps_says_so(run):
    options = {"steps": 16385, "batch": 1, "hidden": 256, "size": 64}
    done, calls = run(f"""
row = check("RNN", {options!r}, "kernel", False)
print(row["rung"], row["reason"])
""")
    assert done.stdout.startswith("a block for each row")
    assert "too many steps for a launch each: above 16384" in done.stdout
    assert calls["cuLaunchKernelEx"] == 2


@pytest.mark.parametrize("force, rung", [("kernel", "a block for each row"), ("cudnn", "cudnn")])
def test_a_rung_may_be_forced(run, force, rung):
    done, _ = run(f"row = check('LSTM', {{}}, {force!r}, {force == 'cudnn'})\nprint(row['rung'])")
    assert done.stdout.strip() == rung


def test_the_library_is_missed_by_name(on_fake_gpu):  # noqa: F811
    done, _ = on_fake_gpu(CHECK + """
try:
    check("LSTM", {}, "cudnn")
except rlx.DeviceError as error:
    print(error.op, "library that is missing" in str(error))
print(check("LSTM", {}, compare=False)["reason"])
""")
    assert done.stdout.startswith("LSTM True")
    assert "cuDNN cannot be used" in done.stdout
