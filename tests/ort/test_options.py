"""SessionOptions, RunOptions and the module's settings are onnxruntime's, and do what they say."""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T, helper
import onnxruntime
import pytest

import rlx.ort
from tests.ort.material import info, model, node, sums

X = np.ones((2, 3), np.float32)
ENUMS = ("GraphOptimizationLevel", "ExecutionMode", "ExecutionOrder")


def fields(options):
    return {name: getattr(options, name) for name in dir(options)
            if not name.startswith("_") and not callable(getattr(options, name))}


@pytest.mark.parametrize("name", ["SessionOptions", "RunOptions"])
def test_fields_and_defaults_are_the_same(name):
    ours, theirs = (fields(getattr(library, name)()) for library in (rlx.ort, onnxruntime))
    assert ours.keys() == theirs.keys()
    for field, value in theirs.items():
        assert type(ours[field]).__name__ == type(value).__name__
        assert ours[field] == (value if isinstance(value, (bool, str)) else int(value)), field


@pytest.mark.parametrize("name", ENUMS)
def test_enumerations_are_the_same(name):
    ours, theirs = (getattr(library, name) for library in (rlx.ort, onnxruntime))
    assert [(k, int(v), str(v), repr(v), v.name) for k, v in ours.__members__.items()] \
        == [(k, int(v), str(v), repr(v), v.name) for k, v in theirs.__members__.items()]


@pytest.mark.parametrize("name", ["SessionOptions", "RunOptions"])
def test_unknown_fields_and_wrong_types_are_refused(library, name):
    options = getattr(library, name)()
    with pytest.raises(AttributeError):
        options.no_such_field = 1
    with pytest.raises(TypeError):
        options.log_severity_level = "high"
    if name == "SessionOptions":
        with pytest.raises(TypeError):
            options.graph_optimization_level = 99


@pytest.mark.parametrize("name, kind", [("SessionOptions", "session"), ("RunOptions", "run")])
def test_entries_are_kept(library, name, kind):
    options = getattr(library, name)()
    add = getattr(options, f"add_{kind}_config_entry")
    get = getattr(options, f"get_{kind}_config_entry")
    add("key", "value")
    assert get("key") == "value"
    for wrong, error in ((lambda: get("other"), RuntimeError), (lambda: add("", "x"), RuntimeError),
                         (lambda: add("key", 1), TypeError)):
        with pytest.raises(error):
            wrong()


def test_a_free_dim_is_fixed_by_name(library, raises):
    options = library.SessionOptions()
    options.add_free_dimension_override_by_name("batch", 4)
    session = library.InferenceSession(sums(), options)
    assert [a.shape for a in session.get_inputs() + session.get_outputs()] == [[4, 3]] * 3
    assert session.run(["y"], {"x": np.ones((4, 3), np.float32)})[0].shape == (4, 3)
    with raises("InvalidArgument"):
        session.run(None, {"x": X})


def test_a_free_dim_is_fixed_by_denotation(library):
    made = onnx.load_from_string(sums())
    made.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    options = library.SessionOptions()
    options.add_free_dimension_override_by_denotation("DATA_BATCH", 5)
    session = library.InferenceSession(made.SerializeToString(), options)
    assert session.get_inputs()[0].shape == [5, 3]


def test_an_initializer_is_replaced():
    made = model([node("Add", ["x", "w"], ["y"])], [info("x", T.FLOAT, ["n", 3])],
                 [info("y", T.FLOAT, None)], [helper.make_tensor("w", T.FLOAT, [3], [1, 2, 3])])
    for add in ("add_initializer", "add_external_initializers"):
        options = rlx.ort.SessionOptions()
        value = rlx.ort.OrtValue.ortvalue_from_numpy(np.float32([5, 5, 5]))
        getattr(options, add)(*(("w", value) if add == "add_initializer" else (["w"], [value])))
        got, = rlx.ort.InferenceSession(made, options).run(None, {"x": X})
        np.testing.assert_array_equal(got, X + 5)
    options.add_initializer("q", value)
    with pytest.raises(rlx.ort.capi.onnxruntime_pybind11_state.Fail, match="'q'"):
        rlx.ort.InferenceSession(made, options)


def test_threads_and_passes_reach_the_session():
    options = rlx.ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = rlx.ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    used = rlx.ort.InferenceSession(sums(), options)._session.options
    assert used.threads == 1 and "regions" in used.disable and "fold" in used.disable
    options.graph_optimization_level = rlx.ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    basic = rlx.ort.InferenceSession(sums(), options)._session.options.disable
    assert "attention" in basic and "fold" not in basic
    options.graph_optimization_level = rlx.ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    assert rlx.ort.InferenceSession(sums(), options)._session.options.disable == ()


def test_threads_of_the_process_count_without_own_threads(monkeypatch):
    monkeypatch.setitem(rlx.ort.settings._global, "threads", 0)
    rlx.ort.set_global_thread_pool_sizes(1, 1)
    options = rlx.ort.SessionOptions()
    assert rlx.ort.InferenceSession(sums(), options)._session.options.threads == 0
    options.use_per_session_threads = False
    assert rlx.ort.InferenceSession(sums(), options)._session.options.threads == 1


def test_options_are_copied_into_the_session(library):
    options = library.SessionOptions()
    options.logid = "mine"
    session = library.InferenceSession(sums(), options)
    assert session.get_session_options().logid == "mine"
    assert session.get_session_options() is not options


def test_a_run_that_is_to_terminate_fails(library, raises):
    options = library.RunOptions()
    options.terminate = True
    session = library.InferenceSession(sums())
    with raises("Fail"):
        session.run(None, {"x": X}, options)
    options.terminate = False
    assert len(session.run(None, {"x": X}, options)) == 2


def test_profiling_writes_a_trace(library, tmp_path):
    options = library.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "prof")
    session = library.InferenceSession(sums(), options)
    session.run(None, {"x": X})
    path = session.end_profiling()
    events = json.loads(Path(path).read_text())
    assert path.startswith(str(tmp_path / "prof")) and session.get_profiling_start_time_ns() > 0
    assert {"session_initialization", "model_run"} <= {event["name"] for event in events}
    assert all({"cat", "pid", "tid", "dur", "ts", "ph", "name", "args"} <= e.keys() for e in events)
    nodes = [event for event in events if event["cat"] == "Node"]
    assert nodes and all(
        e["name"].endswith("_kernel_time") and e["args"]["op_name"] in ("Add", "Mul")
        and e["args"]["provider"] == "CPUExecutionProvider" for e in nodes)
    quiet = library.InferenceSession(sums())
    assert quiet.end_profiling() == "" and quiet.get_profiling_start_time_ns() == 0


def test_the_optimized_model_can_be_loaded(library, tmp_path):
    options = library.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    library.InferenceSession(sums(), options)
    again = library.InferenceSession(options.optimized_model_filepath)
    assert len(again.run(None, {"x": X})) == 2


def test_libraries_of_custom_operators_are_refused(library):
    options = library.SessionOptions()
    refused = {onnxruntime: "Fail", rlx.ort: "NotImplemented"}[library]
    with pytest.raises(getattr(library.capi.onnxruntime_pybind11_state, refused)):
        options.register_custom_ops_library("/no/such/library.so")


def test_set_seed_repeats_random_numbers(monkeypatch):
    monkeypatch.setitem(rlx.ort.settings._global, "seed", None)
    made = model([node("RandomNormal", [], ["a"], shape=[8]),
                  node("RandomNormal", [], ["b"], shape=[8])], [],
                 [info("a", T.FLOAT, [8]), info("b", T.FLOAT, [8])])
    rlx.ort.set_seed(7)
    (a, b), (c, d) = (rlx.ort.InferenceSession(made).run(None, {}) for _ in range(2))
    np.testing.assert_array_equal(np.stack([a, b]), np.stack([c, d]))
    assert (a != b).any()
    rlx.ort.set_seed(8)
    assert (rlx.ort.InferenceSession(made).run(None, {})[0] != a).any()


def test_settings_of_the_process(library):
    for severity in range(5):
        library.set_default_logger_severity(severity)
    with pytest.raises(RuntimeError):
        library.set_default_logger_severity(9)
    library.set_default_logger_severity(4)
    library.set_default_logger_verbosity(0)
    library.disable_telemetry_events()
    library.enable_telemetry_events()
    assert library.get_device() == "CPU" and library.get_version_string() == library.__version__
    assert tuple(map(int, library.__version__.split("."))) >= (1, 20, 0)
    assert isinstance(library.get_build_info(), str)
