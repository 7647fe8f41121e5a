"""Kernels compiled ahead: on a machine without a GPU for others, and when a model is loaded.

NVRTC is fake_nvrtc.cpp, which compiles nothing, but where a test says real.
"""

import importlib.util

import pytest

BUILD = """
import sys
import models, numpy as np, rlx
from tests.models.test_builders import SIZES, inputs
name = "bert-base"
builder = models.BUILDERS[name]
model = builder.build(0, np.dtype("float32"), **builder.NARROW)
feeds = [inputs(name, size) for size in SIZES[name]]
"""
RUN = """
with rlx.load(model, device="cuda") as session:
    for each in feeds: session.run(each)
    rlx._core.finish_kernels(session._device)  # a Region may have been interpreted until now
rows = rlx._core.cuda_statistics()[0]
print(rows["kernels_compiled"], rows["kernels_read"])
"""


HALF = """
import numpy as np, onnx, rlx
from onnx import TensorProto as T, helper as h, numpy_helper
rng = np.random.default_rng(0)
w = [numpy_helper.from_array(rng.standard_normal(s, np.float32), n)
     for n, s in (("w", (64, 64)), ("v", (64, 32)), ("k", (8, 4, 3, 3)))]
nodes = [h.make_node("MatMul", ["x", "w"], ["p"]), h.make_node("Relu", ["p"], ["q"]),
         h.make_node("MatMul", ["q", "v"], ["y"]), h.make_node("Conv", ["i", "k"], ["z"])]
info = h.make_tensor_value_info
graph = h.make_graph(nodes, "g",
                     [info("x", T.FLOAT, ["n", 64]), info("i", T.FLOAT, ["n", 4, 9, 9])],
                     [info("y", T.FLOAT, ["n", 32]), info("z", T.FLOAT, None)], w)
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9)
feeds = [{"x": np.ones((n, 64), np.float32), "i": np.ones((n, 4, 9, 9), np.float32)}
         for n in (1, 3)]
"""


def images(folder):
    """What NVRTC made, without the cache's own header."""
    return [path.read_bytes()[80:] for path in sorted(folder.glob("*.cubin"))]


@pytest.mark.parametrize("libraries", [False, True])
def test_a_shipped_folder_leaves_nothing_to_compile(
        python, fake_driver, fake_nvrtc, fake_blas_lt, tmp_path, libraries):
    folder = tmp_path / "shipped"
    python(BUILD + f"""
names = rlx.compile(model, {str(folder)!r}, architectures=["sm_90"])
assert names and all(name.endswith(".cubin") for name in names)
""", fake_nvrtc)  # there is no driver
    before = len(images(folder))
    packages = (fake_nvrtc, fake_blas_lt) if libraries else (fake_nvrtc,)
    done = python(BUILD + RUN, *packages, LD_LIBRARY_PATH=str(fake_driver),
                  RLX_CUDA_PTX_CACHE=str(folder), BLAS_LT_LOG=str(tmp_path / "log"))
    compiled, read = map(int, done.stdout.split())
    assert compiled == 0 and read >= 4
    assert len(images(folder)) == before


@pytest.mark.parametrize("libraries", [False, True])
@pytest.mark.parametrize("how", ["rlx.compile", "the command"])
def test_a_folder_for_half_weights_leaves_nothing_to_compile(
        python, fake_driver, fake_nvrtc, fake_blas_lt, tmp_path, libraries, how):
    """A Session with weights="f16" on a GPU rounds activations too, so its kernels are others."""
    folder = tmp_path / "shipped"
    python(HALF + f"""
from rlx.cli import main
if {how!r} == "rlx.compile":
    rlx.compile(model, {str(folder)!r}, architectures=["sm_90"], weights="f16")
else:
    path = {str(tmp_path / "m.onnx")!r}
    onnx.save(model, path)
    for n in (1, 2):
        assert main(["compile", path, "-o", {str(folder)!r}, "--arch", "sm_90", "--weights", "f16",
                     "--dim", f"n={{n}}"]) == 0
""", fake_nvrtc)
    packages = (fake_nvrtc, fake_blas_lt) if libraries else (fake_nvrtc,)
    done = python(HALF + RUN.replace('device="cuda"', 'device="cuda", weights="f16"'), *packages,
                  LD_LIBRARY_PATH=str(fake_driver), RLX_CUDA_PTX_CACHE=str(folder),
                  BLAS_LT_LOG=str(tmp_path / "log"))
    compiled, read = map(int, done.stdout.split())
    assert compiled == 0 and read >= 2


def test_each_architecture_gets_its_own(python, fake_nvrtc, tmp_path):
    folder = tmp_path / "shipped"
    python(BUILD + f"""
rlx.compile(model, {str(folder)!r}, feeds[0], architectures=["sm_80", "sm_90"])
""", fake_nvrtc)
    texts = images(folder)
    assert {a for a in (b"sm_80", b"sm_90a") if any(b"-arch=" + a in t for t in texts)} == {
        b"sm_80", b"sm_90a"}


def test_aot_compiles_when_the_model_is_loaded(python, fake_driver, fake_nvrtc):
    done = python(BUILD + """
counts = []
with rlx.load(model, device="cuda", compile="aot") as session:
    counts.append(rlx._core.cuda_statistics()[0]["kernels_compiled"])
    for each in feeds:
        session.run(each)
        counts.append(rlx._core.cuda_statistics()[0]["kernels_compiled"])
print(*counts)
""", fake_nvrtc, LD_LIBRARY_PATH=str(fake_driver))
    first, *later = map(int, done.stdout.split())
    assert first >= 4 and set(later) == {first}


def test_a_kernel_that_does_not_compile_is_told_to_who_asked_for_it(
        python, fake_driver, fake_nvrtc, tmp_path):
    """By rlx.compile and by compile="aot"; other Sessions on the same GPU go on."""
    done = python(HALF + """
import os
os.environ["BREAKS"] = "conv"
def told(call):
    try: call()
    except rlx.InternalError as error: return "line 7: kernels/conv" in str(error)
print(told(lambda: rlx.compile(model, "shipped", architectures=["sm_90"])))
print(told(lambda: rlx.load(model, device="cuda", compile="aot")))
with rlx.load(model, device="cuda") as session:
    print(told(lambda: session.run(feeds[0])), told(session.prepare))
del model.graph.node[-1], model.graph.input[-1], model.graph.output[-1], model.graph.initializer[-1]
with rlx.load(model, device="cuda", compile="aot") as session:
    print(session.run({"x": feeds[0]["x"]})["y"].shape)
""".replace('"shipped"', repr(str(tmp_path / "shipped"))), fake_nvrtc,
                  LD_LIBRARY_PATH=str(fake_driver))
    assert done.stdout.splitlines() == ["True", "True", "True True", "(1, 32)"]


def test_what_is_no_architecture_is_said_at_once(python, fake_driver, fake_nvrtc, tmp_path):
    done = python(BUILD + f"""
rlx.compile(model, {str(tmp_path / "made")!r}, architectures=["gfx942"])
""", fake_nvrtc, fails=True)
    assert "InputError" in done.stderr and "gfx942" in done.stderr
    assert not (tmp_path / "made").exists()


def test_preparing_needs_shapes_only(python, fake_driver, fake_nvrtc):
    python(BUILD + """
with rlx.load(model, device="cpu", compile="aot") as session:
    assert session.counters()["plans"] == 2 and session.counters()["runs"] == 0
    session.prepare(feeds[1])
    assert session.counters()["plans"] == 3
try:
    rlx.load(model, device="cpu", compile="never")
except rlx.InputError as error:
    assert "compile" in str(error)
else:
    raise AssertionError
""", fake_nvrtc)


def test_real_images_by_the_command(python, tmp_path):
    """NVRTC itself, which needs no GPU: ELF files for the architecture asked for."""
    if importlib.util.find_spec("nvidia") is None:
        pytest.skip("needs NVRTC's wheel")
    python(f"""
import numpy as np, onnx
from onnx import TensorProto as T, helper as h
from rlx.cli import main
graph = h.make_graph([h.make_node("Sigmoid", ["x"], ["y"])], "g",
                     [h.make_tensor_value_info("x", T.FLOAT, ["n", 8])],
                     [h.make_tensor_value_info("y", T.FLOAT, ["n", 8])])
onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9), "m.onnx")
assert main(["compile", "m.onnx", "-o", {str(tmp_path / "real")!r}, "--arch", "sm_90",
             "--shape", "x=4x8"]) == 0
""".replace('"m.onnx"', repr(str(tmp_path / "m.onnx"))))
    made = images(tmp_path / "real")
    assert len(made) == 2 and all(image.startswith(b"\x7fELF") for image in made)
