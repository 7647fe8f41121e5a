"""The ladder of matrix products by shape, activation, weights and library, on a GPU that computes
nothing: which rung, which types, how much memory. And weights that are updated in place."""

from collections import Counter

import pytest

F32, F16, BF16 = "0", "2", "14"  # cuBLASLt's names of types
RUN = """
import numpy as np, rlx
from tests.products import product, random
for m, k, n in {shapes}:
    for name in {names}:
        made, w, b = product(name, k, n, "float32")
        with rlx.load(made, device="cuda", {options}) as s:
            for _ in range(4): s.run({{"x": random(m, k, seed=3).astype("float32")}})
            row = s.explain()[0]
            used = rlx._core.cuda_statistics()[0]["used_bytes"]
            print(row["rung"], row["reason"], used, sep="|")
"""
SHAPES = [(1024, 4096, 4096), (1, 3, 2)]


@pytest.fixture
def on_gpu(python, fake_driver, fake_nvrtc, fake_blas_lt, tmp_path):
    """Runs code on the fake GPU; gives what it printed and the calls of driver and library."""
    log = tmp_path / "calls"

    def run(code, library=True):
        log.write_text("")
        packages = (fake_nvrtc, fake_blas_lt) if library else (fake_nvrtc,)
        done = python(code, *packages, LD_LIBRARY_PATH=str(fake_driver), FAKE_CUDA_LOG=str(log))
        return done.stdout.strip(), log.read_text().split()

    return run


FUSED, APART = ("relu",), ("gelu", "silu")


# weights, options, activations -> the rung of products by them.
@pytest.mark.parametrize("weights, options, names, rung", [
    ("", "", FUSED, "cublaslt + epilogue"), ("", "", APART, "cublaslt + region"),
    ("f16", "", FUSED, "cublaslt half + epilogue"), ("f16", "", APART, "cublaslt half + region"),
    ("bf16", "", FUSED, "cublaslt half + epilogue"),
    ("bf16", "", ("gelu",), "cublaslt half + region"),
    ("f16", "force='cublaslt half + region'", FUSED, "cublaslt half + region"),
    ("f16", "force='cublaslt widened'", FUSED, "cublaslt widened + epilogue"),
    ("f16", "force='cublaslt widened'", ("silu",), "cublaslt widened + region"),
    ("f16", "force='cublaslt widened + region'", FUSED, "cublaslt widened + region"),
])
def test_the_rung_that_takes_a_product(on_gpu, weights, options, names, rung):
    code = RUN.format(shapes=SHAPES, names=names, options=f"weights={weights!r}, {options}")
    printed, calls = on_gpu(code)
    rows = [line.split("|") for line in printed.split("\n")]
    assert [row[0] for row in rows] == [rung] * (len(SHAPES) * len(names))
    type_ = F32 if "widened" in rung else {"f16": F16, "bf16": BF16, "": F32}[weights]
    products = {call for call in calls if call.startswith("product:")}
    assert products == {f"product:{type_},{type_},{F32}"}
    if weights:
        how = "weights are widened" if "widened" in rung else "activations are rounded from float32"
        assert all(how in row[1] for row in rows)


CASTS = """
import numpy as np, rlx
from onnx import TensorProto as T, helper as h, numpy_helper
w = numpy_helper.from_array(np.ones((64, 48), np.float16), "w")
nodes = [h.make_node("Cast", ["w"], ["f"], to=T.FLOAT), h.make_node("MatMul", ["x", "f"], ["y"])]
graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["m", 64])],
                     [h.make_tensor_value_info("y", T.FLOAT, ["m", 48])], [w])
made = h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9)
with rlx.load(made, device="cuda", {options}) as s:
    s.run({{"x": np.full((3, 64), 1e5, np.float32)}})
    print(s.explain()[0]["rung"], s.explain()[0]["reason"], sep="|")
"""


@pytest.mark.parametrize("options, rung, type_", [
    ("", "cublaslt widened", F32), ("tf32=False", "cublaslt widened", F32),
    ("weights='f16'", "cublaslt half", F16), ("force='cublaslt half'", "cublaslt half", F16)])
def test_activations_are_rounded_only_where_that_was_allowed(on_gpu, options, rung, type_):
    """A model that casts its own half weights asks for float32 activations: 1e5 is no float16."""
    printed, calls = on_gpu(CASTS.format(options=options))
    used, reason = printed.split("|")
    assert used == rung
    assert ("rounded" in reason.split(";")[0] and "allowed" in reason) == (type_ == F16)
    assert {c for c in calls if c.startswith("product:")} == {f"product:{type_},{type_},{F32}"}


@pytest.mark.parametrize("weights", ["", "f16", "bf16"])
def test_without_a_library_a_kernel_reads_the_weights_as_they_are(on_gpu, weights):
    code = RUN.format(shapes=SHAPES, names=("gelu",), options=f"weights={weights!r}")
    printed, calls = on_gpu(code, library=False)
    for line in printed.split("\n"):
        rung, reason, _ = line.split("|")
        assert not rung.startswith("cublaslt") and "cuBLASLt" in reason
    assert not any(call.startswith("product:") for call in calls)


def test_weights_take_half_the_memory_and_scratch_is_planned(on_gpu):
    used = {}
    for weights in ("", "f16", "bf16"):
        code = RUN.format(shapes=[(4, 4096, 4096)], names=["gelu"], options=f"weights={weights!r}")
        used[weights] = int(on_gpu(code)[0].split("|")[2])
    floats = 4 * 4096 * 4096
    assert used[""] >= floats
    assert used["f16"] == used["bf16"] <= used[""] - floats // 2


UPDATE = """
import os
import numpy as np, rlx
from tests.products import product, random
made, w, b = product("gelu", 256, 128, "float32")
data = made.SerializeToString()
calls = lambda: open(os.environ["FAKE_CUDA_LOG"]).read().split()
x = random(8, 256, seed=3).astype("float32")
used = lambda: rlx._core.cuda_statistics()[0]["used_bytes"]
s = rlx.load(data, device="cuda", {options})
for _ in range(4): s.run({{"x": x}})
before, counted, memory = len(calls()), s.counters(), used()
"""
CHECK = """
for k in range(3):
    s.update_weights({"w": w.astype("float32") * k, "b": b.astype("float32") * k})
    for _ in range(3): s.run({"x": x})
now = s.counters()
same = all(now[n] == counted[n] for n in ("imports", "plans", "stage_binds", "recordings"))
print(same, used() == memory, *calls()[before:])
"""


@pytest.mark.parametrize("options", ["", "tf32=False", "weights='f16'", "weights='bf16'"])
def test_an_update_records_and_plans_nothing_anew(on_gpu, options):
    printed, _ = on_gpu(UPDATE.format(options=options) + CHECK)
    same, memory, *calls = printed.split()
    calls = Counter(calls)
    assert (same, memory) == ("True", "True")
    assert calls["cuGraphLaunch"] == 9
    assert calls["cuStreamBeginCapture_v2"] == calls["cuModuleLoadData"] == 0
    # Each time the input thrice, w and b once.
    assert calls["cuMemcpyHtoDAsync_v2"] == 9 + 6


def test_the_weights_of_another_session_stay(on_gpu):
    printed, _ = on_gpu(UPDATE.format(options="") + """
t = rlx.load(data, device="cuda")
t.run({"x": x})
shared = used()
s.update_weights({"w": w.astype("float32")})
s.run({"x": x})
imports = s.counters()["imports"]
s.update_weights({"w": w.astype("float32") * 2})
print(shared - memory < 4 * 256 * 128, used() > shared, imports, s.counters()["imports"])
""")
    assert printed.split() == ["True", "True", "2", "2"]
