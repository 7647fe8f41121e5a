"""Attention beside the official cases: open dims, one primitive, views that see nothing."""

from collections import Counter

import numpy as np
import pytest
from onnx import TensorProto, helper

import rlx
from rlx.errors import ModelError
from tests.onnx.test_contrib import softmax
from tests.tolerance import tolerance

B, H, D = 2, 4, 8
TYPES = {np.dtype(np.float32): "float32", np.dtype(np.float64): "float64",
         np.dtype(np.float16): "float16"}


def session(inputs, opset=25, outputs=("y",), **attributes):
    """All dims but heads and sizes are open; an input may be None."""
    infos = []
    for name, x in inputs.items():
        if x is not None:
            dims = [d if d in (H, D, 2, H * D) and k else f"{name}{k}"
                    for k, d in enumerate(x.shape)]
            infos.append(helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(x.dtype), dims))
    names = [name if x is not None else "" for name, x in inputs.items()]
    node = helper.make_node("Attention", names, list(outputs), **attributes)
    made = [helper.make_tensor_value_info(o, infos[0].type.tensor_type.elem_type, None)
            for o in outputs if o]
    model = helper.make_model(helper.make_graph([node], "g", infos, made), ir_version=10,
                              opset_imports=[helper.make_opsetid("", opset)])
    return rlx.load(model, device="cpu")


def run(inputs, *args, **attributes):
    given = {k: x for k, x in inputs.items() if x is not None}
    return session(inputs, *args, **attributes).run(given)


def truth(inputs, keep=True, scale=None, softcap=0.0):
    """In float64; a query that sees no key gives zeros."""
    q, k, v = (inputs[n].astype(np.float64) for n in "qkv")
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    s = q @ k.swapaxes(2, 3) * (scale or D**-0.5)
    s = softcap * np.tanh(s / softcap) if softcap else s
    mask = inputs.get("m")
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask
    s = np.where(keep, s, -np.inf)
    seen = (s > -np.inf).any(-1, keepdims=True)
    return np.where(seen, softmax(np.where(seen, s, 0.0), (-1,)), 0.0) @ v


def close(y, expected, dtype="float32"):
    assert y.shape == expected.shape and np.isfinite(y).all()
    np.testing.assert_allclose(y.astype(np.float64), expected, **tolerance("norm", dtype))


@pytest.fixture
def operands():
    rng = np.random.default_rng(0)

    def make(queries, keys, heads=H, dtype=np.float32, **more):
        shapes = {"q": (B, H, queries, D), "k": (B, heads, keys, D), "v": (B, heads, keys, D)}
        return {n: rng.standard_normal(s).astype(dtype) for n, s in shapes.items()} | more
    return make


def apart(queries, keys, before=0):
    return np.arange(queries)[:, None] + before - np.arange(keys)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("heads", [H, 2])
@pytest.mark.parametrize("causal", [0, 1])
def test_types_and_heads(operands, dtype, heads, causal):
    inputs = operands(5, 7, heads, dtype)
    y = run(inputs, is_causal=causal)["y"]
    close(y, truth(inputs, apart(5, 7) >= 0 if causal else True), TYPES[dtype])


def test_forms_that_are_one_primitive(operands):
    """Nothing but the primitive runs, and no transposes for heads that come last."""
    rows = {n: x.swapaxes(1, 2).reshape(B, -1, H * D).copy() for n, x in operands(5, 7).items()}
    for inputs, attributes in ((operands(5, 7), {}), (operands(5, 7, 2), {"is_causal": 1}),
                               (rows, {"q_num_heads": H, "kv_num_heads": H})):
        loaded = session(inputs, 23, **attributes)
        loaded.run(inputs)
        assert Counter(s["prim"] for s in loaded.explain()) == {"Attention": 1}
    expected = truth({n: x.reshape(B, -1, H, D).swapaxes(1, 2) for n, x in rows.items()})
    close(loaded.run(rows)["y"], expected.swapaxes(1, 2).reshape(B, 5, H * D))


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_masks_that_hide_everything(operands, kind):
    keep = np.random.default_rng(1).random((B, 1, 5, 7)) < 0.5
    keep[0, 0, 3] = keep[1, 0, 0] = False
    mask = keep if kind == "bool" else np.where(keep, 0.25, -np.inf).astype(np.float32)
    inputs = operands(5, 7, m=mask)
    loaded = session(inputs)
    y = loaded.run(inputs)["y"]
    close(y, truth(inputs))
    assert not y[0, :, 3].any() and y[0, :, 2].any()
    assert Counter(s["prim"] for s in loaded.explain())["Softmax"] == 0
    close(run(inputs, is_causal=1)["y"], truth(inputs, apart(5, 7) >= 0))


def test_short_masks(operands):
    """From opset 24 on a mask may lack the last keys, which are hidden then."""
    inputs = operands(5, 7, m=np.ones((5, 4), bool))
    full = inputs | {"m": np.arange(7) < np.full((5, 1), 4)}
    close(run(inputs, 24)["y"], truth(full))
    close(run(full, 24)["y"], truth(full))


@pytest.mark.parametrize("causal", [0, 1])
def test_lengths_of_the_keys(operands, causal):
    inputs = operands(5, 7, m=None, pk=None, pv=None, n=np.array([7, 3]))
    keep = np.arange(7) < inputs["n"].reshape(B, 1, 1, 1)
    if causal:  # the last query stands at the last key; those before the first see nothing
        keep = keep & np.stack([apart(5, 7, n - 5) >= 0 for n in (7, 3)])[:, None]
    close(run(inputs, is_causal=causal)["y"], truth(inputs, keep))


@pytest.mark.parametrize("left, right, causal", [(2, -1, 0), (-1, 1, 0), (1, 2, 0), (2, -1, 1),
                                                 (0, 0, 0)])
def test_windows(operands, left, right, causal):
    inputs = operands(9, 6)
    distance = apart(9, 6)
    keep = (distance <= left if left >= 0 else True) & (distance >= -right if right >= 0 else True)
    keep = keep & (distance >= 0 if causal else np.ones_like(distance, bool))
    y = run(inputs, left_window_size=left, right_window_size=right, is_causal=causal)["y"]
    close(y, truth(inputs, keep))


def test_a_past(operands):
    inputs = operands(5, 5, 2, m=None)
    inputs["pk"], inputs["pv"] = (x[:, :, :3] for x in (inputs["k"] * 2, inputs["v"] * 3))
    found = run(inputs, outputs=("y", "nk", "nv"), is_causal=1, softcap=1.5, scale=0.4)
    whole = inputs | {n: np.concatenate([inputs["p" + n], inputs[n]], 2) for n in "kv"}
    close(found["y"], truth(whole, apart(5, 8, 3) >= 0, 0.4, 1.5))
    np.testing.assert_array_equal(found["nk"], whole["k"])
    np.testing.assert_array_equal(found["nv"], whole["v"])


def test_refusals(operands):
    inputs = operands(5, 7)
    flat = {n: x.reshape(B, -1, H * D) for n, x in inputs.items()}
    with pytest.raises(ModelError, match="q_num_heads"):
        session(flat)
    with pytest.raises(ModelError, match="qk_matmul_output_mode"):
        session(inputs, qk_matmul_output_mode=4)
    with pytest.raises(rlx.Error, match="heads"):
        run(inputs | {n: inputs[n][:, :3].copy() for n in "kv"})


def test_a_state_goes_on_token_by_token():
    """LinearAttention over all tokens is LinearAttention over each with the state before."""
    rng = np.random.default_rng(3)
    shapes = {"q": 16, "k": 8, "v": 12, "g": 2, "n": 2}
    x = {n: rng.standard_normal((B, 6, d)).astype(np.float32) * 0.5 for n, d in shapes.items()}
    x["g"], x["n"] = -np.abs(x["g"]), np.abs(x["n"])
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["b", "t", d])
             for n, d in shapes.items()]
    infos.append(helper.make_tensor_value_info("s", TensorProto.FLOAT, ["b", 2, 4, 6]))
    node = helper.make_node("LinearAttention", ["q", "k", "v", "s", "g", "n"], ["y", "z"],
                            q_num_heads=4, kv_num_heads=2)
    made = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in "yz"]
    model = helper.make_model(helper.make_graph([node], "g", infos, made), ir_version=10,
                              opset_imports=[helper.make_opsetid("", 27)])
    loaded = rlx.load(model, device="cpu")
    state = np.zeros((B, 2, 4, 6), np.float32)
    whole = loaded.run(x | {"s": state})
    state64, q, k, v = (state.astype(np.float64), *(x[n].reshape(B, 6, h, -1) for n, h in
                                                    (("q", 4), ("k", 2), ("v", 2))))
    for t in range(6):
        one = loaded.run({n: a[:, t:t + 1] for n, a in x.items()} | {"s": state})
        state = one["z"]
        close(one["y"], whole["y"][:, t:t + 1])
        state64 = state64 * np.exp(x["g"][:, t])[..., None, None]
        known = np.einsum("bhd,bhdc->bhc", k[:, t], state64)
        added = x["n"][:, t][..., None] * (v[:, t] - known)
        state64 = state64 + k[:, t][..., None] * added[:, :, None]
        wide = np.repeat(state64, 2, 1)
        close(one["y"], np.einsum("bhd,bhdc->bhc", q[:, t], wide).reshape(B, 1, 24) / 2)
    close(state, whole["z"])
    assert Counter(s["prim"] for s in loaded.explain()) == {"Map": 1}
