"""Valid models that are easily got wrong and inputs that must be refused, by name."""

import numpy as np
from onnx import TensorProto, helper
import pytest

import rlx
from tests.api.toys import F, I, arange, model, node, value

BOOL, STRING = TensorProto.BOOL, TensorProto.STRING
INT_MAX, INT_MIN = 2**63 - 1, -(2**63)


def graph(nodes, inputs, outputs, initializers=()):
    return helper.make_graph(nodes, "body", inputs, outputs, initializers)


def test_carried_value_grows_beside_what_it_started_from():
    """The first dim of `a` starts as that of the captured x, which does not grow."""
    body = graph([node("Concat", "a x", "b", axis=0), node("Identity", "c", "d"),
                  node("Shape", "b", "s")],
                 [value("i", I, []), value("c", BOOL, []), value("a", F, ["p", 2])],
                 [value("d", BOOL, []), value("b", F, ["q", 2]), value("s", I, [2])])
    loop = model([node("Loop", "n _ x", "y shapes", body=body)],
                 [value("n", I, []), value("x", F, ["k", 2])], [value("y"), value("shapes", I)])
    with rlx.load(loop) as session:
        for n, k in ((3, 2), (0, 2), (10, 3), (2, 0)):
            x = arange(k, 2)
            got = session.run({"n": np.array(n), "x": x})
            np.testing.assert_array_equal(got["y"], np.tile(x, (n + 1, 1)))
            np.testing.assert_array_equal(
                got["shapes"], np.array([[k * (i + 2), 2] for i in range(n)]).reshape(n, 2))


def test_sequence_that_a_loop_fills_from_empty():
    sequence = helper.make_tensor_sequence_value_info
    body = graph([node("SequenceInsert", "s x", "t"), node("Identity", "c", "d")],
                 [value("i", I, []), value("c", BOOL, []), sequence("s", F, None)],
                 [value("d", BOOL, []), sequence("t", F, None)])
    loop = model([node("SequenceEmpty", "", "e"), node("Loop", "n _ e", "r", body=body),
                  node("ConcatFromSequence", "r", "y", axis=0, new_axis=1)],
                 [value("n", I, []), value("x", F, ["k"])], [value("y")])
    with rlx.load(loop) as session:
        for n in (3, 1, 10):
            y = session.run({"n": np.array(n), "x": arange(4)})["y"]
            np.testing.assert_array_equal(y, np.tile(arange(4), (n, 1)))


def test_absent_optional_of_unknown_rank():
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(F, None))
    has = model([node("OptionalHasElement", "o", "y")], [helper.make_value_info("o", optional)],
                [value("y", BOOL)])
    with rlx.load(has) as session:
        for given, there in ((None, False), (arange(2), True), (arange(1, 2), True)):
            assert session.run({"o": given})["y"].item() is there
        assert session.run({})["y"].item() is False


def test_default_of_unknown_rank_returns():
    made = model([node("Add", "x w", "y")], [value("x", F, [2]), value("w", F)], [value("y")],
                 {"w": np.ones(2, np.float32)})
    with rlx.load(made) as session:
        for given, expected in (({}, [1, 2]), ({"w": np.float32(5)}, [5, 6]), ({}, [1, 2])):
            assert session.run({"x": arange(2)} | given)["y"].tolist() == expected


@pytest.mark.parametrize("start, end, step, expected", [
    (INT_MIN, INT_MAX, INT_MAX, [0]), (0, INT_MAX, INT_MAX, [0]),
    (INT_MAX, INT_MIN, INT_MIN, [4]), (INT_MAX, INT_MIN, -3, [4, 1]),
])
@pytest.mark.parametrize("constant", [False, True])
def test_slice_at_the_ends_of_int64(start, end, step, expected, constant):
    ends = {k: np.array([v]) for k, v in (("s", start), ("e", end), ("a", 0), ("t", step))}
    inputs = [] if constant else [value(k, I, [1]) for k in ends]
    cut = model([node("Slice", "x s e a t", "y")], [value("x", F, ["n"]), *inputs], [value("y")],
                ends if constant else {})
    y = rlx.run(cut, {"x": arange(5)} | ({} if constant else ends))["y"]
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("k, kept", [(INT_MAX, 6), (INT_MIN, 0), (0, 3), (-1, 1), (1, 5)])
def test_trilu_takes_any_k(k, kept):
    trilu = model([node("Trilu", "x k", "y", upper=0)], [value("x", F, [2, 3]), value("k", I, [])],
                  [value("y")])
    y = rlx.run(trilu, {"x": np.ones((2, 3), np.float32), "k": np.array(k)})["y"]
    assert y.sum() == kept


def test_argmax_of_a_scalar():
    argmax = model([node("ArgMax", "x", "y")], [value("x", F, [])], [value("y", I)])
    y = rlx.run(argmax, np.float32(3))["y"]
    assert y.shape == () and y == 0


@pytest.mark.parametrize("nodes, inputs, initializers, says", [
    ([node("Relu", "s", "y")], {"s": STRING}, {}, "Relu"),
    ([node("Less", "s s", "y")], {"s": STRING}, {}, "Less"),
    ([node("Cast", "x", "y", to=99)], {"x": F}, {}, "99"),
    ([node("Concat", "", "y", axis=0)], {"x": F}, {}, "Concat"),
    ([node("Einsum", "x", "y", equation="i->ik")], {"x": F}, {}, "Einsum"),
    ([node("Einsum", "x", "y", equation="i->ii")], {"x": F}, {}, "Einsum"),
    ([node("ScatterND", "x i u", "y")], {"x": F},
     {"i": np.zeros((1, 2), np.int64), "u": np.zeros(1, np.float32)}, "ScatterND"),
])
def test_models_that_mean_nothing_are_refused(nodes, inputs, initializers, says):
    made = model(nodes, [value(k, t, ["n"]) for k, t in inputs.items()], [value("y")],
                 initializers)
    with pytest.raises((rlx.ModelError, rlx.UnsupportedError), match=says):
        rlx.load(made)


@pytest.mark.parametrize("limit", [np.nan, np.inf, 1e30])
def test_range_without_an_end(limit):
    made = model([node("Range", "a b c", "y")], [value(k, F, []) for k in "abc"], [value("y")])
    zero, one = np.float32(0), np.float32(1)
    with rlx.load(made) as session:
        with pytest.raises(rlx.InputError, match="not finite"):
            session.run({"a": zero, "b": np.float32(limit), "c": one})
        assert session.run({"a": zero, "b": one, "c": one})["y"].tolist() == [0]


class Failing:
    def __array__(self, *args, **kwargs):
        raise ValueError("out of ideas")


@pytest.mark.parametrize("x", [[[1, 2], [3]], Failing()])
def test_what_is_no_array(x):
    with pytest.raises(rlx.InputError, match="array"):
        rlx.run(model([node("Relu", "x", "y")], [value("x", F, ["n"])], [value("y")]), {"x": x})


@pytest.mark.parametrize("options", [
    {"disable": None}, {"disable": 3}, {"disable": [1]}, {"threads": 2**40},
    {"plan_cache_bytes": -1}, {"plan_cache_bytes": 2**70}, {"memory_limit": -1},
    {"memory_limit": 2**70},
])
def test_options_out_of_range(options):
    (name,) = options
    with pytest.raises(rlx.InputError, match=name):
        rlx.load(model([node("Relu", "x", "y")], [value("x", F, ["n"])], [value("y")]), **options)


def test_output_beyond_memory():
    """Needs no limit: the array that would be returned cannot be made."""
    made = model([node("Expand", "x s", "y")], [value("x", F, [1]), value("s", I, [1])],
                 [value("y")])
    with rlx.load(made) as session:
        with pytest.raises(rlx.MemoryLimitError):
            session.run({"x": arange(1), "s": np.array([2**50])})
        assert session.run({"x": arange(1), "s": np.array([2])})["y"].tolist() == [0, 0]


@pytest.mark.parametrize("rows, size", [(2, 3), (3, 2)])
def test_zero_points_of_the_wrong_size_are_refused(rows, size):
    """A kernel would read beyond a zero point that is shorter than the rows it belongs to."""
    u8, i32 = TensorProto.UINT8, TensorProto.INT32
    made = model([node("MatMulInteger", "a b z", "y")],
                 [value("a", u8, [rows, 4]), value("b", u8, [4, 2]), value("z", u8, [size])],
                 [value("y", i32)])
    with pytest.raises(rlx.Error, match="zero point"):
        rlx.load(made)


@pytest.mark.parametrize("places, shapes", [((0, 1, -1), [(2,), (3, 4), (3, 4)])])
def test_sequence_of_different_ranks(places, shapes):
    """Its elements are taken by constant positions, and it may leave the model."""
    nodes = [node("SequenceConstruct", "a b", "s"), node("SequenceLength", "s", "n")]
    initializers = {}
    for k, place in enumerate(places):
        initializers[f"p{k}"] = np.array(place)
        nodes += [node("SequenceAt", f"s p{k}", f"y{k}")]
    made = model(nodes, [value("a", F, [2]), value("b", F, ["r", 4])],
                 [value("n", I), *(value(f"y{k}") for k in range(len(places))),
                  helper.make_tensor_sequence_value_info("s", F, None)], initializers)
    a, b = arange(2), arange(3, 4)
    got = rlx.run(made, {"a": a, "b": b})
    assert got["n"] == 2 and [got[f"y{k}"].shape for k in range(len(places))] == shapes
    for x, y in zip(got["s"], (a, b)):
        np.testing.assert_array_equal(x, y)


def test_element_of_a_mixed_sequence_at_a_place_that_is_fed():
    made = model([node("SequenceConstruct", "a b", "s"), node("SequenceAt", "s p", "y")],
                 [value("a", F, [2]), value("b", F, [2, 2]), value("p", I, [])], [value("y")])
    with pytest.raises(rlx.UnsupportedError, match="rank"):
        rlx.load(made)
