"""Loops, Scans and Ifs whose values stay on the device give what the host's give."""

import numpy as np
from onnx import TensorProto as T, helper as h
import pytest

import rlx
from tests.emu.loops import DEVICES, X, body, nodes, session, value


@DEVICES
def test_a_condition_ends_the_loop_early(device, mode):
    """h doubles until its sum is above a limit; an iteration's slice is what it began with."""
    inner = body(nodes(("Add", "h h", "h2"), ("ReduceSum", "h2", "sum", {"keepdims": 0}),
                       ("Less", "sum limit", "go2"), ("Identity", "h", "slice")),
                 [value("h", T.FLOAT, 2, 3)],
                 [value("go2", T.BOOL), value("h2", T.FLOAT, 2, 3), value("slice", T.FLOAT, 2, 3)])
    s = session(device, mode, [h.make_node("Loop", ["", "", "x"], ["y", "all"], body=inner)],
                [value("x", T.FLOAT, 2, 3), value("limit", T.FLOAT)],
                [value("y", T.FLOAT, 2, 3), value("all", T.FLOAT, "k", 2, 3)])
    for limit in (100, 1, 40, 100, 100):
        want, slices = X.copy(), []
        while True:
            slices.append(want)
            want = want + want
            if want.sum() >= limit:
                break
        got = s.run({"x": X, "limit": np.float32(limit)})
        assert np.array_equal(got["y"], want)
        assert np.array_equal(got["all"], np.stack(slices))


@DEVICES
@pytest.mark.parametrize("first", [0, 12])
def test_trips_may_be_none_and_change(device, mode, first):
    inner = body(nodes(("Identity", "go", "go2"), ("Mul", "h k", "h2"),
                       ("Cast", "i", "f", {"to": T.FLOAT}), ("Add", "h f", "slice"),
                       ("Identity", "k", "k2")),
                 [value("h", T.FLOAT, 2, 3), value("k", T.FLOAT, 3)],
                 [value("go2", T.BOOL), value("h2", T.FLOAT, 2, 3), value("k2", T.FLOAT, 3),
                  value("slice", T.FLOAT, 2, 3)])
    s = session(device, mode,
                [h.make_node("Loop", ["n", "", "x", "k"], ["y", "same", "all"], body=inner)],
                [value("n", T.INT64), value("x", T.FLOAT, 2, 3), value("k", T.FLOAT, 3)],
                [value("y", T.FLOAT, 2, 3), value("same", T.FLOAT, 3),
                 value("all", T.FLOAT, "t", 2, 3)])
    k = np.array([1, -1, 0.5], np.float32)
    for trips in (first, 3, 0, 12, 12, 1):
        got = s.run({"n": np.int64(trips), "x": X, "k": k})
        steps = [X * k ** t for t in range(trips + 1)]
        assert np.array_equal(got["y"], steps[-1]) and np.array_equal(got["same"], k)
        assert got["all"].shape == (trips, 2, 3)
        for t in range(trips):
            assert np.array_equal(got["all"][t], steps[t] + np.float32(t))


@DEVICES
def test_a_carried_shape_grows_and_its_length_is_a_number_of_the_body(device, mode):
    inner = body(nodes(("Identity", "go", "go2"), ("Neg", "h", "minus"),
                       ("Concat", "h minus", "longer", {"axis": 0}),
                       ("Slice", "longer at end axis", "cut"),
                       ("Concat", "h cut", "h2", {"axis": 0}), ("Add", "at one", "at2")),
                 [value("h", T.FLOAT, "r", 3), value("at", T.INT64, 1)],
                 [value("go2", T.BOOL), value("h2", T.FLOAT, "q", 3), value("at2", T.INT64, 1)])
    s = session(device, mode,
                [h.make_node("Loop", ["n", "", "x", "at"], ["y", "last"], body=inner)],
                [value("n", T.INT64), value("x", T.FLOAT, 2, 3), value("at", T.INT64, 1)],
                [value("y", T.FLOAT, "r", 3), value("last", T.INT64, 1)],
                {"end": np.array([6]), "axis": np.array([0]), "one": np.array([1])})
    for trips in (4, 4, 9):
        want, at = X, 1
        for _ in range(trips):
            want = np.concatenate([want, np.concatenate([want, -want])[at:6]])
            at += 1
        got = s.run({"n": np.int64(trips), "x": X, "at": np.array([1])})
        assert np.array_equal(got["y"], want) and got["last"].tolist() == [at]


@DEVICES
def test_a_loop_with_an_if_in_a_loop(device, mode):
    """Both branches, one of which only hands on; the inner loop captures from both outer levels."""
    yes = h.make_graph(nodes(("Add", "g outer", "t")), "yes", [], [value("t", T.FLOAT, 2, 3)])
    no = h.make_graph(nodes(("Identity", "g", "e")), "no", [], [value("e", T.FLOAT, 2, 3)])
    inner = body([*nodes(("Identity", "go_in", "go_in2"),
                         ("ReduceSum", "g", "sum", {"keepdims": 0}),
                         ("Less", "sum limit", "small")),
                  h.make_node("If", ["small"], ["picked"], then_branch=yes, else_branch=no),
                  *nodes(("Mul", "picked half", "g2"))],
                 [value("g", T.FLOAT, 2, 3)],
                 [value("go_in2", T.BOOL), value("g2", T.FLOAT, 2, 3),
                  value("picked", T.FLOAT, 2, 3)],
                 ("j", "go_in"))
    outer = body([h.make_node("Identity", ["go"], ["go2"]),
                  h.make_node("Loop", ["m", "", "outer"], ["g_end", "g_all"], body=inner),
                  *nodes(("ReduceMax", "g_all", "slice", {"keepdims": 0}),
                         ("Add", "g_end x", "next"))],
                 [value("outer", T.FLOAT, 2, 3)],
                 [value("go2", T.BOOL), value("next", T.FLOAT, 2, 3), value("slice", T.FLOAT)])
    s = session(device, mode, [h.make_node("Loop", ["n", "", "x"], ["y", "tops"], body=outer)],
                [value("n", T.INT64), value("m", T.INT64), value("x", T.FLOAT, 2, 3),
                 value("limit", T.FLOAT)],
                [value("y", T.FLOAT, 2, 3), value("tops", T.FLOAT, "k")],
                {"half": np.float32(0.5)})
    for n, m, limit in ((9, 10, 8.0), (9, 10, 8.0), (10, 9, 3.0)):
        state, tops = X, []
        for _ in range(n):
            g, picked = state, []
            for _ in range(m):
                picked.append(g + state if g.sum() < limit else g)
                g = picked[-1] * np.float32(0.5)
            tops.append(np.stack(picked).max())
            state = g + X
        got = s.run({"n": np.int64(n), "m": np.int64(m), "x": X, "limit": np.float32(limit)})
        np.testing.assert_array_equal(got["y"], state)
        np.testing.assert_array_equal(got["tops"], np.array(tops))


@DEVICES
def test_strings_are_handed_on_by_the_host(device, mode):
    inner = body(nodes(("Identity", "go", "go2"), ("StringConcat", "s mark", "s2"),
                       ("Neg", "h", "h2"), ("Identity", "s2", "slice")),
                 [value("s", T.STRING, 2), value("h", T.FLOAT, 2, 3)],
                 [value("go2", T.BOOL), value("s2", T.STRING, 2), value("h2", T.FLOAT, 2, 3),
                  value("slice", T.STRING, 2)])
    s = session(device, mode,
                [h.make_node("Loop", ["n", "", "s", "x"], ["t", "y", "all"], body=inner)],
                [value("n", T.INT64), value("s", T.STRING, 2), value("x", T.FLOAT, 2, 3),
                 value("mark", T.STRING, 1)],
                [value("t", T.STRING, 2), value("y", T.FLOAT, 2, 3),
                 value("all", T.STRING, "k", 2)])
    words = np.array(["a", "bc"], object)
    for n in (9, 10, 0):
        got = s.run({"n": np.int64(n), "s": words, "x": X, "mark": np.array(["!"], object)})
        assert got["t"].tolist() == ["a" + "!" * n, "bc" + "!" * n]
        assert np.array_equal(got["y"], X * (-1) ** n)
        assert got["all"].tolist() == [["a" + "!" * t, "bc" + "!" * t] for t in range(1, n + 1)]


@DEVICES
def test_a_scan_keeps_its_state_and_captures(device, mode):
    inner = h.make_graph(nodes(("Mul", "s k", "p"), ("Add", "p row", "s2"), ("Neg", "s2", "out")),
                         "body", [value("s", T.FLOAT, 3), value("row", T.FLOAT, 3)],
                         [value("s2", T.FLOAT, 3), value("out", T.FLOAT, 3)])
    s = session(device, mode, [h.make_node("Scan", ["s", "x"], ["end", "all"], body=inner,
                                           num_scan_inputs=1)],
                [value("s", T.FLOAT, 3), value("x", T.FLOAT, "n", 3), value("k", T.FLOAT, 3)],
                [value("end", T.FLOAT, 3), value("all", T.FLOAT, "n", 3)])
    k = np.array([2, -1, 0.5], np.float32)
    for n in (12, 0, 12):
        rows = np.arange(3 * n, dtype=np.float32).reshape(n, 3)
        state, out = np.ones(3, np.float32), np.zeros((n, 3), np.float32)
        for t in range(n):
            state = state * k + rows[t]
            out[t] = -state
        got = s.run({"s": np.ones(3, np.float32), "x": rows, "k": k})
        assert np.array_equal(got["end"], state) and np.array_equal(got["all"], out)


@DEVICES
def test_values_that_change_places(device, mode):
    """a, b = b, a + b: what a body hands on is another one's input, in the same iteration."""
    inner = body(nodes(("Identity", "go", "go2"), ("Identity", "b", "a2"), ("Add", "a b", "b2")),
                 [value("a", T.FLOAT, 2, 3), value("b", T.FLOAT, 2, 3)],
                 [value("go2", T.BOOL), value("a2", T.FLOAT, 2, 3), value("b2", T.FLOAT, 2, 3)])
    s = session(device, mode,
                [h.make_node("Loop", ["n", "", "x", "z"], ["p", "q"], body=inner)],
                [value("n", T.INT64), value("x", T.FLOAT, 2, 3), value("z", T.FLOAT, 2, 3)],
                [value("p", T.FLOAT, 2, 3), value("q", T.FLOAT, 2, 3)])
    for n in (0, 1, 9, 10, 9):
        a, b = X, -2 * X
        for _ in range(n):
            a, b = b, a + b
        got = s.run({"n": np.int64(n), "x": X, "z": -2 * X})
        assert np.array_equal(got["p"], a) and np.array_equal(got["q"], b)


@DEVICES
def test_a_wrong_index_in_an_iteration_ends_the_run_and_no_more(device, mode):
    inner = body(nodes(("Identity", "go", "go2"), ("Gather", "x at", "row"), ("Add", "h row", "h2"),
                       ("Add", "at one", "at2"), ("Identity", "row", "slice")),
                 [value("h", T.FLOAT, 3), value("at", T.INT64)],
                 [value("go2", T.BOOL), value("h2", T.FLOAT, 3), value("at2", T.INT64),
                  value("slice", T.FLOAT, 3)])
    s = session(device, mode,
                [h.make_node("Loop", ["n", "", "h", "at"], ["y", "", "all"], body=inner)],
                [value("n", T.INT64), value("x", T.FLOAT, "r", 3), value("h", T.FLOAT, 3),
                 value("at", T.INT64)],
                [value("y", T.FLOAT, 3), value("all", T.FLOAT, "n", 3)], {"one": np.array(1)})
    x, zero = np.arange(24, dtype=np.float32).reshape(8, 3), np.zeros(3, np.float32)
    for n, at in ((6, 2), (9, 0), (6, 2), (3, 6), (8, 0)):
        given = {"n": np.int64(n), "x": x, "h": zero, "at": np.int64(at)}
        if at + n > 8:
            with pytest.raises(rlx.InputError, match="index"):
                s.run(given)
            continue
        got, rows = s.run(given), x[at:at + n]
        assert np.array_equal(got["y"], rows.sum(0)) and np.array_equal(got["all"], rows)


@DEVICES
def test_results_go_into_the_callers_arrays(device, mode):
    inner = body(nodes(("Identity", "go", "go2"), ("Neg", "h", "h2"), ("Identity", "h2", "slice")),
                 [value("h", T.FLOAT, 2, 3)],
                 [value("go2", T.BOOL), value("h2", T.FLOAT, 2, 3), value("slice", T.FLOAT, 2, 3)])
    s = session(device, mode, [h.make_node("Loop", ["n", "", "x"], ["y", "all"], body=inner)],
                [value("n", T.INT64), value("x", T.FLOAT, 2, 3)],
                [value("y", T.FLOAT, 2, 3), value("all", T.FLOAT, "n", 2, 3)])
    for n in (5, 5, 4, 5):
        out = {"y": np.zeros((2, 3), np.float32), "all": np.zeros((n, 2, 3), np.float32)}
        got = s.run({"n": np.int64(n), "x": X}, out=out)
        assert got["y"] is out["y"] and got["all"] is out["all"]
        assert np.array_equal(out["y"], X * (-1) ** n)
        assert np.array_equal(out["all"], np.stack([X * (-1) ** (t + 1) for t in range(n)]))


@DEVICES
def test_sequences_grow_in_a_loop_beside_tensors(device, mode):
    kind = h.make_tensor_sequence_value_info("seq", T.FLOAT, [2, 3])
    grown = h.make_tensor_sequence_value_info("seq2", T.FLOAT, [2, 3])
    inner = body(nodes(("Identity", "go", "go2"), ("Add", "h x", "h2"),
                       ("SequenceInsert", "seq h2", "seq2")),
                 [value("h", T.FLOAT, 2, 3), kind], [value("go2", T.BOOL),
                                                     value("h2", T.FLOAT, 2, 3), grown])
    s = session(device, mode,
                [h.make_node("SequenceConstruct", ["x"], ["begin"]),
                 h.make_node("Loop", ["n", "", "x", "begin"], ["y", "rows"], body=inner),
                 h.make_node("ConcatFromSequence", ["rows"], ["all"], axis=0)],
                [value("n", T.INT64), value("x", T.FLOAT, 2, 3)],
                [value("y", T.FLOAT, 2, 3), value("all", T.FLOAT, "k", 3)])
    for n in (4, 0, 9):
        got = s.run({"n": np.int64(n), "x": X})
        assert np.array_equal(got["y"], X * (n + 1))
        assert np.array_equal(got["all"], np.concatenate([X * (t + 1) for t in range(n + 1)]))


@DEVICES
@pytest.mark.parametrize("taken", [True, False])
def test_what_a_branch_or_a_loop_gives_may_be_numbers_for_the_host(device, mode, taken):
    """Shapes, ends of slices and trip counts that another stage has computed on the device."""
    yes = h.make_graph(nodes(("Add", "n one", "t"), ("Neg", "x", "tx")), "yes", [],
                       [value("t", T.INT64, 1), value("tx", T.FLOAT, 2, 3)])
    no = h.make_graph(nodes(("Mul", "n two", "e"), ("Identity", "x", "ex")), "no", [],
                      [value("e", T.INT64, 1), value("ex", T.FLOAT, 2, 3)])
    inner = body(nodes(("Identity", "go", "go2"), ("Add", "k one", "k2")),
                 [value("k", T.INT64, 1)], [value("go2", T.BOOL), value("k2", T.INT64, 1)])
    last = body(nodes(("Identity", "go", "go2"), ("Add", "h px", "h2")),
                [value("h", T.FLOAT, 2, 3)], [value("go2", T.BOOL), value("h2", T.FLOAT, 2, 3)])
    s = session(device, mode,
                [h.make_node("If", ["which"], ["p", "px"], then_branch=yes, else_branch=no),
                 h.make_node("Loop", ["p", "", "one"], ["trips"], body=inner),
                 *nodes(("Concat", "trips p", "shape", {"axis": 0}),
                        ("ReduceMax", "px", "top", {"keepdims": 0}),
                        ("Expand", "top shape", "wide")),
                 h.make_node("Loop", ["trips", "", "x"], ["y"], body=last)],
                [value("which", T.BOOL), value("n", T.INT64, 1), value("x", T.FLOAT, 2, 3)],
                [value("wide", T.FLOAT, "a", "b"), value("y", T.FLOAT, 2, 3),
                 value("trips", T.INT64, 1)],
                {"one": np.array([1]), "two": np.array([2])})
    for n in (1, 3, 5, 3):
        p = n + 1 if taken else 2 * n
        px = -X if taken else X
        got = s.run({"which": np.array(taken), "n": np.array([n]), "x": X})
        assert got["trips"].tolist() == [p + 1]
        assert np.array_equal(got["wide"], np.full((p + 1, p), px.max()))
        assert np.array_equal(got["y"], X + (p + 1) * px)


@DEVICES
def test_values_of_either_side_in_turns_allocate_nothing_again(device, mode):
    """One branch computes, the other hands on what the host gave: each side keeps its memory."""
    yes = h.make_graph(nodes(("Add", "g one", "a")), "yes", [], [value("a", T.FLOAT, 2, 3)])
    no = h.make_graph(nodes(("Identity", "x", "b")), "no", [], [value("b", T.FLOAT, 2, 3)])
    inner = body([*nodes(("Mod", "i three", "odd"), ("Cast", "odd", "c", {"to": T.BOOL})),
                  h.make_node("If", ["c"], ["g2"], then_branch=yes, else_branch=no),
                  h.make_node("Identity", ["go"], ["go2"])],
                 [value("g", T.FLOAT, 2, 3)], [value("go2", T.BOOL), value("g2", T.FLOAT, 2, 3)])
    s = session(device, mode,
                [h.make_node("Loop", ["n", "", "x"], ["y"], body=inner),
                 h.make_node("If", ["p"], ["z"], then_branch=h.make_graph(
                     nodes(("Neg", "x", "m")), "neg", [], [value("m", T.FLOAT, 2, 3)]),
                             else_branch=no),
                 h.make_node("Add", ["y", "z"], ["sum"])],
                [value("n", T.INT64), value("p", T.BOOL), value("x", T.FLOAT, 2, 3)],
                [value("sum", T.FLOAT, 2, 3)], {"one": np.float32(1), "three": np.array(3)})
    counted = []
    for k in range(24):  # six forms: each is walked, recorded, replayed
        p, n = k % 2 == 0, 20 + k % 3
        got = s.run({"n": np.int64(n), "p": np.array(p), "x": X})
        assert np.array_equal(got["sum"], X + (n - 1) % 3 + (-X if p else X))
        counters = getattr(s, "session", s).counters()
        counted.append((counters["dynamic_allocations"], counters["recordings"]))
    assert len(set(counted[12:])) == 1, counted
