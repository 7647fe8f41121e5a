"""Loops on a GPU that computes nothing: what an iteration asks of the driver, what the host reads,
and what a failed run leaves."""

import json

import pytest

from tests.cuda.test_runs import on_fake_gpu  # noqa: F401  (a fixture)

# A Loop of n iterations with one scan output, behind a node that gives k on the GPU.
MODELS = """
def info(name, type=T.FLOAT, shape=None): return h.make_tensor_value_info(name, type, shape)
def loop(*body):
    inner = h.make_graph([h.make_node("Identity", ["c"], ["more"]), *body], "body",
                         [info("i", T.INT64, []), info("c", T.BOOL, [])],
                         [info("more", T.BOOL, []), info("s")])
    constants = [numpy_helper.from_array(np.array(v), name) for name, v in
                 (("zero", [0]), ("first", 0), ("one", 1), ("always", True))]
    nodes = [h.make_node("RandomUniform", [], ["x"], "draw", shape=[4]),
             h.make_node("ArgMax", ["x"], ["k"], "largest", axis=0, keepdims=1),
             h.make_node("Loop", ["n", "always"], ["scan"], "loop", body=inner)]
    graph = h.make_graph(nodes, "g", [info("n", T.INT64, [])], [info("scan"), info("k", T.INT64)],
                         constants)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9)
def run(s, n):
    before = len(calls())
    try:
        print(s.run({"n": np.array(n)}, outputs="device")["scan"].shape)
    except rlx.InputError as error:
        print("one shape" in str(error))
    made = calls()[before:]
    print(made.count("cuMemcpyDtoHAsync_v2"), made.count("cuStreamSynchronize"))
"""


def test_a_loop_without_iterations_reads_numbers_by_copies(on_fake_gpu):  # noqa: F811
    """Only calls tell: the fake's memory of the GPU can be read by the host, a card's cannot."""
    done, _ = on_fake_gpu(MODELS + """
with rlx.load(loop(h.make_node("Slice", ["x", "zero", "k"], ["s"])), device="cuda") as s:
    run(s, 0)
""")
    assert done.stdout.splitlines() == ["(0, 0)", "1 1"]


def test_a_failed_run_waits_for_what_it_has_begun(on_fake_gpu):  # noqa: F811
    """Else what its kernels find wrong would be told to the next run."""
    done, _ = on_fake_gpu(MODELS + """
with rlx.load(loop(h.make_node("Range", ["first", "i", "one"], ["r"]),
                   h.make_node("Cast", ["r"], ["s"], to=T.FLOAT)), device="cuda") as s:
    run(s, 3)
""")
    assert done.stdout.splitlines() == ["True", "0 1"]


LOOP = """
def value(name, type, *dims): return h.make_tensor_value_info(name, type, dims)
def loop(nodes, outputs, carried=("x",), inputs=()):
    body = h.make_graph(
        [h.make_node(op, ins.split(), outs.split()) for op, ins, outs in nodes], "body",
        [value("i", T.INT64), value("c", T.BOOL), value("h", T.FLOAT, "m", 4), *inputs],
        [value(name, type, *dims) for name, type, *dims in outputs])
    w = numpy_helper.from_array(np.full((4, 4), 0.5, np.float32), "w")
    k = len(carried)
    node = h.make_node("Loop", ["n", "", *carried], ["y", *[""] * (k - 1), "ys"], body=body)
    graph = h.make_graph([node], "g", [value("n", T.INT64), value("x", T.FLOAT, "m", 4),
                                       value("v", T.FLOAT, 4)],
                         [value("y", T.FLOAT, "m", 4), value("ys", T.FLOAT, "k", "m", 4)], [w])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9)
def count(s, trips):
    feeds = {"n": np.int64(trips), "x": x, "v": np.ones(4, np.float32)}
    for _ in range(4): s.run(feeds)
    before, runs = len(calls()), s.counters()["child_runs"]
    s.run(feeds)
    assert s.counters()["child_runs"] - runs == trips
    made = [call for call in calls()[before:] if call.startswith("cu")]
    return {call: made.count(call) for call in set(made)}
def an_iteration(model, mode):
    s = rlx.load(model, device="cuda", mode=mode)
    few, many = count(s, 20), count(s, 30)
    print(json.dumps({call: n for call in many if (n := (many[call] - few.get(call, 0)) / 10)}))
PASSED = ("Identity", "c", "c2")
MADE = [("ReduceMax", "p", "top"), ("IsNaN", "top", "odd"), ("Squeeze", "odd", "c2")]
ENDS = [("c2", T.BOOL), ("h2", T.FLOAT, "m", 4)]
SCAN = ("p", T.FLOAT, "m", 4)
"""
STEP = [("graph", {"cuGraphLaunch": 1}), ("stream", {"cuLaunchKernelEx": 2})]
ASKED = {"cuMemcpyDtoHAsync_v2": 1, "cuStreamSynchronize": 1}
SCANNED = {"cuMemcpyDtoDAsync_v2": 1}


@pytest.mark.parametrize("mode, step", STEP)
@pytest.mark.parametrize("nodes", [
    [("MatMul", "h w", "p"), ("Softmax", "p", "h2")],
    [("Mul", "h v", "p"), ("Softmax", "h", "h2")],  # captures an input: it is uploaded once
], ids=["weight", "input"])
def test_values_stay_on_the_device_and_nothing_is_waited_for(on_fake_gpu, mode, step, nodes):
    """Only the trip count decides."""
    done, _ = on_fake_gpu(f"""{LOOP}
nodes = [*{nodes!r}, PASSED]
an_iteration(loop(nodes, [*ENDS, SCAN]), {mode!r})
""")
    assert json.loads(done.stdout) == step | SCANNED


@pytest.mark.parametrize("mode, launches", [("graph", 1), ("stream", 3)])
def test_a_condition_is_the_one_thing_that_is_read_back(on_fake_gpu, mode, launches):
    done, _ = on_fake_gpu(f"""{LOOP}
nodes = [("MatMul", "h w", "p"), ("Softmax", "p", "h2"), *MADE]
an_iteration(loop(nodes, [*ENDS, SCAN]), {mode!r})
""", FAKE_CUDA_FILL="1")
    calls = json.loads(done.stdout)
    assert calls.pop("cuGraphLaunch", 0) or calls.pop("cuLaunchKernelEx") >= launches
    assert calls == ASKED | SCANNED


@pytest.mark.parametrize("mode, step", STEP)
@pytest.mark.parametrize("carried", ["w", "v"], ids=["weight", "input"])
def test_what_a_body_hands_on_as_it_came_is_not_uploaded_again(on_fake_gpu, mode, step, carried):
    dims = {"w": "4, 4", "v": "4"}[carried]
    done, _ = on_fake_gpu(f"""{LOOP}
nodes = [("MatMul", "h k", "q"), ("Softmax", "h", "h2"), PASSED, ("Identity", "k", "k2")]
if {carried!r} == "v":
    nodes[0] = ("Mul", "h k", "q")
outputs = [*ENDS, ("k2", T.FLOAT, {dims}), ("q", T.FLOAT, "m", 4)]
an_iteration(loop(nodes, outputs, ("x", {carried!r}), [value("k", T.FLOAT, {dims})]), {mode!r})
""")
    assert json.loads(done.stdout) == step | SCANNED


def test_an_output_of_the_loop_may_stay_on_the_device(on_fake_gpu):
    done, _ = on_fake_gpu(f"""{LOOP}
s = rlx.load(loop([("MatMul", "h w", "p"), ("Softmax", "p", "h2"), PASSED], [*ENDS, SCAN]),
             device="cuda")
feeds = {{"n": np.int64(20), "x": x, "v": np.ones(4, np.float32)}}
for _ in range(3): kept = s.run(feeds, outputs="device")
before = len(calls())
del kept
kept = s.run(feeds, outputs="device")
print(json.dumps(calls()[before:].count("cuMemcpyDtoHAsync_v2")))
print(kept["ys"].shape)
""")
    assert done.stdout.splitlines() == ["0", "(20, 3, 4)"]
