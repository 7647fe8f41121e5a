"""The import direction holds, and the check that says so sees what breaks it."""

import pytest

from tests.layering import cpp_violations, python_violations


def test_python_imports_go_one_way(source):
    assert python_violations(source / "python") == []


def test_cpp_includes_go_one_way(source):
    assert cpp_violations(source) == []


@pytest.mark.parametrize("file, line", [
    ("ir/graph.py", "from rlx.passes import fold"),
    ("ir/graph.py", "from ..importer import reader"),
    ("ir/graph.py", "import rlx._core"),
    ("passes/fold.py", "from rlx import emit"),
    ("importer/ops/math.py", "from rlx.ir import graph"),
    ("importer/ops/math.py", "from rlx.importer.reader import read"),
    ("importer/ops/math.py", "from rlx.importer.ops.control import Loop"),
    ("importer/ops/math.py", "from rlx.importer.context import Child"),
    ("importer/reader.py", "from rlx import session"),
    ("emit.py", "import rlx.passes"),
    ("session.py", "import onnxruntime"),
    ("session.py", "def f():\n    from onnx import reference"),
    ("backend.py", "import importlib; importlib.import_module('onnx.reference')"),
])
def test_forbidden_python_import_is_seen(tmp_path, file, line):
    path = tmp_path / "rlx" / file
    path.parent.mkdir(parents=True)
    path.write_text(line + "\n")
    assert len(python_violations(tmp_path)) == 1


@pytest.mark.parametrize("file, line", [
    ("ir/graph.py", "from rlx.ir.types import DType"),
    ("ir/graph.py", "from . import types"),
    ("importer/ops/math.py", "from rlx.ir import build"),
    ("importer/ops/math.py", "from ..registry import op"),
    ("emit.py", "from rlx import _core"),
    ("session.py", "from rlx.passes import PIPELINE"),
    ("session.py", "from onnx import helper"),
    ("cli/peers.py", "import onnxruntime"),
])
def test_allowed_python_import_is_left_alone(tmp_path, file, line):
    path = tmp_path / "rlx" / file
    path.parent.mkdir(parents=True)
    path.write_text(line + "\n")
    assert python_violations(tmp_path) == []


@pytest.mark.parametrize("file, target, allowed", [
    ("cpp/core/dtype.h", "program/prims.h", False),
    ("cpp/program/prims.h", "core/dtype.h", True),
    ("cpp/plan/memory.cpp", "exec/run.h", False),
    ("cpp/exec/run.cpp", "cpu/select.h", False),
    ("cpp/exec/run.cpp", "backend.h", True),
    ("cpp/backend.h", "exec/run.h", False),
    ("cpp/backend.h", "plan/memory.h", False),
    ("cpp/cpu/select.cpp", "exec/run.h", False),
    ("cpp/cpu/region.cpp", "kernels/params/region.h", True),
    ("cpp/bindings/session.cpp", "exec/run.h", True),
    ("kernels/softmax.cu", "core/dtype.h", False),
    ("kernels/softmax.cu", "kernels/include/types.h", True),
])
def test_cpp_include_is_judged(tmp_path, file, target, allowed):
    included = tmp_path / target if target.startswith("kernels") else tmp_path / "cpp" / target
    for path, text in ((included, ""), (tmp_path / file, f'#include "{target}"\n')):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert (cpp_violations(tmp_path) == []) == allowed


@pytest.mark.parametrize("file, header, allowed", [
    ("kernels/softmax.cu", "math.h", False),
    ("cpp/cpu/region.cpp", "cmath", True),
    ("cpp/cpu/region.cpp", "dnnl.h", False),
    ("cpp/exec/run.cpp", "dnnl_types.h", False),
    ("cpp/cpu/onednn/conv.cpp", "dnnl.h", True),
])
def test_system_header_is_judged(tmp_path, file, header, allowed):
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(f"#include <{header}>\n")
    assert (cpp_violations(tmp_path) == []) == allowed


@pytest.mark.parametrize("text, allowed", [
    ("#if defined(__CUDACC__)\n#else\n#include <cmath>\n#endif\n", True),
    ("#ifndef __CUDACC__\n#include <cmath>\n#endif\n", True),
    ("#if !defined(__CUDACC__)\n#else\n#include <cmath>\n#endif\n", False),
    ("#ifdef __CUDACC__\n#include <cmath>\n#endif\n", False),
    ("#ifndef __CUDACC__\n#endif\n#ifdef X\n#else\n#include <cmath>\n#endif\n", False),
])
def test_system_header_for_the_host_alone_is_left_alone(tmp_path, text, allowed):
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/philox.h").write_text(text)
    assert (cpp_violations(tmp_path) == []) == allowed
