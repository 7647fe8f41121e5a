"""Choices of libraries outlive the process, and weights are copied while it starts.

The driver is fake_cuda.cpp, cuBLASLt is fake_blas_lt.cpp: both log what they are asked.
"""

import numpy as np
from onnx import helper
import pytest

from rlx import compiler
from rlx.options import Options

RUN = """
import numpy as np, onnx
from onnx import helper as h, numpy_helper
import rlx
w = numpy_helper.from_array(np.arange({rows} * {columns}, dtype=np.{dtype})
                            .reshape({rows}, {columns}), "w")
graph = h.make_graph([h.make_node("MatMul", ["x", "w"], ["y"], "product")], "g",
                     [h.make_tensor_value_info("x", w.data_type, ["n", {rows}])],
                     [h.make_tensor_value_info("y", w.data_type, ["n", {columns}])], [w])
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9)
session = rlx.load(model, device="cuda")
session.run({{"x": np.ones((3, {rows}), np.{dtype})}})
print([row["rung"] for row in session.explain()])
"""
# What lies on the "GPU" when it has run.
KEPT = """
import ctypes, os
pieces = set()
for call in open(os.environ["FAKE_CUDA_LOG"]).read().split():
    if call.startswith("to:"):
        pieces.add(tuple(map(int, call.split(":")[1:])))
wanted = np.arange({rows} * {columns}, dtype=np.float32).reshape({rows}, {columns})
wanted = (wanted.T if {columns} > 1 else wanted).tobytes()
held = {{at: ctypes.string_at(at, n) for at, n in pieces}}
def joined(at):
    got = b""
    while len(got) < len(wanted) and at + len(got) in held:
        got += held[at + len(got)]
    return got
print(any(joined(at) == wanted for at in held))
"""


@pytest.fixture
def asked(python, fake_driver, fake_nvrtc, fake_blas_lt, tmp_path):
    """Runs one product in a fresh process; gives what cuBLASLt was asked, in order."""
    log, driver = tmp_path / "blas_lt", tmp_path / "driver"

    def run(rows=4, columns=8, dtype="float32", fails=False, after="", **env):
        log.write_text("")
        driver.write_text("")
        paths = {"LD_LIBRARY_PATH": fake_driver, "BLAS_LT_LOG": log, "FAKE_CUDA_LOG": driver,
                 "RLX_CUDA_PTX_CACHE": tmp_path / "kernels"}
        env = {name: str(path) for name, path in paths.items()} | env
        code = (RUN + after).format(rows=rows, columns=columns, dtype=dtype)
        done = python(code, fake_nvrtc, fake_blas_lt, fails=fails, **env)
        run.done, run.calls = done, driver.read_text().split()
        return log.read_text().split()

    return run


def test_an_algorithm_is_chosen_once_for_all_processes(asked, tmp_path):
    assert asked() == ["choose:17", "run:17"]
    assert "cublaslt" in asked.done.stdout
    assert asked() == ["run:17"]
    assert len(list((tmp_path / "kernels").glob("*.algo"))) == 1


def test_another_shape_version_or_damage_is_chosen_anew(asked, tmp_path):
    asked()
    assert asked(columns=12) == ["choose:17", "run:17"]
    assert asked(BLAS_LT_VERSION="130200") == ["choose:17", "run:17"]
    for entry in (tmp_path / "kernels").glob("*.algo"):
        entry.write_bytes(entry.read_bytes()[:-1] + b"x")
    assert asked() == ["choose:17", "run:17"]


def test_what_the_library_refuses_is_chosen_anew(asked):
    asked()
    assert asked(BLAS_LT_REFUSES="1") == ["run:17", "choose:17", "run:17"]
    assert asked() == ["run:17"]


def test_weights_are_on_the_device_before_anything_runs(asked, tmp_path):
    """24 MB go in pieces of a MiB through pinned memory, and the product waits for them."""
    asked(rows=3072, columns=2048, BLAS_LT_LOG=str(tmp_path / "driver"))
    calls = asked.calls
    pieces = [i for i, call in enumerate(calls) if call == "cuMemcpyHtoDAsync_v2"]
    assert len(pieces) == 27  # 16 columns or more of each; the input is one more
    assert pieces[-1] < calls.index("run:17")
    assert "cuEventSynchronize" in calls[:pieces[-1]]  # a buffer is filled again when it is free


def test_weights_of_tf32_products_arrive_transposed(asked, tmp_path):
    """Pieces that several threads write; rows of odd length, and a last piece that is smaller."""
    for rows, columns in ((1027, 700), (700, 1027), (300_001, 3), (5, 1), (4, 8)):
        asked(rows=rows, columns=columns, after=KEPT, FAKE_CUDA_COPIES="1",
              BLAS_LT_LOG=str(tmp_path / "driver"))
        assert asked.done.stdout.splitlines()[-1] == "True", (rows, columns)


def test_a_copy_that_fails_is_an_error_of_the_run(asked):
    asked(rows=1536, columns=2048, fails=True, FAKE_CUDA_FAIL="cuMemcpyHtoDAsync_v2:700")
    assert asked.done.returncode != 0 and "Error" in asked.done.stderr
    assert "ILLEGAL_ADDRESS" in asked.done.stderr


def test_a_gpu_opens_while_the_model_is_imported(python, fake_driver, fake_nvrtc, fake_blas_lt):
    """The GPU is open when importing ends, though nobody asked for it in between."""
    python("""
import time, rlx
rlx._core.begin_device("cuda")
for _ in range(200):
    if rlx._core.cuda_statistics():
        break
    time.sleep(0.05)
assert rlx._core.cuda_statistics()[0]["device"] == "cuda:0"
""", fake_nvrtc, fake_blas_lt, LD_LIBRARY_PATH=str(fake_driver))


MAPPED = """
import time, rlx
def mapped(name):
    with open("/proc/self/maps") as maps:
        return name in maps.read()
begin = time.monotonic()
rlx._core.begin_device("cuda")
"""


def test_libraries_open_beside_the_context(python, fake_driver, fake_nvrtc, fake_blas_lt):
    done = python(MAPPED + """
import os
while not mapped("libcublasLt") and time.monotonic() < begin + 60: time.sleep(0.02)
print(mapped("libnvrtc"), time.monotonic() < begin + 50, flush=True)
os._exit(0)  # not waiting for the context
""", fake_nvrtc, fake_blas_lt, LD_LIBRARY_PATH=str(fake_driver),
                  FAKE_CUDA_SLOW="cuDevicePrimaryCtxRetain:60000")
    assert done.stdout == "True True\n"


def test_no_library_opens_before_the_driver_has_begun(python, fake_driver, fake_nvrtc, fake_blas_lt,
                                                      tmp_path):
    """It opens libraries of its own, for which it would wait."""
    log = tmp_path / "calls"
    done = python(MAPPED + """
import os
rlx._core.begin_libraries("cuda", half=False, dnn=True)
while not os.path.exists(os.environ["FAKE_CUDA_LOG"]): time.sleep(0.02)
time.sleep(0.3)
print(mapped("libcublasLt"))
""", fake_nvrtc, fake_blas_lt, LD_LIBRARY_PATH=str(fake_driver), FAKE_CUDA_LOG=str(log),
                  FAKE_CUDA_FAIL="cuInit:100")
    assert done.stdout == "False\n" and "cuInit" in log.read_text()


def test_without_a_driver_no_library_is_opened(python, fake_nvrtc, fake_blas_lt):
    """A CPU machine may well have NVIDIA's packages, of hundreds of megabytes."""
    done = python("""
import time, rlx
rlx._core.begin_device("auto")
rlx._core.begin_libraries("auto", half=False, dnn=True)
time.sleep(0.5)
with open("/proc/self/maps") as maps:
    print([line for line in maps if "libnvrtc" in line or "libcublasLt" in line])
""", fake_nvrtc, fake_blas_lt, LD_LIBRARY_PATH="")
    assert done.stdout == "[]\n"


def test_the_library_prepares_for_the_types_of_the_model(asked):
    begun = {}
    for dtype in ("float32", "float16"):
        asked(dtype=dtype)
        begun[dtype] = [call for call in asked.calls if call.startswith("begun")]
    assert begun == {"float32": ["begun:0"], "float16": ["begun:2"]}


def test_what_cannot_be_opened_is_said_when_it_is_asked_for(python, fake_nvrtc, fake_driver):
    done = python("""
import rlx
rlx._core.begin_device("cuda")
rlx._core.make_device("cuda")
""", fake_nvrtc, fails=True, LD_LIBRARY_PATH=str(fake_driver), FAKE_CUDA_FAIL="cuInit:100")
    assert "DeviceError" in done.stderr and "cuInit" in done.stderr


@pytest.mark.parametrize("op, dtype, options, wanted", [
    ("Conv", "float32", {}, {"half": False, "dnn": True}),
    ("Softmax", "float32", {}, {"half": False, "dnn": False}),  # its attention takes halves only
    ("Softmax", "float16", {}, {"half": True, "dnn": True}),
    ("MatMul", "float16", {}, {"half": True, "dnn": False}),
    ("MatMul", "float32", {"weights": "f16"}, {"half": True, "dnn": False}),
])
def test_libraries_open_that_the_model_will_ask_for(op, dtype, options, wanted, monkeypatch):
    weight = helper.make_tensor("w", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [1], [1])
    node = helper.make_node(op, ["w", "w"][:1 if op == "Softmax" else 2], ["y"])
    graph = helper.make_graph([node], "g", [], [helper.make_empty_tensor_value_info("y")], [weight])
    asked = []
    monkeypatch.setattr(compiler._core, "begin_libraries", lambda name, **kw: asked.append(kw))
    compiler.begin_libraries(compiler.read(helper.make_model(graph)), Options(**options))
    assert asked == [wanted]
