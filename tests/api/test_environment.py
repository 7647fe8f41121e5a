"""Options from the environment: each has a variable, a line in the docs and an effect, and an
option that is given wins."""

import json
from pathlib import Path
import re

import numpy as np
import pytest

import rlx
from rlx.environment import VARIABLES
from rlx.options import Options
from tests.api.toys import F, arange, model, node, value

# What FEATURES of the systems that rlx follows are switched by, but for those that the docs name
# as left out.
WANTED = {"RLX_CUDA_PTX_CACHE", "RLX_CUDA_LOG_FALLBACK", "RLX_CUDA_WMMA", "RLX_TRACE_PERFETTO",
          "RLX_DISPATCH_REPORT", "RLX_FUSION_REPORT", "RLX_KERNEL_DISPATCH", "RLX_VERBOSE",
          "RLX_IR_DUMP", "RLX_ARENA_ALIGN", "RLX_WORKERS", "RLX_PAR_THRESHOLD",
          "RLX_CUDA_ARENA_POOL", "RLX_CUDA_EXEC_MODE"}
# variable -> its text, the options it gives, the same options as an explicit choice would differ
SESSION = {
    "RLX_CUDA_EXEC_MODE": ("multistream:3", {"mode": "multistream", "streams": 3},
                           {"mode": "stream", "streams": 2}),
    "RLX_CUDA_LOG_FALLBACK": ("1", {"log_fallback": True}, {"log_fallback": False}),
    "RLX_KERNEL_DISPATCH": ("plain", {"force": "plain"}, {"force": "gemm"}),
    "RLX_WORKERS": ("3", {"threads": 3}, {"threads": 0}),
    "RLX_TRACE_PERFETTO": ("t.json", {"trace": "t.json"}, {"trace": ""}),
    "RLX_DISPATCH_REPORT": ("1", {"dispatch_report": True}, {"dispatch_report": False}),
    "RLX_FUSION_REPORT": ("1", {"fusion_report": True}, {"fusion_report": False}),
    "RLX_VERBOSE": ("1", {"verbose": True}, {"verbose": False}),
    "RLX_IR_DUMP": ("ir", {"ir_dump": "ir"}, {"ir_dump": ""}),
}


def small():
    return model([node("MatMul", "x w", "a"), node("Add", "a b", "c"), node("Relu", "c", "y")],
                 [value("x", F, ["n", 4])], [value("y", F, ["n", 4])],
                 {"w": np.eye(4, dtype=np.float32), "b": np.ones(4, np.float32)})


def test_the_docs_list_the_table(source):
    page = (source / "docs/guides/environment.md").read_text()
    rows = re.findall(r"^\| `(RLX_\w+)` \| `([^`]+)` \| ([^|]+) \|$", page, re.MULTILINE)
    assert rows == [(v.name, f"rlx.configure({v.option}=)" if v.of_process else v.option, v.meaning)
                    for v in VARIABLES]
    left_out = set(re.findall(r"^- `(RLX_\w+)`:", page, re.MULTILINE))
    assert {v.name for v in VARIABLES} | left_out == WANTED
    assert not {v.name for v in VARIABLES} & left_out
    assert {v.name for v in VARIABLES if not v.of_process} == set(SESSION)


@pytest.mark.parametrize("name", SESSION)
def test_a_variable_stands_for_an_option_that_is_not_given(name, monkeypatch):
    text, found, other = SESSION[name]
    monkeypatch.setenv(name, text)
    assert Options.of() == Options(**found)
    assert Options.of(**other) == Options(**other)
    monkeypatch.setenv(name, "")
    assert Options.of() == Options()


def test_one_of_two_options_of_a_variable_may_be_given(monkeypatch):
    monkeypatch.setenv("RLX_CUDA_EXEC_MODE", "multistream:3")
    assert Options.of(streams=5) == Options(mode="multistream", streams=5)


@pytest.mark.parametrize("name, text", [
    ("RLX_WORKERS", "many"), ("RLX_WORKERS", "-1"), ("RLX_VERBOSE", "yes"),
    ("RLX_CUDA_EXEC_MODE", "stream:2"), ("RLX_CUDA_EXEC_MODE", "multistream:x"),
    ("RLX_KERNEL_DISPATCH", "fastest"),
    ("RLX_CUDA_EXEC_MODE", "foo"), ("RLX_CUDA_EXEC_MODE", "multistream:99"),
    ("RLX_WORKERS", "3000000000"), ("RLX_CUDA_ARENA_POOL", "plenty"), ("RLX_CUDA_ARENA_POOL", "-1"),
    ("RLX_CUDA_ARENA_POOL", str(2**63)), ("RLX_WORKERS", "9" * 10_000), ("RLX_WORKERS", "٣"),
    ("RLX_WORKERS", "x" * 10_000), ("RLX_CUDA_EXEC_MODE", "multistream:" + "9" * 10_000),
])
def test_a_variable_that_cannot_be_read_is_named(name, text, monkeypatch):
    monkeypatch.setenv(name, text)
    with pytest.raises(rlx.InputError, match=name) as caught:
        rlx.load(small(), device="cpu")
    assert len(str(caught.value)) < 300


def test_an_option_far_out_of_range_is_not_repeated():
    for value in (10**5000, -10**5000):
        with pytest.raises(rlx.InputError, match="'threads' is out of range") as caught:
            rlx.load(small(), device="cpu", threads=value)
        assert len(str(caught.value)) < 300


def test_a_bad_value_is_named_by_where_it_is_from(monkeypatch):
    monkeypatch.setenv("RLX_CUDA_EXEC_MODE", "fast")
    with pytest.raises(rlx.InputError, match="variable RLX_CUDA_EXEC_MODE is not usable"):
        rlx.load(small(), device="cpu")
    with pytest.raises(rlx.InputError, match="'mode' is unknown"):
        rlx.load(small(), device="cpu", mode="fast")


def test_reports_are_said_once_for_each_plan(capfd):
    with rlx.load(small(), device="cpu", dispatch_report=True, fusion_report=True,
                  verbose=True) as session:
        capfd.readouterr()
        session.run(arange(2, 4))
        first = capfd.readouterr().err
        session.run(arange(2, 4))
        again = capfd.readouterr().err
        session.run(arange(3, 4))
        other = capfd.readouterr().err
    assert re.search(r"^rlx: dispatch 'Relu_y' \(Relu\): MatMul, \w+", first, re.MULTILINE)
    assert "rlx: fusion 'Add_c' (Add): fused: into 'Relu_y'" in first
    assert "rlx: plan 1: 1 nodes" in first
    assert again == ""
    assert "rlx: plan 2" in other and "dispatch" in other


def test_nothing_is_said_unasked(capfd):
    with rlx.load(small(), device="cpu") as session:
        session.run(arange(2, 4))
    assert capfd.readouterr().err == ""


def test_verbose_says_what_was_compiled(capfd):
    rlx.load(small(), device="cpu", verbose=True).close()
    said = capfd.readouterr().err
    assert "rlx: a session on cpu" in said
    assert re.search(r"rlx: program 1: 3 nodes, \d after the passes, \d\.\d{3} s", said)


def test_a_trace_holds_the_last_run(tmp_path):
    path = tmp_path / "trace.json"
    plain = rlx.run(small(), arange(3, 4), device="cpu")["y"]
    with rlx.load(small(), device="cpu", trace=str(path)) as session:
        session.run(arange(2, 4))
        out = {"y": np.empty((3, 4), np.float32)}
        session.run({"x": arange(3, 4)}, out)
        np.testing.assert_array_equal(out["y"], plain)
    events = json.loads(path.read_text())["traceEvents"]
    assert sum(e.get("cat") == "run" for e in events) == 1
    assert [e["name"] for e in events if e.get("cat") == "MatMul"] == ["Relu_y"]
    assert any(e["ph"] == "C" and e["name"] == "arena bytes" for e in events)


def test_a_trace_of_a_state(tmp_path):
    path = tmp_path / "trace.json"
    growing = model([node("Concat", "past x", "present", axis=0)],
                    [value("past", F, ["p", 2]), value("x", F, ["n", 2])],
                    [value("present", F, ["q", 2])])
    with rlx.load(growing, device="cpu", trace=str(path), fusion_report=True) as session:
        state = session.state({"past": "present"}, axis=0)
        session.run({"x": arange(1, 2)}, state=state)
        session.run({"x": arange(1, 2)}, state=state)
        np.testing.assert_array_equal(state.value("past"), [[0, 1], [0, 1]])
    assert json.loads(path.read_text())["traceEvents"]


def test_a_trace_that_cannot_be_written_is_said(tmp_path):
    with rlx.load(small(), device="cpu", trace=str(tmp_path / "no/such/t.json")) as session:
        with pytest.raises(rlx.InputError, match="cannot write"):
            session.run(arange(2, 4))


def test_the_program_is_written_after_each_pass(tmp_path):
    rlx.load(small(), device="cpu", ir_dump=str(tmp_path / "ir"), disable=["fold"]).close()
    names = sorted(p.name for p in (tmp_path / "ir").iterdir())
    assert names[0] == "program1-00-imported.txt" and "program1-02-fold.txt" not in names
    assert names[-1].endswith("-prune.txt")
    first = (tmp_path / "ir" / names[0]).read_text()
    assert first.startswith("graph toy") and first != (tmp_path / "ir" / names[-1]).read_text()


@pytest.mark.parametrize("settings", [
    {"kernel_cache": 3}, {"arena_pool": -1}, {"arena_pool": "x"}, {"arena_pool": True}, {"pool": 1},
])
def test_bad_settings_are_refused(settings):
    with pytest.raises(rlx.InputError):
        rlx.configure(**settings)


def test_the_folder_of_kernels_may_be_configured(monkeypatch):
    folder = lambda: rlx._core.cuda_probe()["cache_folder"]
    monkeypatch.setenv("RLX_CUDA_PTX_CACHE", str(Path("/from/variable")))
    assert folder() == "/from/variable"
    try:
        rlx.configure(kernel_cache="/from/option")
        assert folder() == "/from/option"
        rlx.configure(kernel_cache="off")
        assert folder() == ""
    finally:
        rlx.configure(kernel_cache=None)
    assert folder() == "/from/variable"


@pytest.mark.parametrize("name, text, largest", [
    ("RLX_WORKERS", "x", 2**31 - 1), ("RLX_CUDA_EXEC_MODE", "multistream:x", 32),
    ("RLX_CUDA_ARENA_POOL", "x", 2**63 - 1)])
def test_a_variable_says_its_range(name, text, largest, monkeypatch):
    monkeypatch.setenv(name, text)
    with pytest.raises(rlx.InputError) as caught:
        Options.of()
    assert caught.value.expected.endswith(f"a whole number from 0 to {largest}")
