"""InferenceSession loads, describes, runs and refuses as onnxruntime's does."""

import pathlib
import threading

import numpy as np
from onnx import TensorProto as T, helper
import onnxruntime
import pytest

import rlx.ort
from tests.ort.material import DESCRIBED, REFUSED, info, model, node, sums

X = np.ones((2, 3), np.float32)
Y = np.float32([[2, 3, 4], [2, 3, 4]])


@pytest.fixture
def session(library):
    return library.InferenceSession(sums())


def described(arguments):
    return [(a.name, a.type, a.shape, str(a)) for a in arguments]


@pytest.mark.parametrize("name", DESCRIBED)
def test_inputs_and_outputs_are_described_alike(name):
    ours, theirs = (library.InferenceSession(DESCRIBED[name]) for library in (rlx.ort, onnxruntime))
    assert described(ours.get_inputs()) == described(theirs.get_inputs())
    assert described(ours.get_outputs()) == described(theirs.get_outputs())
    assert described(ours.get_overridable_initializers()) \
        == described(theirs.get_overridable_initializers())


def test_a_model_tells_about_itself(session):
    about = session.get_modelmeta()
    assert (about.producer_name, about.graph_name, about.domain, about.version) \
        == ("me", "g", "dom", 7)
    assert (about.description, about.graph_description) == ("doc", "graph doc")
    assert about.custom_metadata_map == {"a": "b"}


@pytest.mark.parametrize("form", [str, pathlib.Path])
def test_a_model_comes_from_a_path(library, tmp_path, form):
    path = tmp_path / "m.onnx"
    path.write_bytes(sums())
    assert len(library.InferenceSession(form(path)).run(None, {"x": X})) == 2


@pytest.mark.parametrize("what", [None, bytearray(b""), 3])
def test_other_things_are_no_model(library, what):
    with pytest.raises(TypeError, match="Unable to load from type"):
        library.InferenceSession(what)


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_model_raises_the_same(library, raises, name, tmp_path):
    data, exception = REFUSED[name]
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    for given in (data, str(path)):
        with raises(exception) as caught:
            library.InferenceSession(given)
        assert str(caught.value).startswith("[ONNXRuntimeError] : ")


def test_a_missing_file_is_no_such_file(library, raises, tmp_path):
    with raises("NoSuchFile") as caught:
        library.InferenceSession(str(tmp_path / "none.onnx"))
    assert "[ONNXRuntimeError] : 3 : NO_SUCHFILE : " in str(caught.value)


def test_our_exceptions_carry_the_error_of_rlx():
    with pytest.raises(rlx.ort.capi.onnxruntime_pybind11_state.InvalidGraph, match="Nope") as got:
        rlx.ort.InferenceSession(REFUSED["unknown operator"][0])
    assert isinstance(got.value.__cause__, rlx.UnsupportedError) and got.value.__cause__.node == "n"


@pytest.mark.parametrize("names, shown", [
    (None, "yz"), ([], "yz"), (["z"], "z"), (("y",), "y"), (["z", "y", "z"], "zyz")])
def test_outputs_come_in_the_order_asked_for(session, names, shown):
    values = session.run(names, {"x": X})
    assert isinstance(values, list)
    for value, name in zip(values, shown, strict=True):
        np.testing.assert_array_equal(value, Y if name == "y" else Y * Y, strict=True)


@pytest.mark.parametrize("feed", [
    {"x": X.tolist()}, {"x": np.ones((3, 2), np.float32).T},
    {"x": X, "w": np.float32([1, 2, 3])}], ids=["list", "strided", "overridden"])
def test_inputs_may_be(session, feed):
    np.testing.assert_array_equal(session.run(["y"], feed)[0], Y)


def test_an_input_may_be_an_ort_value(library, session):
    given = library.OrtValue.ortvalue_from_numpy(X)
    np.testing.assert_array_equal(session.run(["y"], {"x": given})[0], Y)


def test_an_overridable_initializer_is_overridden(session):
    np.testing.assert_array_equal(session.run(["y"], {"x": X, "w": np.zeros(3, np.float32)})[0], X)


@pytest.mark.parametrize("feed", [
    {"x": X, "q": X}, {"x": X.astype(np.float64)}, {"x": X.astype(np.int64)}, {"x": X[0]},
    {"x": np.ones((2, 4), np.float32)}], ids=["name", "float64", "int64", "rank", "dim"])
def test_an_unfit_input_is_an_invalid_argument(session, raises, feed):
    with raises("InvalidArgument"):
        session.run(None, feed)
    assert len(session.run(None, {"x": X})) == 2  # the session stays usable


def test_an_unknown_output_is_an_invalid_argument(session, raises):
    with raises("InvalidArgument"):
        session.run(["q"], {"x": X})


def test_a_missing_input_is_a_value_error(session):
    with pytest.raises(ValueError, match=r"Required inputs \(\['x'\]\) are missing from input "
                                         r"feed \(\['w'\]\)"):
        session.run(None, {"w": X[0]})


@pytest.mark.parametrize("call", [
    lambda s: s.run("y", {"x": X}), lambda s: s.run(None, {"x": X}, 3)], ids=["names", "options"])
def test_wrong_arguments_are_type_errors(session, call):
    with pytest.raises(TypeError):
        call(session)


def test_a_node_that_cannot_compute_fails(library, raises):
    made = model([node("Reshape", ["x", "s"], ["y"], name="r")],
                 [info("x", T.FLOAT, ["n"]), info("s", T.INT64, [2])], [info("y", T.FLOAT, None)])
    session = library.InferenceSession(made)
    with raises("Fail"):
        session.run(None, {"x": np.zeros(5, np.float32), "s": np.int64([2, 3])})


def test_strings_come_as_objects(library):
    session = library.InferenceSession(DESCRIBED["type STRING"])
    for given in (np.array(["a", "ü"]), np.array(["a", "ü"], object), ["a", "ü"]):
        got = session.run(None, {"x": given})[0]
        assert got.dtype == object and got.tolist() == ["a", "ü"]


def test_sequences_come_as_lists(library):
    session = library.InferenceSession(DESCRIBED["sequence"])
    got, = session.run(None, {"x": np.float32([1, 2])})
    assert isinstance(got, list) and [x.tolist() for x in got] == [[1], [2]]


@pytest.mark.parametrize("feed, present", [
    ({}, False), ({"x": None}, False), ({"x": np.zeros(2, np.float32)}, True)])
def test_an_optional_input_may_be_absent(library, feed, present):
    session = library.InferenceSession(DESCRIBED["optional"])
    assert session.run(None, feed)[0] == present


def test_ml_dtypes_go_in_and_out_although_onnxruntime_cannot():
    bfloat16 = helper.tensor_dtype_to_np_dtype(T.BFLOAT16)
    session = rlx.ort.InferenceSession(DESCRIBED["type BFLOAT16"])
    got, = session.run(None, {"x": np.ones(3, bfloat16)})
    assert got.dtype == bfloat16


def test_async_calls_back(library):
    options = library.SessionOptions()
    options.intra_op_num_threads = 2
    session = library.InferenceSession(sums(), options)
    called = []
    for given in (X, X.astype(np.float64)):
        done = threading.Event()
        session.run_async(["y"], {"x": given},
                          lambda *got: (called.append(got), done.set()), "mine")
        assert done.wait(30)
    (values, mine, error), (nothing, also_mine, complaint) = called
    np.testing.assert_array_equal(values[0], Y)
    assert (mine, error, nothing, also_mine) == ("mine", "", [], "mine") and complaint
    with pytest.raises(ValueError, match="Required inputs"):
        session.run_async(["y"], {}, print, None)
