"""Random numbers of a GPU are those of the CPU: one stream for a seed, whatever draws from it."""

import numpy as np
import pytest

import rlx
from tests.api.toys import F, model, node, value
from tests.emu.case import emulated
from tests.tolerance import tolerance

SHAPE = [3, 1000]
CASES = {
    "uniform": ([node("RandomUniform", "", "y", seed=3.0, shape=SHAPE, low=-1.0, high=2.0)], {}),
    "normal": ([node("RandomNormal", "", "y", seed=4.0, shape=SHAPE)], {}),
    "bernoulli": ([node("Bernoulli", "x", "y", seed=5.0)], {"x": np.full(SHAPE, 0.3, np.float32)}),
    "multinomial": ([node("Multinomial", "x", "y", seed=6.0, sample_size=500)],
                    {"x": np.zeros((3, 7), np.float32)}),
}


def draw(name, device):
    nodes, feeds = CASES[name]
    for n in nodes:
        del n.input[0 if not feeds else 1:]
    made = model(nodes, [value(k, F, list(x.shape)) for k, x in feeds.items()], [value("y")])
    with rlx.load(made, device=device) as session:
        return [session.run(feeds)["y"] for _ in range(2)]


@pytest.mark.parametrize("device", ["emu", "emu:descending"])
@pytest.mark.parametrize("name", CASES)
def test_the_stream_of_the_cpu(name, device):
    emulated(device)
    mine, theirs = draw(name, "cpu"), draw(name, device)
    for a, b in zip(mine, theirs):
        if name == "normal":
            np.testing.assert_allclose(a, b, **tolerance("rounded", "float32"))
        else:
            np.testing.assert_array_equal(a, b)
    assert len(np.unique(mine[0])) > 1
