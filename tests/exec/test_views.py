"""Moves that only attention reads are no copies: it reads their source through strides."""

import numpy as np
from onnx import helper, numpy_helper, TensorProto
import pytest

import rlx
from rlx.diagnose.verify import verify
from tests.emu.case import emulated
from tests.tolerance import tolerance

B, S, H, D = 2, 20, 3, 16
DEVICES = ["cpu", "emu", "emu:descending"]


@pytest.fixture(params=DEVICES)
def device(request):
    if request.param != "cpu":
        emulated(request.param)
    return request.param


def model(nodes, outputs, constants, width):
    infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["b", "s", width])]
    results = [helper.make_empty_tensor_value_info(n) for n in outputs]
    made = [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()]
    graph = helper.make_graph(nodes, "g", infos, results, made)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


ATTEND = [node("Transpose", "k", "kt", perm=[0, 1, 3, 2]), node("MatMul", "q kt", "s"),
          node("Softmax", "s", "p", axis=-1), node("MatMul", "p v", "y0"),
          node("Transpose", "y0", "y", perm=[0, 2, 1, 3])]
HEADS = {"heads": np.array([0, 0, -1, D]), "width": np.array([D] * 3)}


def packed(order, axis):
    """x, through tanh, as [b, s, 3, h, d] (or as `order` says), cut along `axis`."""
    cut = [node("Tanh", "x", "t"), node("Reshape", "t five", "u")]
    cut += [node("Transpose", "u", "w", perm=order), node("Split", "w", "q1 k1 v1", axis=axis,
                                                        num_outputs=3)]
    cut += [node("Squeeze", f"{n}1 at", n) for n in "qkv"]
    return cut, {"at": np.array([axis])}


def rows(sizes, names="qkv"):
    """x, through tanh, cut along its last axis; then heads are split off and come first."""
    cut = [node("Tanh", "x", "t"), node("Split", "t sizes", " ".join(f"{n}1" for n in names),
                                      axis=-1)]
    for n in "qkv":
        cut += [node("Reshape", f"{n}1 heads", f"{n}2"),
                node("Transpose", f"{n}2", n, perm=[0, 2, 1, 3])]
    return cut, {"sizes": np.array(sizes)}


def attend(q, k, v):
    s = q @ np.swapaxes(k, -1, -2)
    p = np.exp(s - s.max(-1, keepdims=True))
    return np.swapaxes(p / p.sum(-1, keepdims=True) @ v, 1, 2)


def heads_of(t, starts):
    parts = [t[..., a:a + H * D].reshape(*t.shape[:2], H, D) for a in starts]
    return [np.swapaxes(p, 1, 2) for p in parts]


def views_of(session):
    return sum(row["rung"] == "view" for row in session.explain())


FIVE = {"five": np.array([0, 0, 3, H, D])}
PACKED = {"packed": packed([2, 0, 3, 1, 4], 0), "heads before the cut": packed([0, 3, 2, 1, 4], 2),
          "columns": rows([H * D] * 3)}


@pytest.mark.parametrize("form", PACKED)
def test_packed_operands_are_read_where_they_lie(device, form):
    cut, constants = PACKED[form]
    made = model([*cut, *ATTEND], ["y"], {**HEADS, **FIVE, **constants}, 3 * H * D)
    with rlx.Session(made, device=device) as session:
        for batch, length in ((B, S), (1, 5), (3, 33)):
            x = np.random.default_rng(length).normal(size=(batch, length, 3 * H * D))
            x = x.astype(np.float32)
            (y,) = session.run({"x": x}).values()
            t = np.tanh(x.astype(np.float64))
            wanted = attend(*heads_of(t, (0, H * D, 2 * H * D)))
            np.testing.assert_allclose(y, wanted, **tolerance("rounded", "float32"))
        kinds = [row["prim"] for row in session.explain() if row["steps"]]
        assert sorted(kinds) == ["Attention", "Region"], kinds
        assert views_of(session) >= 3


def test_a_cut_off_the_alignment_is_copied(device):
    cut, constants = rows([1, H * D, H * D, H * D], ["first", "q", "k", "v"])
    made = model([*cut, *ATTEND], ["y"], {**HEADS, **constants}, 3 * H * D + 1)
    x = np.random.default_rng(0).normal(size=(B, S, 3 * H * D + 1)).astype(np.float32)
    with rlx.Session(made, device=device) as session:
        (y,) = session.run({"x": x}).values()
        wanted = attend(*heads_of(np.tanh(x.astype(np.float64)), (1, 1 + H * D, 1 + 2 * H * D)))
        np.testing.assert_allclose(y, wanted, **tolerance("rounded", "float32"))
        assert views_of(session) == 0


@pytest.mark.parametrize("also", ["output", "reader", "later stage"])
def test_what_others_read_is_copied(device, also):
    """An output of the model, an operand of another node: k is then a tensor of its own."""
    cut, constants = PACKED["packed"]
    more = {"output": [], "reader": [node("Exp", "k", "z")],
            "later stage": [node("Relu", "k", "r"), node("NonZero", "r", "z")]}[also]
    made = model([*cut, *ATTEND, *more], ["y", "k" if also == "output" else "z"],
                 {**HEADS, **FIVE, **constants}, 3 * H * D)
    x = np.random.default_rng(0).normal(size=(B, S, 3 * H * D)).astype(np.float32)
    with rlx.Session(made, device=device) as session:
        y, z = session.run({"x": x}).values()
    q, k, v = heads_of(np.tanh(x.astype(np.float64)), (0, H * D, 2 * H * D))
    np.testing.assert_allclose(y, attend(q, k, v), **tolerance("rounded", "float32"))
    wanted = {"output": k, "reader": np.exp(k), "later stage": np.nonzero(k > 0)}[also]
    np.testing.assert_allclose(z, wanted, **tolerance("rounded", "float32"))


def test_verify_sees_what_a_view_gives():
    cut, constants = PACKED["packed"]
    made = model([*cut, *ATTEND], ["y"], {**HEADS, **FIVE, **constants}, 3 * H * D)
    x = np.random.default_rng(0).normal(size=(B, S, 3 * H * D)).astype(np.float32)
    assert verify(made, {"x": x}, {}).right
