"""Loops, Scans and Ifs whose values stay on the device give what the host's give."""

import numpy as np
from onnx import TensorProto as T, helper as h, numpy_helper
import pytest

import rlx

DEVICES = pytest.mark.parametrize("device, mode", [
    ("cpu", "graph"), ("emu", "graph"), ("emu", "stream")])


def value(name, type, *dims):
    return h.make_tensor_value_info(name, type, dims)


def nodes(*rows):
    return [h.make_node(op, ins.split(), outs.split(), **dict(*more))
            for op, ins, outs, *more in rows]


def session(device, mode, all_nodes, inputs, outputs, constants=()):
    held = [numpy_helper.from_array(np.asarray(a), name) for name, a in dict(constants).items()]
    graph = h.make_graph(all_nodes, "g", inputs, outputs, held)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9)
    return rlx.load(model, device=device, **{"mode": mode} if device != "cpu" else {})


def body(rows, inputs, outputs, given=("i", "go")):
    first = [value(given[0], T.INT64), value(given[1], T.BOOL)]
    return h.make_graph(rows, "body", [*first, *inputs], outputs)


X = np.array([[1, -2, 3], [0.5, 4, -1]], np.float32)


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
