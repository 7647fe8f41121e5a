"""A growing past: appended to in place, planned once for a capacity, never a detour by Python."""

import numpy as np
import onnx
import pytest

from models import llama
import rlx
from tests.api.toys import F, arange, model, node, value
from tests.emu.case import emulated
from tests.tolerance import tolerance

NARROW = llama.NARROW
PAIRS = {f"past_key_values.{i}.{part}": f"present.{i}.{part}"
         for i in range(NARROW["layers"]) for part in ("key", "value")}


def grower():
    """total = past ++ x along axis 1; y = its sum."""
    return model([node("Concat", "past x", "total", axis=1),
                  node("ReduceSum", "total", "y", keepdims=0)],
                 [value("past", F, [2, "p", 3]), value("x", F, [2, "s", 3])],
                 [value("total"), value("y")])


def test_a_state_grows_from_nothing():
    with rlx.load(grower()) as session:
        state = session.state({"past": "total"}, axis=1, capacity=8)
        chunks = [arange(2, n, 3) + n for n in (1, 2, 1, 5, 3)]
        for k, chunk in enumerate(chunks):
            found = session.run({"x": chunk}, state=state)
            assert found.keys() == {"y"}
            whole = np.concatenate(chunks[:k + 1], axis=1)
            np.testing.assert_array_equal(state.value("past"), whole)
            assert found["y"] == whole.sum()
        state.clear()
        assert session.run({"x": chunks[0]}, state=state)["y"] == chunks[0].sum()


def test_a_given_past_replaces_what_is_held():
    with rlx.load(grower()) as session:
        state = session.state({"past": "total"}, axis=1)
        session.run({"x": arange(2, 4, 3)}, state=state)
        past = arange(2, 2, 3) * 7
        y = session.run({"past": past, "x": arange(2, 1, 3)}, state=state)["y"]
        assert y == past.sum() + arange(2, 1, 3).sum()


@pytest.mark.parametrize("device", ["cpu", "emu:card"])
def test_a_run_that_fails_leaves_a_state_as_it_was(device):
    """A GPU tells of a wrong index when it is waited for, which no output asks for here."""
    made = model([node("Gather", "table at", "x"), node("Concat", "past x", "total", axis=1)],
                 [value("past", F, [2, "p", 3]), value("table", F, ["r", 2, 1, 3]),
                  value("at", onnx.TensorProto.INT64, [])], [value("total")])
    if device != "cpu":
        emulated(device)
    table = arange(4, 2, 1, 3)
    with rlx.load(made, device=device) as session:
        state = session.state({"past": "total"}, axis=1, capacity=8)
        session.run({"table": table, "at": np.int64(3)}, state=state)
        for _ in range(3):
            with pytest.raises(rlx.InputError, match="index"):
                session.run({"table": table, "at": np.int64(4)}, state=state)
            np.testing.assert_array_equal(state.value("past"), table[3])
        session.run({"table": table, "at": np.int64(1)}, state=state)
        np.testing.assert_array_equal(state.value("past"), np.concatenate(table[[3, 1]], axis=1))


def test_wrong_states():
    with rlx.load(grower()) as session, rlx.load(grower()) as other:
        for pairs in ({"nowhere": "total"}, {"past": "nowhere"}, {}):
            with pytest.raises(rlx.InputError):
                session.state(pairs, axis=1)
        with pytest.raises(rlx.InputError):
            session.state({"past": "total"}, axis=5)
        with pytest.raises(rlx.InputError):
            session.run({"x": arange(2, 1, 3)}, state=other.state({"past": "total"}, axis=1))
        state = session.state({"past": "total"}, axis=1)
        with pytest.raises(rlx.InputError, match="'x'"):
            session.run({"x": arange(2, 1, 4)}, state=state)
        with pytest.raises(rlx.InputError, match="with a state"):
            session.run({"x": arange(2, 1, 3)}, state=state, outputs="device")
        assert session.run({"x": arange(2, 1, 3)}, state=state)["y"] == arange(2, 1, 3).sum()


@pytest.mark.parametrize("other, got", [
    (node("Cast", "total", "other", to=onnx.TensorProto.FLOAT16), "float16"),
    (node("Flatten", "total", "other"), "float32[2, "),
    (node("Concat", "total total", "other", axis=2), ", 6]"),
    (node("SplitToSequence", "total", "other"), "seq"),
])
def test_an_output_that_does_not_fit_its_input_is_named(other, got):
    made = grower()
    made.graph.node.append(other)
    made.graph.output.append(value("other"))
    with rlx.load(made) as session:
        with pytest.raises(rlx.InputError, match="'other' cannot continue input 'past'") as caught:
            session.state({"past": "other"}, axis=1)
        assert "float32[2, " in caught.value.expected
        assert got.lower() in caught.value.got.lower()


@pytest.mark.parametrize("wrong", [
    {"capacity": "a"}, {"capacity": 2.5}, {"capacity": 0}, {"capacity": 2**70}, {"axis": "x"},
    {"axis": None}, {"axis": -4}, {"axis": -3}, {"pairs": ["past"]}, {"pairs": None}])
def test_wrong_arguments_of_a_state(wrong):
    with rlx.load(grower()) as session, pytest.raises(rlx.InputError):
        session.state(**{"pairs": {"past": "total"}, "axis": 1} | wrong)


def test_an_axis_may_be_counted_from_the_last():
    with rlx.load(grower()) as session:
        state = session.state({"past": "total"}, axis=-2)
        for n in (1, 2):
            session.run({"x": arange(2, n, 3)}, state=state)
        assert state.value("past").shape == (2, 3, 3)


def test_two_inputs_cannot_have_one_output():
    doubled = model([node("Concat", "a b x", "total", axis=1)],
                    [value(name, F, [2, name, 3]) for name in "abx"], [value("total")])
    with rlx.load(doubled) as session:
        with pytest.raises(rlx.InputError, match="'total' cannot continue two") as caught:
            session.state({"a": "total", "b": "total"}, axis=1)
        assert caught.value.got == "'a' and 'b'"


def test_decoding_64_tokens():
    """64 tokens one by one: two plans (prompt and token), no import, no copy of the past."""
    given = llama.inputs(batch=1, length=5, past=0, **NARROW)
    ids = np.random.default_rng(1).integers(0, NARROW["vocabulary"], (1, 64))
    with rlx.load(llama.build(**NARROW)) as session:
        state = session.state(PAIRS, axis=2, capacity=128)
        plain = {name: given[name] for name in PAIRS}
        for step in range(65):
            feeds = {"input_ids": ids[:, step - 1:step],
                     "attention_mask": np.ones((1, 5 + step), np.int64),
                     "position_ids": np.array([[4 + step]])}
            if step == 0:
                feeds = {name: given[name] for name in feeds}
            found = session.run(feeds, state=state)
            assert found.keys() == {"logits"}
            if step in (0, 1, 2, 33, 64):
                expected = session.run({**feeds, **plain})
                np.testing.assert_allclose(found["logits"], expected["logits"],
                                           **tolerance("rounded", "float32"))
                for name, present in PAIRS.items():
                    np.testing.assert_array_equal(state.value(name), expected[present])
            plain = {name: state.value(name) for name in PAIRS}
        counted = state.counters()
    assert counted["runs"] == 65
    assert counted["plans"] == 2, "a token within the capacity made a plan"
    assert counted["host_calls"] == 0
    assert counted["state_growths"] <= 2 * len(PAIRS), "the past was copied"
