"""Session.profile: its times add up, and name the nodes of the model."""

import json

import numpy as np
import pytest

import models
import rlx
from tests.api.toys import F, add, arange, model, node, value

SIZE = 1024
WEIGHT = np.random.default_rng(0).standard_normal((SIZE, SIZE), np.float32)


def chain(**rest):
    """A large product beside small steps."""
    return model([node("MatMul", "x w", "a"), node("Softmax", "a", "b"), node("Relu", "b", "y")],
                 [value("x", F, ["n", SIZE])], [value("y")], {"w": WEIGHT}, **rest)


@pytest.fixture(scope="module")
def profile():
    with rlx.load(chain()) as session:
        return session.profile(arange(256, SIZE), runs=5)


@pytest.fixture(scope="module")
def looped():
    """A builder's network whose Loops take 11 iterations."""
    builder = models.BUILDERS["tagger"]
    with rlx.load(builder.build(0, np.dtype(np.float32), **builder.NARROW)) as session:
        return session.profile(builder.inputs(2, 12, **builder.NARROW), runs=3)


def test_times_add_up(profile):
    assert len(profile.runs) == 5 and (profile.runs > 0).all()
    steps = np.sum([s.seconds for s in profile.steps], axis=0)
    assert (0 < steps).all() and (steps <= profile.runs).all()
    assert profile.in_steps == pytest.approx(np.median(steps))
    assert sum(n.share for n in profile.nodes) == pytest.approx(1)
    for n in profile.nodes:
        assert n.seconds == pytest.approx(np.sum([s.seconds for s in n.steps], axis=0))


def test_nodes_are_the_models_slowest_first(profile):
    assert {n.op for n in profile.nodes} == {"MatMul", "Softmax", "Relu"}
    assert profile.nodes[0].op == "MatMul" and profile.nodes[0].steps[0].rung
    assert [n.median for n in profile.nodes] == sorted((n.median for n in profile.nodes),
                                                       reverse=True)


def test_steps_come_in_the_order_they_run(profile):
    assert [s.op for s in profile.steps] == ["MatMul", "Softmax", "Relu"]
    spans = [s for s in profile.spans() if s.step]
    assert [s.step.op for s in spans] == ["MatMul", "Softmax", "Relu"]
    assert all(a.end <= b.begin for a, b in zip(spans, spans[1:]))


def test_a_slow_step_is_seen(profile):
    """The product takes a hundred times as long as the rest."""
    by_op = {n.op: n.median for n in profile.nodes}
    assert by_op["MatMul"] > by_op["Relu"]


def test_the_arena_over_time(profile):
    blocks = profile.blocks()
    assert max(b.offset + b.bytes for b in blocks) <= profile.arena_bytes
    assert any(b.bytes == 256 * SIZE * 4 for b in blocks)
    steps = [s for s in profile.spans() if s.step]
    for s in steps:
        middle = (s.begin + s.end) / 2
        inside = sum(b.bytes for b in blocks if b.begin <= middle <= b.end)
        assert inside == s.arena > 0


def test_iterations_of_a_loop_are_added_up(looped):
    inside = [s for s in looped.steps if s.path]
    assert inside and {s.calls for s in inside} == {11}
    loops = [s for s in looped.steps if s.kind == "stage" and s.op == "Loop"]
    assert len(loops) == 2 and all(s.seconds.min() > 0 for s in loops)
    total = np.sum([s.seconds for s in looped.steps], axis=0)
    assert (total <= looped.runs).all(), "a loop's own time must not count its body again"
    assert max(s.depth for s in looped.spans()) == 2


def test_chrome_trace(looped, tmp_path):
    looped.to_chrome(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    assert sum(e["cat"] == "run" for e in spans) == 3
    names = {e["name"] for e in spans}
    assert {n.name for n in looped.nodes} <= names
    assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in spans)
    assert any(e["ph"] == "C" and e["args"]["bytes"] > 0 for e in events)
    # Sorted by begin, each span lies inside the one that is open: what viewers need to nest them.
    ends = []
    for e in sorted(spans, key=lambda e: (e["ts"], -e["dur"])):
        while ends and ends[-1] <= e["ts"] + 1e-6:
            ends.pop()
        assert not ends or e["ts"] + e["dur"] <= ends[-1] + 1e-3
        ends.append(e["ts"] + e["dur"])


def test_page(profile, looped, tmp_path):
    for made in (profile, looped):
        made.to_html(tmp_path / "p.html")
        page = (tmp_path / "p.html").read_text()
        assert page.startswith("<!doctype html>") and page.endswith("</html>\n")
        for n in made.nodes:
            assert f"{n.path}{n.name}<" in page
        assert "http" not in page and "src=" not in page, "the page is self-contained"
    assert "Arena over time" in page


def test_a_page_escapes_names(tmp_path):
    made = model([node("Relu", "x", "y")], [value("x", F, [4])], [value("y")])
    made.graph.node[0].name = '<script>"&'
    with rlx.load(made) as session:
        session.profile(arange(4), 1).to_html(tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text()
    assert '<script>"&' not in page and "&lt;script&gt;" in page


def test_to_dict_is_plain(profile):
    found = json.loads(json.dumps(profile.to_dict()))
    assert found["nodes"][0]["op"] == "MatMul" and len(found["runs"]) == 5
    assert len(profile.to_dict(top=1)["nodes"]) == 1


def test_specialised_models_are_profiled():
    """The value of the shape decides the program; one run before the measured ones finds it."""
    made = model([node("Reshape", "x s", "y")], [value("x", F, [6]), value("s", 7, ["r"])],
                 [value("y")])
    with rlx.load(made) as session:
        found = session.profile({"x": arange(6), "s": np.int64([2, 3])}, 2)
    assert len(found.runs) == 2


@pytest.mark.parametrize("runs", [0, -1, 1.5, "many", 2**31, 10**30])
def test_bad_counts(runs):
    with rlx.load(add()) as session, pytest.raises(rlx.InputError, match="at least one run"):
        session.profile([arange(1, 4)] * 2, runs)


def test_bad_inputs_and_paths(profile):
    with rlx.load(add()) as session:
        with pytest.raises(rlx.InputError, match="missing"):
            session.profile({"a": arange(1, 4)})
    with pytest.raises(rlx.InputError, match="cannot write"):
        profile.to_html("/nothing/p.html")
    with pytest.raises(rlx.InputError, match="closed"):
        session.profile([arange(1, 4)] * 2)
