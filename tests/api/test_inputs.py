"""What a caller may pass: containers, array-likes, dtypes, layouts, `out`; and what is refused."""

import array

import numpy as np
from onnx import TensorProto
import pytest

import rlx
from tests.api.toys import F, I, add, arange, model, node, value

A, B = arange(3, 4), arange(3, 4) * 10


@pytest.fixture(scope="module")
def session():
    with rlx.load(add()) as opened:
        yield opened


@pytest.mark.parametrize("inputs", [{"a": A, "b": B}, {"b": B, "a": A}, [A, B], (A, B)],
                         ids=["dict", "dict in another order", "list", "tuple"])
def test_containers(session, inputs):
    y = session.run(inputs)["y"]
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, A * 11)


def test_one_array():
    double = model([node("Add", "x x", "y")], [value("x", F, ["n"])], [value("y")])
    with rlx.load(double) as session:
        np.testing.assert_array_equal(session.run(arange(3))["y"], [0, 2, 4])
        np.testing.assert_array_equal(session.run([arange(3)])["y"], [0, 2, 4])


class OnlyDlpack:
    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **options):
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


class OnlyArray:
    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        return self.x


@pytest.mark.parametrize("wrap", [OnlyDlpack, OnlyArray, memoryview], ids=lambda w: w.__name__)
def test_array_likes(session, wrap):
    np.testing.assert_array_equal(session.run({"a": wrap(A), "b": B})["y"], A * 11)


def test_buffer_of_the_standard_library():
    double = model([node("Add", "x x", "y")], [value("x", F, ["n"])], [value("y")])
    with rlx.load(double) as session:
        np.testing.assert_array_equal(session.run({"x": array.array("f", [1, 2])})["y"], [2, 4])


@pytest.mark.parametrize("a", [A[::-1], np.asfortranarray(A), arange(3, 8)[:, ::2],
                               A.astype(">f4"), np.broadcast_to(A[:1], (3, 4))],
                         ids=["negative stride", "fortran", "strided", "big endian", "broadcast"])
def test_layouts(session, a):
    np.testing.assert_array_equal(session.run({"a": a, "b": B})["y"],
                                  np.asarray(a, np.float32) + B)


def test_out(session):
    y = np.full((3, 4), np.nan, np.float32)
    result = session.run({"a": A, "b": B}, out={"y": y})
    assert result["y"] is y
    np.testing.assert_array_equal(y, A * 11)


@pytest.mark.parametrize("out", [
    {"y": np.zeros((4, 3), np.float32)}, {"y": np.zeros((3, 4))}, {"z": A.copy()},
    {"y": np.zeros((4, 3), np.float32).T}, {"y": [0.0]}],
    ids=["shape", "dtype", "name", "layout", "no array"])
def test_out_is_checked(session, out):
    with pytest.raises(rlx.InputError, match="'[yz]'"):
        session.run({"a": A, "b": B}, out=out)


@pytest.mark.parametrize("inputs, says", [
    ({"a": A}, "'b'"),
    ({"a": A, "b": B, "c": A}, "'c'"),
    ({"a": A.astype(np.float64), "b": B}, "'a'"),
    ({"a": A, "b": B.astype(np.int32)}, "'b'"),
    ({"a": A[0], "b": B}, "'a'"),
    ({"a": arange(3, 5), "b": B}, "'a'"),
    ([A], "'b'|number of inputs"),
    ([A, B, A], "inputs"),
    (A, "several inputs|number of inputs"),
    ({"a": np.array(["x"] * 4).reshape(1, 4), "b": B}, "'a'"),
    ({"a": object(), "b": B}, "array"),
    ({"a": None, "b": B}, "'a'"),
], ids=["missing", "unknown", "float64", "int32", "rank", "dim", "too few", "too many", "alone",
        "strings", "object", "none"])
def test_wrong_inputs_are_named_and_harmless(session, inputs, says):
    with pytest.raises(rlx.InputError, match=says):
        session.run(inputs)
    np.testing.assert_array_equal(session.run({"a": A, "b": B})["y"], A * 11)


def test_a_guard_of_the_model_is_named():
    reshape = model([node("Reshape", "x s", "y")], [value("x", F, ["n"]), value("s", I, [2])],
                    [value("y")])
    with rlx.load(reshape) as session:
        with pytest.raises(rlx.InputError, match="Reshape"):
            session.run({"x": arange(6), "s": np.array([4, 2])})
        good = session.run({"x": arange(6), "s": np.array([3, -1])})
        np.testing.assert_array_equal(good["y"], arange(3, 2))


def test_0d_and_empty_tensors(session):
    y = session.run({"a": arange(0, 4), "b": arange(0, 4)})["y"]
    assert y.shape == (0, 4) and y.dtype == np.float32
    scalar = model([node("Mul", "x x", "y")], [value("x", F, [])], [value("y")])
    y = rlx.run(scalar, {"x": np.array(3, np.float32)})["y"]
    assert isinstance(y, np.ndarray) and y.shape == () and y == 9


def test_reduction_of_nothing_is_its_identity():
    total = model([node("ReduceSum", "x", "y", keepdims=0)], [value("x", F, ["n", 2])],
                  [value("y")])
    assert rlx.run(total, {"x": arange(0, 2)})["y"] == 0


def test_closed():
    session = rlx.load(add())
    session.run([A, B])
    session.close()
    session.close()
    with pytest.raises(rlx.InputError, match="closed"):
        session.run([A, B])
    with pytest.raises(rlx.InputError, match="closed"):
        session.explain()


def test_descriptions(session):
    assert [(i.name, i.dtype, i.shape) for i in session.inputs] == [
        ("a", "float32", ("n", 4)), ("b", "float32", ("n", 4))]
    assert [i.name for i in session.outputs] == ["y"]
    assert session.device == "cpu" and "cpu" in rlx.devices()


@pytest.mark.parametrize("options", [{"thread": 1}, {"threads": "2"}, {"threads": -1},
                                     {"disable": ["no such pass"]}],
                         ids=["name", "type", "range", "pass"])
def test_wrong_options(options):
    with pytest.raises(rlx.InputError, match=next(iter(options))):
        rlx.load(add(), **options)


def test_no_such_device():
    with pytest.raises(rlx.DeviceError, match="tpu"):
        rlx.load(add(), device="tpu")


@pytest.mark.parametrize("given", [{"a": None, "b": [1]}, [None, [1]], {"a": "x", "b": [1]},
                                   {"a": object(), "b": [1]}, {"a": [[1], [2, 3]], "b": [1]}])
def test_what_is_no_tensor_is_an_input_error(given):
    with pytest.raises(rlx.InputError, match="a") as caught:
        rlx.run(add(["n"]), given)
    assert type(caught.value) is rlx.InputError


@pytest.mark.parametrize("a, expected", [([1, 2.5], [2, 3.5]), ((1, 2), [2, 3]), ([True], [2]),
                                         ([np.float32(1)], [2]), ([], [])])
def test_lists_of_numbers_are_tensors(a, expected):
    """Python numbers have no element type: the input's is taken."""
    made = rlx.run(add(["n"]), {"a": a, "b": [1] * len(a)})["y"]
    assert made.dtype == np.float32 and made.tolist() == expected


@pytest.mark.parametrize("x", [[1.5], [2**40], ["a"]])
def test_numbers_that_the_element_type_does_not_hold(x):
    made = model([node("Abs", "x", "y")], [value("x", TensorProto.INT32, ["n"])], [value("y")])
    with pytest.raises(rlx.InputError, match="x"):
        rlx.run(made, {"x": x})


def test_default_that_does_not_fit_may_be_replaced():
    made = model([node("Reshape", "x s", "y"), node("Add", "y w", "z")],
                 [value("x", shape=[6]), value("s", I, [2])], [value("z")],
                 {"s": np.array([3, 2]), "w": np.zeros((2, 3), np.float32)})
    x = np.arange(6, dtype=np.float32)
    with rlx.load(made) as session:
        with pytest.raises(rlx.Error, match="broadcast"):
            session.run({"x": x})
        assert session.run({"x": x, "s": np.array([2, 3])})["z"].shape == (2, 3)


def test_none_for_an_input_with_a_default_takes_the_default():
    made = model([node("Add", "x w", "y")], [value("x", shape=[1]), value("w", shape=[1])],
                 [value("y")], {"w": np.ones(1, np.float32)})
    assert rlx.run(made, {"x": [1], "w": None})["y"].tolist() == [2]


@pytest.mark.parametrize("rung", ["magic", "cublaslt", "tiled attention", "Gemm"])
def test_force_of_a_rung_that_the_device_lacks(rung):
    with pytest.raises(rlx.InputError, match="force") as caught:
        rlx.load(add(), device="cpu", force=rung)
    assert "gemm" in str(caught.value)
