"""Our own norms for source files hold, but for a short list of exceptions with reasons."""

import ast
import re

import pytest

from tests.norms import all_findings, cpp_functions, findings, python_functions, source_files

# (path, rule) -> why it may stay. Printed by the test; an entry no longer needed is an error.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("python/rlx/ir/prims.py", "file length"): "the closed table of primitives, read as one",
    ("cpp/program/prims.h", "file length"): "its C++ twin, field for field",
}
MAX_EXCEPTIONS = 8


def test_source_files_keep_the_norms(source):
    for (path, rule), reason in EXCEPTIONS.items():
        print(f"exception: {path}: {rule}: {reason}")
    found = all_findings(source)
    broken = [str(f) for f in found if (f.path, f.rule) not in EXCEPTIONS]
    assert not broken, "\n".join(broken)
    assert set(EXCEPTIONS) <= {(f.path, f.rule) for f in found}, "an exception is not needed"
    assert len(EXCEPTIONS) <= MAX_EXCEPTIONS


def test_no_catch_all_except(source):
    found = []
    for path in sorted((source / "python").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ExceptHandler):
                caught = ast.unparse(node.type) if node.type else "everything"
                if re.search(r"\b(everything|Exception|BaseException)\b", caught):
                    found.append(f"{path.relative_to(source)}:{node.lineno}: catches {caught}")
    assert not found, "\n".join(found)


def test_tolerances_come_from_the_table(source):
    found = []
    for path in sorted((source / "tests").rglob("*.py")):
        if path.name == "tolerance.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg in ("rtol", "atol", "rel", "abs") \
                    and isinstance(node.value, ast.Constant) and node.value.value not in (0, None):
                found.append(f"{path.relative_to(source)}:{node.value.lineno}: {node.arg}")
    assert not found, "\n".join(found)


def test_environment_is_read_in_core_env_only(source):
    found = [path.relative_to(source).as_posix() for path in source_files(source)
             if path.suffix in (".cpp", ".h") and re.search(r"\bgetenv\b", path.read_text())]
    # Libraries that tests put in place of NVIDIA's take their orders from the environment.
    allowed = ("cpp/core/env.", "tests/cuda/fake_", "tests/cuda/taken_down.")
    assert [name for name in found if not name.startswith(allowed)] == []


CPP_SAMPLE = """\
namespace rlx {
struct Shape {
  int rank() const { return rank_; }
  // a brace in a comment {
  int rank_ = 0;
};
const int table[] = {1, 2};
int f(int x) {
  if (x) {
    return '{';
  }
  return 0;
}
const Test test{"name with { in it", [] {
  f(1);
}};
}  // namespace rlx
"""


def test_cpp_functions_are_measured():
    measured = {line: length for _, line, length in cpp_functions(CPP_SAMPLE)}
    assert measured == {3: 1, 8: 6, 14: 3}


def test_python_functions_are_measured_without_docstring():
    text = 'def f():\n    """One.\n\n    Two.\n    """\n    return 1\n'
    assert list(python_functions(text)) == [("f", 1, 2)]


@pytest.mark.parametrize("name, text, rule", [
    ("a.py", '"""Says what it is for."""\n' + "x = 1\n" * 300, "file length"),
    ("a.h", "// Says what it is for.\n" + "int x;\n" * 200, "file length"),
    ("a.cpp", "// Says what it is for.\n" + "x" * 101 + "\n", "columns"),
    ("a.cpp", "#include <vector>\n", "first line"),
    ("a.py", "import os\n", "first line"),
    ("a.cpp", "// Says what it is for.\nvoid f() {\n" + "g();\n" * 59 + "}\n", "function length"),
    ("a.py", '"""Says what it is for."""\ndef f():\n' + "    g()\n" * 60, "function length"),
])
def test_broken_norm_is_seen(tmp_path, name, text, rule):
    path = tmp_path / name
    path.write_text(text)
    assert [finding.rule for finding in findings(path, name)] == [rule]
