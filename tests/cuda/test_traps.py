"""Faults of other systems that only a GPU could show: see tests/test_traps.py."""

from tests.cuda.test_runs import on_fake_gpu  # noqa: F401  (a fixture)


def test_weights_stay_while_later_ones_arrive(on_fake_gpu):  # noqa: F811
    """Half weights of growing sizes, in two sessions: each lies where it was put, unchanged."""
    done, _ = on_fake_gpu("""
import ctypes
def halves(seed):
    rng = np.random.default_rng(seed)
    ws = [rng.standard_normal((4, 64 * n)).astype(np.float16) for n in (1, 3, 9, 40, 300, 9000)]
    nodes = [h.make_node("MatMul", ["x", f"w{i}"], [f"y{i}"], f"n{i}") for i in range(len(ws))]
    made = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT16, ["n", 4])],
        [h.make_tensor_value_info(f"y{i}", T.FLOAT16, ["n", w.shape[1]]) for i, w in enumerate(ws)],
        [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(ws)])
    return ws, h.make_model(made, opset_imports=[h.make_opsetid("", 20)], ir_version=9)
every, sessions = [], []
for seed in range(3):
    ws, m = halves(seed)
    sessions.append(rlx.load(m, device="cuda"))
    sessions[-1].run({"x": x.astype(np.float16)})
    every += ws
spans = sorted({(int(a), int(n)) for _, a, n in
                (c.split(":") for c in calls() if c.startswith("to:"))})
held = []  # large weights come in pieces that follow each other
for a, n in spans:
    if held and held[-1][0] + held[-1][1] == a: held[-1][1] += n
    else: held.append([a, n])
held = [ctypes.string_at(a, n) for a, n in held]
print(sum(any(w.tobytes() in whole for whole in held) for w in every), len(every))
""", FAKE_CUDA_COPIES="1")
    assert done.stdout.split() == ["18", "18"]


def test_blocks_of_the_pool_keep_their_size(on_fake_gpu):  # noqa: F811
    """A large block that served a smaller result serves a large one again: nothing shrinks."""
    done, _ = on_fake_gpu("""
s = rlx.load(model(), device="cuda")
pool = lambda: rlx._core.cuda_statistics()[0]
def cycle():
    for rows in (900_000, 500_000, 20, 500_000, 900_000):
        y = s.run({"x": np.ones((rows, 4), np.float32)}, outputs="device")
        del y
cycle()
once = pool()
for _ in range(3): cycle()
again = pool()
print(once["driver_allocations"] == again["driver_allocations"],
      once["used_bytes"] + once["kept_bytes"] == again["used_bytes"] + again["kept_bytes"])
s.close()
rlx.empty_cache()
print(pool()["used_bytes"])
""")
    assert done.stdout.split() == ["True", "True", "0"]


def test_each_variant_of_a_kernel_is_its_own(on_fake_gpu):  # noqa: F811
    done, _ = on_fake_gpu("""
def softmax(kind, axis):
    graph = h.make_graph([h.make_node("Softmax", ["x"], ["y"], axis=axis)], "g",
                         [h.make_tensor_value_info("x", kind, ["n", 4])],
                         [h.make_tensor_value_info("y", kind, ["n", 4])])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9)
compiled = lambda: rlx._core.cuda_statistics()[0]["kernels_compiled"]
counts = []
for kind, dtype in ((T.FLOAT, "f4"), (T.FLOAT16, "f2"), (T.FLOAT, "f4"), (T.DOUBLE, "f8")):
    with rlx.load(softmax(kind, 1), device="cuda") as s:
        s.run({"x": x.astype(dtype)})
    counts.append(compiled())
print(*counts)
""", RLX_CUDA_PTX_CACHE="off")
    assert done.stdout.split() == ["1", "2", "2", "3"]


def test_what_used_to_need_the_host_is_recorded(on_fake_gpu):  # noqa: F811
    """Transforms of lengths that are no powers of two, and updates at computed places."""
    done, calls = on_fake_gpu("""
def transform(n):
    axis = numpy_helper.from_array(np.array(1, np.int64), "axis")
    graph = h.make_graph([h.make_node("DFT", ["x", "", "axis"], ["y"])], "g",
                         [h.make_tensor_value_info("x", T.FLOAT, [2, n, 1])],
                         [h.make_tensor_value_info("y", T.FLOAT, [2, n, 2])], [axis])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9)
def scatter():
    graph = h.make_graph([h.make_node("TopK", ["x", "k"], ["v", "i"], axis=0),
                          h.make_node("ScatterElements", ["x", "i", "v"], ["y"], reduction="add")],
                         "g", [h.make_tensor_value_info("x", T.FLOAT, [3000])],
                         [h.make_tensor_value_info("y", T.FLOAT, [3000])],
                         [numpy_helper.from_array(np.array([900]), "k")])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9)
for made, shape in ((transform(12), (2, 12, 1)), (transform(67), (2, 67, 1)), (scatter(), (3000,))):
    with rlx.load(made, device="cuda") as s:
        for _ in range(4): s.run({"x": np.ones(shape, np.float32)})
        print(s.counters()["recordings"], s.counters()["host_calls"])
""")
    assert done.stdout.split() == ["1", "0"] * 3
    assert calls["cuGraphLaunch"] == 3 * 3
