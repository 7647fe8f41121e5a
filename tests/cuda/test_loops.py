"""Loops on a GPU that computes nothing: what the host reads of it, and what a failed run leaves."""

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
