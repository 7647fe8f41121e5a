"""Stages seen from Python: host calls, interrupts, sequences, and what errors leave behind."""

import signal
import threading

import numpy as np
import pytest

from rlx import errors
from rlx.ir.build import Builder
from rlx.ir.graph import Graph, Host, If, Loop, SequenceOp, Value
from rlx.ir.types import DType, OptionalType, SequenceType, TensorType
from tests.exec.programs import executable, stage, tensor

F32, I64 = DType.FLOAT32, DType.INT64


def made(dtype: DType, *dims: int | str, name: str = "made") -> Value:
    """A value that a stage makes; its named dims are known once it exists."""
    value = Value(TensorType(dtype, ()), name)
    shape = tuple(value.dim(axis, d) if isinstance(d, str) else d for axis, d in enumerate(dims))
    value.type = TensorType(dtype, shape)
    return value


def host_program(function, *, outputs=1):
    def build(b: Builder):
        x = tensor(b.graph, "x", F32, "n")
        ys = [made(F32, "m", name=f"y{i}") for i in range(outputs)]
        stage(b, Host("test"), [b.scalar("neg", x)], ys, "Host")
        return {y.name: y for y in ys} | {"z": b.scalar("neg", ys[0])}

    return executable(build, host=lambda prim: function)


def test_host_function_gets_and_gives_arrays():
    exe = host_program(lambda x: np.concatenate([x, x]))
    got = exe.run({"x": np.array([1, 2], np.float32)})
    assert got["y0"].tolist() == [-1, -2, -1, -2] and got["z"].tolist() == [1, 2, 1, 2]
    assert exe.counters()["host_calls"] == 1


def test_host_function_may_give_several():
    exe = host_program(lambda x: (x + 1, x[:1]), outputs=2)
    got = exe.run({"x": np.array([1, 2], np.float32)})
    assert got["y0"].tolist() == [0, -1] and got["y1"].tolist() == [-1]


def test_what_a_host_function_raises_comes_out():
    def fail(x):
        raise ZeroDivisionError("of all things")

    exe = host_program(fail)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="of all things"):
            exe.run({"x": np.array([1, 2], np.float32)})
    assert exe.counters()["contexts"] == 1


@pytest.mark.parametrize("wrong, message", [
    (lambda x: x.astype(np.float64), "another type than declared"),
    (lambda x: x[None], "another type than declared"),
    (lambda x: (x, x), "must be an array"),
    (lambda x: None, "must be an array"),
], ids=["dtype", "rank", "too many", "nothing"])
def test_what_a_host_function_gives_is_checked(wrong, message):
    with pytest.raises(errors.Error, match=message):
        host_program(wrong).run({"x": np.array([1, 2], np.float32)})


def endless_loop():
    """A Loop without a trip count whose condition stays true."""
    body = Builder()
    tensor(body.graph, "i", I64)
    condition = tensor(body.graph, "c", DType.BOOL)
    x = tensor(body.graph, "x", F32, 1)
    body.graph.outputs = [condition, body.scalar("neg", x)]
    body.graph.output_names = ["c", "x"]

    def build(b: Builder):
        x = tensor(b.graph, "x", F32, 1)
        y = made(F32, 1)
        stage(b, Loop(body.graph, 1, 0), [None, None, x], [y], "Loop")
        return {"y": y}

    return executable(build)


def test_endless_loop_stops_on_interrupt():
    exe = endless_loop()

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(2):
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(KeyboardInterrupt):
                exe.run({"x": np.ones(1, np.float32)})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert exe.counters()["contexts"] == 1


def test_other_threads_run_during_a_loop():
    exe = endless_loop()
    seen = []
    thread = threading.Thread(target=lambda: seen.append(1))

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(KeyboardInterrupt):
            thread.start()
            exe.run({"x": np.ones(1, np.float32)})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    thread.join()
    assert seen == [1]


def sequence(dtype: DType = F32) -> Value:
    return Value(SequenceType(dtype), "sequence")


def test_sequences_are_lists():
    def build(b: Builder):
        given = sequence()
        given.name = "xs"
        b.graph.inputs.append(given)
        at = tensor(b.graph, "at", I64)
        longer, item = sequence(), made(F32, "n")
        stage(b, SequenceOp("at"), [given, at], [item], "SequenceAt")
        stage(b, SequenceOp("insert"), [given, b.scalar("neg", item)], [longer], "SequenceInsert")
        return {"item": item, "longer": longer}

    exe = executable(build)
    xs = [np.array([1, 2], np.float32), np.array([3], np.float32)]
    got = exe.run({"xs": xs, "at": np.array(-1)})
    assert got["item"].tolist() == [3]
    assert [x.tolist() for x in got["longer"]] == [[1, 2], [3], [-3]]
    with pytest.raises(errors.InputError, match="position 2 is outside") as caught:
        exe.run({"xs": xs, "at": np.array(2)})
    assert caught.value.node == "the SequenceAt" and caught.value.op == "SequenceAt"
    with pytest.raises(errors.InputError, match="is a sequence"):
        exe.run({"xs": xs[0], "at": np.array(0)})
    with pytest.raises(errors.InputError, match="wrong element type"):
        exe.run({"xs": [np.ones(1)], "at": np.array(0)})


def test_sequence_of_strings():
    def build(b: Builder):
        x = tensor(b.graph, "x", DType.STRING, "n")
        both = sequence(DType.STRING)
        stage(b, SequenceOp("construct"), [x, x], [both], "SequenceConstruct")
        return {"both": both}

    got = executable(build).run({"x": np.array(["a", "ß"], object)})["both"]
    assert [x.tolist() for x in got] == [["a", "ß"], ["a", "ß"]]


def test_absent_optional_is_none():
    def build(b: Builder):
        given = Value(OptionalType(TensorType(F32, ())), "x")
        b.graph.inputs.append(given)
        there, same = made(DType.BOOL), Value(OptionalType(TensorType(F32, ())), "same")
        stage(b, SequenceOp("has_element"), [given], [there], "OptionalHasElement")
        return {"there": there, "same": given}

    exe = executable(build)
    for feeds in ({"x": None}, {}):
        got = exe.run(feeds)
        assert not got["there"] and got["same"] is None
    got = exe.run({"x": np.ones(2, np.float32)})
    assert got["there"] and got["same"].tolist() == [1, 1]


def test_equal_strings_are_equal():
    def build(b: Builder):
        x = tensor(b.graph, "x", DType.STRING, 3)
        word = b.const(np.array(["b"], object), DType.STRING)
        return {"y": b.scalar("eq", x, word, dtype=DType.BOOL)}

    exe = executable(build)
    assert exe.run({"x": np.array(["a", "b", "b"], object)})["y"].tolist() == [False, True, True]


def test_branches_differ_in_shape():
    def branch(double: bool) -> Graph:
        b = Builder()
        x = tensor(b.graph, "x", F32, "n")
        b.graph.outputs = [b.concat([x, x], 0) if double else x]
        b.graph.output_names = ["y"]
        return b.graph

    def build(b: Builder):
        condition, x = tensor(b.graph, "c", DType.BOOL), tensor(b.graph, "x", F32, "n")
        y = made(F32, "m")
        stage(b, If(branch(True), branch(False)), [condition, x], [y], "If")
        return {"y": y, "z": b.scalar("neg", y)}

    exe = executable(build)
    x = np.array([1, 2], np.float32)
    assert exe.run({"c": np.array(True), "x": x})["z"].tolist() == [-1, -2, -1, -2]
    assert exe.run({"c": np.array(False), "x": x})["z"].tolist() == [-1, -2]
    reports = exe.explain()
    assert {r["path"] for r in reports} == {"", "If 0 then / "}
    assert [r["op"] for r in reports if r["prim"] == "If"] == ["If"]


def test_explain_and_memory_plan_name_nodes_and_values():
    def build(b: Builder):
        x = tensor(b.graph, "x", F32, 4, 4)
        y = b.softmax(b.matmul(x, x), -1)
        return {"z": b.matmul(y, y)}

    exe = executable(build)
    assert exe.explain() == [] and exe.memory_plan() == []
    exe.run(np.ones((4, 4), np.float32))
    reports = exe.explain()
    assert [r["prim"] for r in reports] == ["MatMul", "Softmax", "MatMul"]
    assert all(r["rung"] and r["steps"] for r in reports)
    blocks = [r for r in exe.memory_plan() if r["values"]]
    assert [(r["first"], r["last"], r["bytes"]) for r in blocks] == [(0, 1, 64), (1, 2, 64)]


def test_prepare_binds_without_running():
    def build(b: Builder):
        x = tensor(b.graph, "x", F32, "n")
        return {"y": b.scalar("neg", x)}

    exe = executable(build, memory_limit=1 << 20)
    exe.prepare(np.ones(8, np.float32))
    assert exe.counters()["plans"] == 1 and exe.counters()["runs"] == 0
    exe.run(np.ones(8, np.float32))
    assert exe.counters()["plans"] == 1


def test_memory_limit_is_checked_when_planned():
    def build(b: Builder):
        x = tensor(b.graph, "x", F32, "n")
        return {"y": b.reduce("sum", b.softmax(x, 0), (0,))}

    exe = executable(build, memory_limit=1 << 20)
    exe.run(np.ones(1000, np.float32))
    with pytest.raises(errors.MemoryLimitError, match="more memory than is allowed"):
        exe.run(np.ones(1 << 19, np.float32))
    exe.run(np.ones(1000, np.float32))


def test_symbols_are_read_from_inputs_and_results():
    def build(b: Builder):
        x, k = tensor(b.graph, "x", F32, "n"), tensor(b.graph, "k", I64, 1)
        count = b.numbers(b.scalar("add", k, k))[0]
        return {"y": b.narrow(x, 0, 0, count)}

    exe = executable(build)
    x = np.arange(8, dtype=np.float32)
    for k in (1, 3, 1):
        assert exe.run({"x": x, "k": np.array([k])})["y"].tolist() == x[:2 * k].tolist()


