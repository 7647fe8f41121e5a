"""Half weights and updated weights on a GPU, on each rung, against float64."""

import ml_dtypes
import numpy as np
import pytest

import rlx
from tests.products import ACTIVATIONS, product, random
from tests.tolerance import assert_network_output

HALF = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}


def used():
    return rlx._core.cuda_statistics()[0]["used_bytes"]


@pytest.mark.parametrize("weights", HALF)
@pytest.mark.parametrize("options", [{}, {"force": "cublaslt half + region"}, {"tf32": False,
                         "force": "cublaslt widened"}, {"force": "kernel"}], ids=repr)
@pytest.mark.parametrize("name", ["none", "gelu", "silu"])
@pytest.mark.parametrize("m, k, n", [(1024, 4096, 4096), (1, 3, 2), (7, 33, 65)])
def test_products(gpu, weights, options, name, m, k, n):
    made, w, b = product(name, k, n, "float32")
    x = random(m, k, seed=3).astype("float32")
    rounded = w.astype("float32").astype(HALF[weights]).astype(float)
    truth = ACTIVATIONS[name](x.astype(float) @ rounded + b.astype("float32"))
    with rlx.load(made, device=gpu, weights=weights, **options) as session:
        exact = options.get("force") in ("kernel", "cublaslt widened")
        for _ in range(3):
            assert_network_output(session.run({"x": x})["y"], truth,
                                  "float32" if exact else "float16", "y")
        rung = session.explain()[0]["rung"]
    wanted = options.get("force") or "cublaslt half"
    assert rung.startswith(wanted) or wanted == "kernel" and not rung.startswith("cublaslt")


@pytest.mark.parametrize("weights", HALF)
def test_the_weights_take_half_the_memory(gpu, weights):
    sizes = []
    for chosen in ("", weights):
        before = used()
        with rlx.load(product("none", 4096, 4096, "float32")[0], device=gpu,
                      weights=chosen) as session:
            session.run({"x": np.zeros((2, 4096), np.float32)})
            sizes.append(used() - before)
    assert sizes[1] <= sizes[0] - 2 * 4096 * 4096


@pytest.mark.parametrize("options", [{"tf32": False}, {"weights": "f16"}, {"weights": "bf16"}],
                         ids=repr)
def test_updated_weights_are_seen_by_recorded_runs(gpu, options):
    made, w, b = product("gelu", 256, 320, "float32")
    x = random(16, 256, seed=3).astype("float32")
    kind = HALF.get(options.get("weights"), np.float32)
    with rlx.load(made, device=gpu, **options) as session:
        for _ in range(3):
            session.run({"x": x})
        before = session.counters()
        for k in (2, -1):
            session.update_weights({"w": (k * w).astype("float32")})
            rounded = (k * w).astype("float32").astype(kind).astype(float)
            truth = ACTIVATIONS["gelu"](x.astype(float) @ rounded + b.astype("float32"))
            for _ in range(2):
                assert_network_output(session.run({"x": x})["y"], truth,
                                      "float16" if "weights" in options else "float32", "y")
        after = session.counters()
        assert all(after[n] == before[n] for n in ("plans", "recordings", "imports"))
