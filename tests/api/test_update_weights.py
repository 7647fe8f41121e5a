"""Session.update_weights: other values in place, against float64 of the new values."""

from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper
import pytest

import rlx
from tests.passes.equivalence import model_of, node
from tests.tolerance import tolerance

KEPT = ("imports", "plans", "stage_binds", "contexts")


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32) / 4


def two_layers(w, v):
    return model_of([node("MatMul", "x w", "a"), node("Relu", "a", "b"),
                     node("Gemm", "b v", "y", transB=1)], {"x": ["n", w.shape[0]]}, ["y"],
                    {"w": w, "v": v})


def truth(x, w, v):
    return np.maximum(x.astype(float) @ w, 0) @ v.astype(float).T


def close(found, expected, what="norm"):
    np.testing.assert_allclose(found, expected, **tolerance(what, "float32"))


@pytest.mark.parametrize("device", ["cpu", "emu"])
@pytest.mark.parametrize("m", [1, 7])
@pytest.mark.parametrize("half", ["", "f16", "bf16"])
def test_products_use_new_weights_without_new_plans(device, m, half):
    w, v, x = normal(40, 24), normal(18, 24, seed=1), normal(m, 40, seed=2)
    kind = {"": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[half]
    with _load(two_layers(w, v), device, weights=half) as session:
        for _ in range(3):
            session.run({"x": x})
        before = session.counters()
        for seed in (5, 6):
            w, v = normal(40, 24, seed=seed), v if seed == 5 else normal(18, 24, seed=seed)
            session.update_weights({"w": w} if seed == 5 else {"w": w, "v": v})
            expected = truth(x, *(a.astype(kind).astype(float) for a in (w, v)))
            close(session.run({"x": x})["y"], expected)
        after = session.counters()
        assert {name: after[name] for name in KEPT} == {name: before[name] for name in KEPT}
        other = normal(m + 2, 40, seed=9)  # a plan made later has them too
        close(session.run({"x": other})["y"],
              truth(other, *(a.astype(kind).astype(float) for a in (w, v))))


def _load(model, device, **options):
    try:
        return rlx.load(model, device=device, **options)
    except rlx.DeviceError:
        pytest.skip("this build has no emulator: configure with -DRLX_EMULATOR=ON")


@pytest.mark.parametrize("force", ["", "onednn", "gemm", "depthwise", "direct"])
@pytest.mark.parametrize("groups", [1, 8])
def test_convolutions_use_new_weights(force, groups):
    w, x = normal(8, 8 // groups, 3, 3), normal(1, 8, 7, 7, seed=1)
    model = model_of([node("Conv", "x w b", "y", group=groups)], {"x": [1, 8, 7, 7]}, ["y"],
                     {"w": w, "b": normal(8, seed=2)})
    new = {"w": normal(*w.shape, seed=3), "b": normal(8, seed=4)}
    with rlx.load(model, device="cpu", force=force) as session:
        old = session.run({"x": x})["y"]
        plans = session.counters()["plans"]
        session.update_weights(new)
        found = session.run({"x": x})["y"]
        assert session.counters()["plans"] == plans
    from tests.kernels.test_half_weights import convolve
    expected = convolve(x.astype(float), new["w"].astype(float), groups)
    close(found, expected + new["b"][:, None, None], "rounded")
    assert np.abs(found - old).max() > 0.1


def test_what_was_folded_from_a_weight_is_folded_again():
    w, s, x = normal(6, 6), np.float32([2, 3, 4, 5, 6, 7]), normal(2, 6, seed=1)
    model = model_of([node("Mul", "w s", "ws"), node("Transpose", "ws", "t", perm=[1, 0]),
                      node("MatMul", "x t", "y")], {"x": ["n", 6]}, ["y"], {"w": w, "s": s})
    with rlx.load(model, device="cpu") as session:
        session.run({"x": x})
        before = session.counters()
        session.update_weights({"s": s + 1})
        close(session.run({"x": x})["y"], x.astype(float) @ (w.astype(float) * (s + 1)).T)
        assert session.counters()["plans"] == before["plans"]


@pytest.mark.parametrize("device", ["cpu", "emu"])
@pytest.mark.parametrize("name", ["w", "r", "b"])
def test_recurrent_layers_use_new_weights(device, name):
    weights = {"w": normal(1, 5, 6), "r": normal(1, 5, 5, seed=1), "b": normal(1, 10, seed=2)}
    x = normal(4, 2, 6, seed=3)
    model = model_of([node("RNN", "x w r b", "y", hidden_size=5)], {"x": [4, 2, 6]}, ["y"], weights)
    with _load(model, device) as session:
        session.run({"x": x})
        weights |= {name: normal(*weights[name].shape, seed=7)}
        session.update_weights({name: weights[name]})
        found = session.run({"x": x})["y"]
    close(found[:, 0], _states(weights, x))


def _states(weights: dict, x: np.ndarray) -> np.ndarray:
    """The RNN operator's h of each step, from zeros: tanh, biases of input and recurrence."""
    w, r, b = (a[0].astype(float) for a in weights.values())
    h, states = np.zeros((2, 5)), []
    for step in x.astype(float):
        h = np.tanh(step @ w.T + h @ r.T + b[:5] + b[5:])
        states.append(h)
    return np.array(states)


def _in_a_body(how: str, weights: dict):
    """h = RNN(one row, h) for each row of x, as a Loop or a Scan whose body reads outer weights."""
    F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
    info = helper.make_tensor_value_info
    step = [node("Unsqueeze", "row zero", "rows"),
            node("RNN", "rows w r b - h", "all next", hidden_size=5)]
    if how == "Loop":
        body = helper.make_graph(
            [node("Gather", "x i", "row", axis=0), node("Identity", "c", "c2"), *step,
             node("Identity", "next", "seen")], "body",
            [info("i", I, []), info("c", B, []), info("h", F, [1, 2, 5])],
            [info("c2", B, []), info("next", F, None), info("seen", F, None)])
        outer = node("Loop", "four - h0", "last y", body=body)
    else:
        body = helper.make_graph(
            [*step, node("Identity", "next", "seen")], "body",
            [info("h", F, [1, 2, 5]), info("row", F, [2, 6])],
            [info("next", F, [1, 2, 5]), info("seen", F, [1, 2, 5])])
        outer = node("Scan", "h0 x", "last y", body=body, num_scan_inputs=1)
    return model_of([outer], {"x": [4, 2, 6]}, ["y"],
                    {"four": np.array(4), "zero": np.array([0]),
                     "h0": np.zeros((1, 2, 5), np.float32), **weights})


@pytest.mark.parametrize("device", ["cpu", "emu"])
@pytest.mark.parametrize("how", ["Loop", "Scan"])
def test_recurrent_layers_in_bodies_use_new_weights(device, how):
    weights = {"w": normal(1, 5, 6), "r": normal(1, 5, 5, seed=1), "b": normal(1, 10, seed=2)}
    x = normal(4, 2, 6, seed=3)
    with _load(_in_a_body(how, weights), device) as session:
        for seed, names in ((0, ""), (7, "wrb"), (8, "r")):
            new = {n: normal(*weights[n].shape, seed=seed + ord(n)) for n in names}
            weights |= new
            if new:
                session.update_weights(new)
            for _ in range(2):
                found = session.run({"x": x})["y"]
            close(found[:, 0], _states(weights, x))


@pytest.mark.parametrize("device", ["cpu", "emu"])
def test_a_growing_state_goes_on_with_new_weights(device):
    """What it holds was computed with the old ones and stays."""
    w, v, x = normal(6, 4), normal(6, 4, seed=1), normal(5, 6, seed=2)
    model = model_of([node("MatMul", "x w", "a"), node("Concat", "past a", "present", axis=0),
                      node("ReduceSum", "present axes", "y", keepdims=0)],
                     {"past": ["p", 4], "x": ["n", 6]}, ["present", "y"],
                     {"w": w, "axes": np.array([0])})
    with _load(model, device) as session:
        state = session.state({"past": "present"}, axis=0, capacity=8)
        for k in range(5):
            if k == 3:
                session.update_weights({"w": v})
            y = session.run({"x": x[k:k + 1]}, state=state)["y"]
        rows = np.concatenate([x[:3].astype(float) @ w, x[3:].astype(float) @ v])
        close(state.value("past"), rows)
        close(y, rows.sum(0))


def test_weights_that_were_equal_come_apart():
    w, x = normal(6, 6), normal(2, 6, seed=1)
    model = model_of([node("MatMul", "x w", "a"), node("MatMul", "a v", "y")], {"x": ["n", 6]},
                     ["y"], {"w": w, "v": w})
    with rlx.load(model, device="cpu") as session:
        session.run({"x": x})
        for seed in (3, 4):
            new = normal(6, 6, seed=seed)
            session.update_weights({"v": new})
            close(session.run({"x": x})["y"], x.astype(float) @ w @ new)


def test_a_weight_that_decides_the_shape_decides_it_again():
    model = model_of([node("Reshape", "x s", "y")], {"x": [2, 6]}, ["y"], {"s": np.array([3, 4])})
    x = normal(2, 6)
    with rlx.load(model, device="cpu") as session:
        assert session.run({"x": x})["y"].shape == (3, 4)
        session.update_weights({"s": np.array([12, 1])})
        assert session.run({"x": x})["y"].shape == (12, 1)


def test_weights_of_branches_and_of_states():
    body = [helper.make_graph([node("MatMul", f"x {name}", f"{name}y")], name, [], [
        helper.make_tensor_value_info(f"{name}y", TensorProto.FLOAT, None)]) for name in "wv"]
    model = model_of([node("If", "c", "y", then_branch=body[0], else_branch=body[1])],
                     {"x": [2, 6]}, ["y"], {"w": normal(6, 6), "v": normal(6, 6, seed=1)})
    model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    x, new = normal(2, 6, seed=2), normal(6, 6, seed=3)
    with rlx.load(model, device="cpu") as session:
        for c in (True, False):
            session.run({"x": x, "c": np.array(c)})
        session.update_weights({"v": new})
        close(session.run({"x": x, "c": np.array(False)})["y"], x.astype(float) @ new)
        close(session.run({"x": x, "c": np.array(True)})["y"], x.astype(float) @ normal(6, 6))


@pytest.mark.parametrize("arrays, message", [
    ({"u": np.zeros((6, 6), np.float32)}, "no initializer 'u'"),
    ({"w": np.zeros((6, 5), np.float32)}, "'w' has another type or shape"),
    ({"w": np.zeros((6, 6))}, "'w' has another type or shape"),
    ([("w", 1)], "by name"),
])
def test_what_does_not_fit_changes_nothing(arrays, message):
    w, v, x = normal(6, 6), normal(6, 6, seed=1), normal(2, 6, seed=2)
    with rlx.load(two_layers(w, v), device="cpu") as session:
        old = session.run({"x": x})["y"]
        good = {"v": normal(6, 6, seed=4)}
        given = {**good, **arrays} if isinstance(arrays, dict) else arrays
        with pytest.raises(rlx.InputError, match=message):
            session.update_weights(given)
        np.testing.assert_array_equal(session.run({"x": x})["y"], old)


def test_the_callers_array_and_other_sessions_stay_apart():
    w, v, x = normal(6, 6), normal(6, 6, seed=1), normal(2, 6, seed=2)
    data = two_layers(w, v).SerializeToString()
    with rlx.load(data, device="cpu") as one, rlx.load(data, device="cpu") as two:
        old = two.run({"x": x})["y"]
        new = normal(6, 6, seed=3)
        given = new.copy()
        one.run({"x": x})
        one.update_weights({"w": given})
        given[:] = 0
        close(one.run({"x": x})["y"], truth(x, new, v))
        np.testing.assert_array_equal(two.run({"x": x})["y"], old)


def test_runs_see_old_or_new_weights_and_no_mixture():
    n = 48
    one = np.eye(n, dtype=np.float32)
    model = model_of([node("MatMul", "x w", "a"), node("MatMul", "a v", "y")], {"x": [1, n]},
                     ["y"], {"w": one, "v": 2 * one})
    x = np.ones((1, n), np.float32)
    with rlx.load(model, device="cpu") as session, ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(lambda: {float(session.run({"x": x})["y"].sum()) / n
                                        for _ in range(200)}) for _ in range(3)]
        for k in (3, 5, 7, 11):
            session.update_weights({"w": k * one, "v": 2 * k * one})
        seen = set().union(*(f.result() for f in futures))
        assert seen <= {2.0, 18.0, 50.0, 98.0, 242.0}
        assert session.run({"x": x})["y"][0, 0] == 242.0
