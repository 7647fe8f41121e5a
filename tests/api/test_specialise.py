"""One Session, many programs: structural values, ranks, presence, defaults, assumptions."""

import numpy as np
from onnx import TensorProto, helper
import pytest

import rlx
from tests.api.toys import F, I, arange, model, node, value


def test_axes_of_a_reduction_as_input():
    reduce = model([node("ReduceSum", "x axes", "y", keepdims=0)],
                   [value("x", F, ["a", "b", "c"]), value("axes", I, ["k"])], [value("y")])
    x = arange(2, 3, 4)
    with rlx.load(reduce) as session:
        for axes in ([0], [1, 2], [-1], [0], [1, 2]):
            y = session.run({"x": x, "axes": np.array(axes)})["y"]
            np.testing.assert_array_equal(y, x.sum(axis=tuple(axes)))
        assert session.counters()["imports"] == 3


def test_axes_of_unsqueeze_as_input():
    unsqueeze = model([node("Unsqueeze", "x axes", "y")],
                      [value("x", F, ["a", "b"]), value("axes", I, ["k"])], [value("y")])
    with rlx.load(unsqueeze) as session:
        for axes, shape in (([0], (1, 2, 3)), ([1, 3], (2, 1, 3, 1)), ([0], (1, 2, 3))):
            assert session.run({"x": arange(2, 3), "axes": np.array(axes)})["y"].shape == shape
        with pytest.raises(rlx.Error, match="Unsqueeze"):
            session.run({"x": arange(2, 3), "axes": np.array([7])})
        assert session.run({"x": arange(2, 3), "axes": np.array([0])})["y"].shape == (1, 2, 3)


def test_computed_axes():
    """The axes come out of a computation, so the rest is imported for what it gives."""
    reduce = model([node("Add", "k k", "axes"), node("ReduceSum", "x axes", "y", keepdims=0)],
                   [value("x", F, ["a", "b", "c"]), value("k", I, [1])], [value("y")])
    x = arange(2, 3, 4)
    with rlx.load(reduce) as session:
        for k in (0, 1, 0):
            y = session.run({"x": x, "k": np.array([k])})["y"]
            np.testing.assert_array_equal(y, x.sum(axis=2 * k))


def test_unknown_rank():
    double = model([node("Add", "x x", "y")], [value("x")], [value("y")])
    with rlx.load(double) as session:
        for shape in ((), (3,), (2, 3, 4), (3,)):
            np.testing.assert_array_equal(session.run(arange(*shape))["y"], arange(*shape) * 2)
        assert session.counters()["imports"] == 3


def test_overridable_initializer():
    """An initializer that is also an input is a default that the caller may replace."""
    scale = model([node("Mul", "x s", "y")], [value("x", F, [2]), value("s", F, [2])],
                  [value("y")], {"s": np.array([2, 3], np.float32)})
    x = np.array([1, 1], np.float32)
    with rlx.load(scale) as session:
        for _ in range(2):
            np.testing.assert_array_equal(session.run({"x": x})["y"], [2, 3])
            fed = session.run({"x": x, "s": np.array([5, 7], np.float32)})["y"]
            np.testing.assert_array_equal(fed, [5, 7])
        np.testing.assert_array_equal(session.run([x])["y"], [2, 3])
        np.testing.assert_array_equal(session.run(x)["y"], [2, 3])


def test_default_that_decides_the_program():
    reduce = model([node("ReduceSum", "x axes", "y", keepdims=0)],
                   [value("x", F, [2, 3]), value("axes", I, [1])], [value("y")],
                   {"axes": np.array([0])})
    with rlx.load(reduce) as session:
        assert session.run({"x": arange(2, 3)})["y"].shape == (3,)
        assert session.run({"x": arange(2, 3), "axes": np.array([1])})["y"].shape == (2,)


def test_optional_input():
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(F, ["n"]))
    has = model([node("OptionalHasElement", "x", "y")],
                [helper.make_value_info("x", optional)], [value("y", TensorProto.BOOL, [])])
    with rlx.load(has) as session:
        assert session.run({"x": arange(2)})["y"]
        assert not session.run({"x": None})["y"]
        assert not session.run({})["y"]


@pytest.mark.parametrize("rows", [3, 1], ids=["equal", "one row broadcasts"])
def test_a_broadcast_that_was_assumed_not_to_happen(rows):
    """Dims "n" and "m" are taken to be equal; the Session notices when they are not."""
    pair = model([node("Add", "a b", "y")], [value("a", F, ["n", 4]), value("b", F, ["m", 4])],
                 [value("y")])
    with rlx.load(pair) as session:
        for n in (3, rows):
            a, b = arange(n, 4), arange(3, 4) * 10
            np.testing.assert_array_equal(session.run([a, b])["y"], a + b)
        with pytest.raises(rlx.InputError):
            session.run([arange(2, 4), arange(3, 4)])


def test_a_dim_name_that_is_used_twice():
    """Models use one name for sizes that differ; that is no reason to refuse them."""
    both = model([node("ReduceSum", "a", "y", keepdims=0), node("ReduceSum", "b", "z", keepdims=0)],
                 [value("a", F, ["n"]), value("b", F, ["n"])], [value("y"), value("z")])
    with rlx.load(both) as session:
        for n, m in ((2, 2), (2, 5), (3, 3)):
            found = session.run([arange(n), arange(m)])
            assert found["y"] == arange(n).sum() and found["z"] == arange(m).sum()


def test_a_dim_that_is_a_sum_of_others():
    """"p + s" is taken to be what it says; other sizes are still computed rightly."""
    join = model([node("Concat", "a b", "c", axis=0), node("Add", "c m", "y")],
                 [value("a", F, ["p"]), value("b", F, ["s"]), value("m", F, ["p + s"])],
                 [value("y")])
    with rlx.load(join) as session:
        y = session.run([arange(2), arange(3), arange(5)])["y"]
        np.testing.assert_array_equal(y, [0, 2, 2, 4, 6])
        y = session.run([arange(2), arange(3), arange(1) + 5])["y"]
        np.testing.assert_array_equal(y, [5, 6, 5, 6, 7])


def test_outputs_that_are_inputs_initializers_and_repeated():
    w = np.array([1, 2], np.float32)
    through = model([node("Add", "x w", "s"), node("Identity", "s", "t")], [value("x", F, ["n"])],
                    [value("x"), value("w"), value("s"), value("t")], {"w": w})
    x = np.array([5, 6], np.float32)
    with rlx.load(through) as session:
        found = session.run({"x": x})
        np.testing.assert_array_equal(found["x"], x)
        np.testing.assert_array_equal(found["w"], w)
        np.testing.assert_array_equal(found["s"], x + w)
        np.testing.assert_array_equal(found["t"], x + w)
        found["x"][0] = found["w"][0] = found["s"][0] = 99
        again = session.run({"x": x})
        assert again["x"][0] == 5 and again["w"][0] == 1 and again["t"][0] == 6
        assert x[0] == 5, "an output shares the caller's memory"


def test_a_dim_assumed_equal_to_one_that_is_a_number():
    """x is taken to be as long as y, and y must be as long as w: an x of 1 broadcasts still."""
    w = np.ones((5, 3), np.float32)
    both = model([node("Add", "x y", "s"), node("MatMul", "y w", "p")],
                 [value("x", F, ["a"]), value("y", F, ["m", "b"])], [value("s"), value("p")],
                 {"w": w})
    with rlx.load(both) as session:
        for length in (5, 1, 5):
            found = session.run({"x": arange(length), "y": arange(2, 5)})
            np.testing.assert_array_equal(found["s"], arange(length) + arange(2, 5))
            np.testing.assert_array_equal(found["p"], arange(2, 5) @ w)
        with pytest.raises(rlx.Error, match="wrong shape"):
            session.run({"x": arange(5), "y": arange(2, 4)})


def test_sequences():
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(F, None))
    insert = model([node("SequenceInsert", "s x", "t"), node("SequenceLength", "t", "n")],
                   [helper.make_value_info("s", kind), value("x", F, ["k"])],
                   [helper.make_value_info("t", kind), value("n", I, [])])
    with rlx.load(insert) as session:
        for items in ([arange(1), arange(2)], []):
            found = session.run({"s": items, "x": arange(3)})
            assert isinstance(found["t"], list) and found["n"] == len(items) + 1
            for got, wanted in zip(found["t"], [*items, arange(3)], strict=True):
                np.testing.assert_array_equal(got, wanted)


def test_strings():
    equal = model([node("Identity", "x", "y")], [value("x", TensorProto.STRING, ["n"])],
                  [value("y", TensorProto.STRING, ["n"])])
    with rlx.load(equal) as session:
        for given in (np.array(["a", "ünï", ""], object), np.array(["b", "cc"])):
            y = session.run({"x": given})["y"]
            assert y.dtype == object and y.tolist() == given.tolist()
