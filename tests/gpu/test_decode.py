"""Attention of few query rows on a GPU: the operator's text, recordings, long caches."""

import numpy as np
import pytest

import rlx
from tests.attention import Form, check, feeds_of, forms, model_of, truth_of
from tests.tolerance import tolerance

LONG = [Form(b, 8, 4, rows, keys, 128, mask, dtype) for b, rows, keys, mask, dtype in [
    (1, 1, 4096, "none", "float16"), (1, 1, 32768, "none", "bfloat16"),
    (8, 1, 4096, "lengths", "float16"),
    (2, 4, 5000, "causal past", "bfloat16"), (1, 1, 4096, "none", "float32"),
    (1, 3, 9000, "by head", "float32"), (3, 8, 3000, "causal lengths", "float16")]]


@pytest.mark.parametrize("form", [*forms(), *LONG], ids=str)
def test_the_operators_text(gpu, form):
    assert check(gpu, form, runs=3)["rung"] == "decode attention"


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("rows", [16, 40, 300])
def test_forced_for_many_rows(gpu, dtype, rows):
    form = Form(2, 2, 4, rows, 700, 64, "causal", dtype)
    assert check(gpu, form)["rung"] != "decode attention"
    assert check(gpu, form, "decode attention", 3)["rung"] == "decode attention"


@pytest.mark.parametrize("form", LONG, ids=str)
def test_a_recording_gives_the_same_bits(gpu, form):
    feeds, _ = feeds_of(form)
    found = []
    for mode in ("stream", "graph"):
        with rlx.load(model_of(form), device=gpu, mode=mode) as session:
            found += [session.run(feeds)["y"] for _ in range(4)]
    for other in found[1:]:
        np.testing.assert_array_equal(other.view(np.uint8), found[0].view(np.uint8))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_lengths_known_only_when_it_runs(gpu, dtype):
    with rlx.load(model_of(Form(1, 8, 4, 1, 17, 128, "none", dtype), open_keys=True),
                  device=gpu) as session:
        for keys in (17, 5000, 1, 600, 513, 5000, 5000, 5000, 17):
            feeds, attributes = feeds_of(Form(1, 8, 4, 1, keys, 128, "none", dtype), keys)
            np.testing.assert_allclose(session.run(feeds)["y"].astype(float),
                                       truth_of(feeds, attributes), **tolerance("norm", dtype))
