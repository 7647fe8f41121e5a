"""The installed package: version, build facts, and what importing it costs and leaves behind."""

from importlib import metadata
import json
import re
import statistics

import pytest
import rlx

IMPORT_TIME = """
import time
import numpy, onnx
start = time.process_time()
import rlx
rlx.load, rlx.__version__  # names are loaded when first used
print(time.process_time() - start)
"""
ENVIRONMENT = """
import json, os
before = dict(os.environ)
import rlx
rlx.load
print(json.dumps([before, dict(os.environ)]))
"""
CUDA_NAMES = re.compile(r"libcu|libnv|nvidia", re.IGNORECASE)


def test_version_comes_from_pyproject(source):
    text = (source / "pyproject.toml").read_text()
    declared = re.search(r'^version = "(.+)"$', text, re.MULTILINE).group(1)
    assert rlx.__version__ == declared
    assert rlx._core.build_info()["version"] == declared


def test_dir_lists_public_names_only():
    listed = {name for name in dir(rlx) if not name.startswith("__")}
    assert listed == set(rlx.__all__) and "__version__" in dir(rlx)
    assert all(hasattr(rlx, name) for name in dir(rlx))


def test_version_is_the_installed_one():
    try:
        installed = metadata.version("rlx")
    except metadata.PackageNotFoundError:
        pytest.skip("needs rlx to be installed, not on PYTHONPATH")
    assert rlx.__version__ == installed


def test_import_searches_no_cuda_library(fresh_python):
    # The dynamic loader's log shows searches in vain too, so no GPU is needed to see one.
    log = fresh_python("import rlx; rlx.load", LD_DEBUG="libs").stderr
    searched = re.findall(r"find library=(\S+)", log)
    assert any(name.startswith("libstdc++") for name in searched), "the log shows nothing"
    assert not [name for name in searched if CUDA_NAMES.search(name)]


def test_a_gpu_begins_to_open_before_anything_large_is_imported(fresh_python):
    # Its context and the imports take as long as each other, so they go side by side.
    assert fresh_python("""
import sys, numpy, rlx
from rlx import _core
LATER = ("onnx", "google", "ml_dtypes", "rlx.ir", "rlx.importer", "hashlib")
_core.begin_device = lambda device: print([m for m in sys.modules if m.startswith(LATER)])
try:
    rlx.load("missing.onnx", device="cpu")
except rlx.ModelError:
    print("rlx.importer.reader" in sys.modules)
""").stdout == "[]\nTrue\n"


MODEL = """
import sys, numpy as np, rlx
def written(path):
    import onnx
    from onnx import helper as h, numpy_helper
    value = lambda name, *shape: h.make_tensor_value_info(name, 1, shape)
    branch = lambda op: h.make_graph([h.make_node(op, ["x"], ["z"])], op, [], [value("z", 3)])
    w = numpy_helper.from_array(np.full((300, 3), 2, np.float32), "w")
    nodes = [h.make_node("Greater", ["first", "zero"], ["positive"]),
             h.make_node("If", ["positive"], ["z"], then_branch=branch("Neg"),
                         else_branch=branch("Abs")),
             h.make_node("SequenceConstruct", ["z", "x"], ["parts"]),
             h.make_node("ConcatFromSequence", ["parts"], ["both"], axis=0),
             h.make_node("Reshape", ["both", "shape"], ["rows"]),
             h.make_node("MatMul", ["w", "rows"], ["product"]),
             h.make_node("ReduceMax", ["product"], ["y"], keepdims=0)]
    constants = [numpy_helper.from_array(np.float32(0), "zero"), w,
                 numpy_helper.from_array(np.array([3, 2]), "shape")]
    graph = h.make_graph(nodes, "g", [value("x", 3), value("first")], [value("y")], constants)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=1024)
    return onnx.load(path)
FEEDS = {"x": np.array([1, -2, 3], np.float32), "first": np.float32(1)}
"""  # [[-1, 2], [-3, 1], [-2, 3]] by twos, summed: -12 and 12


@pytest.mark.parametrize("implementation", ["upb", "python"])
def test_a_run_takes_onnx_messages_without_the_package(fresh_python, tmp_path, implementation):
    """Whose import takes longer than all else; whoever imports it later has the same classes."""
    path = str(tmp_path / "m.onnx")
    assert fresh_python(MODEL + f"""
import subprocess
subprocess.run([sys.executable, "-c", {MODEL!r} + "written({path!r})"], check=True)
print(rlx.run({path!r}, FEEDS)["y"], "onnx" in sys.modules)
from rlx.importer.protos import ModelProto
import onnx
print(ModelProto is onnx.ModelProto is onnx.onnx_ml_pb2.ModelProto, ModelProto.__module__)
print(rlx.run(onnx.load({path!r}), FEEDS)["y"])
""", PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=implementation).stdout == """12.0 False
True onnx.onnx_ml_pb2
12.0
"""


@pytest.mark.parametrize("first", [
    "import onnx",
    "from google.protobuf.internal import api_implementation as a; a.Type = lambda: 'cpp'",
    "import importlib.util; importlib.util.find_spec = lambda name: None"])
def test_the_package_itself_serves_where_it_must(fresh_python, tmp_path, first):
    """It is there already, protobuf would make classes anew, or its files lie elsewhere."""
    path = str(tmp_path / "m.onnx")
    assert fresh_python(MODEL + f"""
{first}
from rlx.importer import protos
print("onnx" in sys.modules)
print(rlx.run(written({path!r}), FEEDS)["y"])
import onnx
print(protos.ModelProto is onnx.ModelProto)
""").stdout == "True\n12.0\nTrue\n"


def test_messages_may_come_from_a_module_that_stands_for_onnx(fresh_python):
    """As where a program keeps the package out and puts a module of the generated classes there."""
    assert fresh_python("""
import importlib, sys, types
messages = importlib.import_module("onnx.onnx_ml_pb2")
stands = types.ModuleType("onnx")
stands.__dict__.update({k: v for k, v in vars(messages).items() if k[0] != "_"})
sys.modules = {k: v for k, v in sys.modules.items() if k.split(".")[0] != "onnx"}
sys.modules["onnx"] = stands
from rlx.importer import protos
print(protos.ModelProto is messages.ModelProto)
""").stdout == "True\n"


@pytest.mark.bench
def test_import_takes_at_most_50_ms_more_than_numpy_and_onnx(fresh_python):
    # Processor time, which a busy machine does not stretch. As after pip, bytecode is there: the
    # first import writes it and is not counted.
    seconds = [float(fresh_python(IMPORT_TIME, PYTHONDONTWRITEBYTECODE="").stdout)
               for _ in range(10)][1:]
    print("import rlx after numpy and onnx, ms:", [round(1e3 * s, 1) for s in seconds])
    assert statistics.median(seconds) <= 0.050


def test_import_leaves_the_environment_alone(fresh_python):
    before, after = json.loads(fresh_python(ENVIRONMENT).stdout)
    assert before == after
