"""rlx.ort.install() and python -m rlx.ort stand in for onnxruntime in a whole process."""

import os
import subprocess
import sys

from tests.ort.material import sums

PROGRAM = '''
import sys
import numpy as np
import onnxruntime
import onnxruntime as ort
from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions
from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession as Same
import onnxruntime.capi.onnxruntime_pybind11_state
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument
from onnxruntime.capi import _pybind_state, onnxruntime_pybind11_state as state

assert Same is InferenceSession is ort.InferenceSession
assert state.Fail is Fail is onnxruntime.capi.onnxruntime_pybind11_state.Fail
assert _pybind_state.get_available_providers() == ort.get_available_providers()
session = InferenceSession(sys.argv[1], SessionOptions(), ["CPUExecutionProvider"])
assert session.run(["y"], {"x": np.ones((1, 3), np.float32)})[0].tolist() == [[2, 3, 4]]
try:
    session.run(None, {"x": np.ones((1, 3))})
except InvalidArgument:
    print("runs", ort.get_build_info(), __name__)
try:
    import onnxruntime.quantization
except ModuleNotFoundError:
    print("has no quantization")
with open("/proc/self/maps") as maps:
    print("maps", sum("libonnxruntime" in line for line in maps))
'''


def started(*arguments, cwd):
    done = subprocess.run([sys.executable, *arguments], cwd=cwd, text=True, capture_output=True,
                          timeout=120, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_program_runs_unchanged(tmp_path):
    (tmp_path / "m.onnx").write_bytes(sums())
    (tmp_path / "helper.py").write_text("name = 'helper'\n")
    (tmp_path / "program.py").write_text("import helper\n" + PROGRAM)
    for arguments in (["program.py"], ["-m", "program"]):
        shown = started("-m", "rlx.ort", *arguments, "m.onnx", cwd=tmp_path)
        assert shown.startswith("runs rlx ") and "__main__" in shown
        assert "has no quantization" in shown and shown.endswith("maps 0\n")


def test_install_before_the_program_imports_it(tmp_path):
    (tmp_path / "m.onnx").write_bytes(sums())
    code = "import rlx.ort; rlx.ort.install(); rlx.ort.install()\n" + PROGRAM
    assert started("-c", code, "m.onnx", cwd=tmp_path).endswith("maps 0\n")


def test_install_after_the_program_imported_it_is_refused(tmp_path):
    code = ("import onnxruntime, rlx.ort\n"
            "try:\n    rlx.ort.install()\nexcept ImportError as error:\n    print(error)")
    assert "before" in started("-c", code, cwd=tmp_path)


def test_without_a_program_the_usage_is_shown(tmp_path):
    done = subprocess.run([sys.executable, "-m", "rlx.ort"], cwd=tmp_path, text=True,
                          capture_output=True, timeout=120,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 1 and done.stderr.startswith("usage: ")
