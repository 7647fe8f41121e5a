"""What a Loop carries: what its body hands on as it came is captured, and only that."""

import numpy as np
from onnx import TensorProto as T, helper as h
import pytest

import rlx
from tests.api.toys import F, I, arange, model, node, value

BODY = [value("i", I, []), value("c", T.BOOL, [])]
PASSED = node("Identity", "c", "c2")


def loop(nodes, inputs, outputs, carried: str, results: str, constants=None, more=()):
    """A model of n trips; inputs and outputs of the body are those after i, c and c2."""
    body = h.make_graph([PASSED, *nodes], "body", [*BODY, *inputs], [value("c2", T.BOOL, []),
                                                                     *outputs])
    given = [value("n", I, []), *more]
    stage = h.make_node("Loop", ["n", "", *carried.split()], results.split(), "loop", body=body)
    ends = [h.make_empty_tensor_value_info(name) for name in results.split()]
    return model([stage], given, ends, constants)


@pytest.mark.parametrize("trips", [0, 1, 12])
def test_a_weight_that_is_carried_is_one_of_the_body(trips):
    """So a CPU packs it, and a GPU has it once. Its powers are exact."""
    w = np.roll(np.eye(64, dtype=np.float32), 5, axis=1) / 2
    made = loop([node("MatMul", "h k", "h2"), node("Identity", "k", "k2")],
                [value("h", F, ["m", 64]), value("k", F, [64, 64])],
                [value("h2", F, ["m", 64]), value("k2", F, [64, 64])], "x w", "y same", {"w": w},
                [value("x", F, ["m", 64])])
    x = arange(5, 64)
    with rlx.load(made, device="cpu") as session:
        got = session.run({"n": np.int64(trips), "x": x})
        packed = session._packs.count
    np.testing.assert_array_equal(got["y"], np.roll(x, 5 * trips, axis=1) / 2.0 ** trips)
    np.testing.assert_array_equal(got["same"], w)
    assert packed == (trips > 0)


@pytest.mark.parametrize("trips", [0, 1, 9, 12])
def test_what_is_handed_on_at_the_first_shapes_only_is_carried(trips):
    """The rows of `a` grow; `k` is handed on while there are two of them."""
    grown = h.make_graph([node("Add", "k k", "t")], "more", [], [value("t", F, [3])])
    as_it_was = h.make_graph([node("Identity", "k", "e")], "two", [], [value("e", F, [3])])
    made = loop([node("Shape", "a", "shape"), node("Gather", "shape zero", "rows"),
                 node("Equal", "rows two", "is_two"),
                 h.make_node("If", ["is_two"], ["k2"], then_branch=as_it_was, else_branch=grown),
                 node("Concat", "a row", "a2", axis=0), node("Identity", "rows", "seen")],
                [value("a", F, ["r", 3]), value("k", F, [3])],
                [value("a2", F, ["q", 3]), value("k2", F, [3]), value("seen", I, [])],
                "x start", "y end all",
                {"zero": np.array(0), "two": np.array(2), "row": arange(1, 3) + 7},
                [value("x", F, [2, 3]), value("start", F, [3])])
    start = arange(3) + 1
    with rlx.load(made, device="cpu") as session:
        got = session.run({"n": np.int64(trips), "x": arange(2, 3), "start": start})
    np.testing.assert_array_equal(got["y"], np.concatenate([arange(2, 3)] +
                                                           [arange(1, 3) + 7] * trips))
    np.testing.assert_array_equal(got["end"], start * 2.0 ** max(trips - 1, 0))
    assert got["all"].tolist() == [2 + t for t in range(trips)]


@pytest.mark.parametrize("flag", [True, False])
def test_what_a_captured_constant_decides(flag):
    """`f` is handed on, so it is known in the body, where it decides which branch there is."""
    yes = h.make_graph([node("Add", "k one", "t")], "yes", [], [value("t", F, [3])])
    no = h.make_graph([node("Identity", "k", "e")], "no", [], [value("e", F, [3])])
    made = loop([h.make_node("If", ["f"], ["k2"], then_branch=yes, else_branch=no),
                 node("Identity", "f", "f2"), node("Neg", "k2", "slice")],
                [value("k", F, [3]), value("f", T.BOOL, [])],
                [value("k2", F, [3]), value("f2", T.BOOL, []), value("slice", F, [3])],
                "x flag", "y kept all", {"flag": np.array(flag), "one": np.float32(1)},
                [value("x", F, [3])])
    with rlx.load(made, device="cpu") as session:
        for trips in (0, 10):
            got = session.run({"n": np.int64(trips), "x": arange(3)})
            steps = [arange(3) + t * flag for t in range(trips + 1)]
            np.testing.assert_array_equal(got["y"], steps[-1])
            assert got["kept"] == flag and got["all"].shape == (trips, 3)
            np.testing.assert_array_equal(got["all"], -np.array(steps[1:]).reshape(trips, 3))


def test_a_body_with_too_few_outputs_is_refused():
    made = loop([], [value("h", F, [3])], [], "x", "y", None, [value("x", F, [3])])
    with pytest.raises(rlx.ModelError, match="'loop'"):
        rlx.run(made, {"n": np.int64(9), "x": arange(3)}, device="cpu")
