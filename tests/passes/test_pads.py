"""The pads pass: zero padding joins the convolution behind it, everything else stays."""

import numpy as np
import pytest

from tests.passes.equivalence import check, counts, model_of, node


def run(pad, conv=None, constants=None, value=0.0, outputs=("y",), shape=(2, 3, 9, 8), extra=()):
    rng = np.random.default_rng(0)
    given = {"pads": np.array(pad), "w": rng.normal(size=(4, 3, 3, 3)).astype(np.float32),
             "zero": np.array(value, np.float32), **(constants or {})}
    nodes = [node("Pad", "x pads zero", "p"), node("Conv", "p w", "y", **(conv or {})), *extra]
    x = rng.normal(size=shape).astype(np.float32)
    model = model_of(nodes, {"x": ["n", *shape[1:]]}, list(outputs), given)
    return counts(check(model, {"x": x}, ["pads"]))


@pytest.mark.parametrize("conv", [{}, {"pads": [1, 0, 2, 1], "strides": [2, 2]},
                                  {"dilations": [2, 1]}])
@pytest.mark.parametrize("pad", [[0, 0, 1, 1, 0, 0, 1, 1], [0, 0, 0, 2, 0, 0, 1, 0]])
def test_zeros_join_the_convolution(pad, conv):
    assert run(pad, conv) == {"Conv": 1}


def test_a_pad_that_others_read_stays_beside_it():
    found = run([0, 0, 1, 1, 0, 0, 1, 1], outputs=("y", "z"), extra=[node("Neg", "p", "z")])
    assert found == {"Conv": 1, "Move": 1, "Region": 1}


@pytest.mark.parametrize("case", [
    {"pad": [0, 0, 1, 1, 0, 0, 1, 1], "value": 1.0},
    {"pad": [0, 0, -1, 1, 0, 0, 1, 1]},
    {"pad": [0, 0, 1, 1, 0, 0, -1, 1]},
    {"pad": [0, 1, 1, 1, 0, 0, 1, 1], "shape": (2, 2, 9, 8)},
    {"pad": [1, 0, 1, 1, 0, 0, 1, 1]},
], ids=["another value", "cropped", "cropped behind", "channels", "images"])
def test_what_is_no_zero_around_images_stays(case):
    assert run(**case)["Move"] == 1


def test_an_edge_pad_stays():
    nodes = [node("Pad", "x pads", "p", mode="edge"), node("Conv", "p w", "y")]
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, 3, 5, 5)).astype(np.float32)
    constants = {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
                 "w": rng.normal(size=(4, 3, 3, 3)).astype(np.float32)}
    model = model_of(nodes, {"x": list(x.shape)}, ["y"], constants)
    assert counts(check(model, {"x": x}, ["pads"]))["Move"] == 1
