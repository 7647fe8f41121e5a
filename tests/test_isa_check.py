"""The link-time check sees a function that AVX2 and baseline code would share."""

import shutil
import subprocess
import sys

import pytest

SHARED = "template <class T> T twice(T x) { return x + x; }\n"
INTERNAL = "namespace { " + SHARED.strip() + " }\n"
PER_SET = "template <class T, int set> T twice(T x) { return x + x; }\n"


@pytest.mark.parametrize("helper, calls, allowed", [
    (SHARED, ("twice(x)", "twice(x)"), False),
    (INTERNAL, ("twice(x)", "twice(x)"), True),
    (PER_SET, ("twice<float, 0>(x)", "twice<float, 1>(x)"), True),
])
def test_shared_function_is_refused(source, tmp_path, helper, calls, allowed):
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("needs g++")
    objects = []
    for name, call in zip(("sum", "sum_avx2"), calls):
        code = tmp_path / f"{name}.cpp"
        code.write_text(f"{helper}float {name}(float x) {{ return {call}; }}\n")
        objects.append(str(tmp_path / f"{name}.cpp.o"))
        subprocess.run([compiler, "-O0", "-c", code, "-o", objects[-1]], check=True)
    done = subprocess.run([sys.executable, source / "cmake/check_isa.py", "nm", *objects],
                          text=True, capture_output=True)
    assert (done.returncode == 0) == allowed, done.stdout + done.stderr
    assert ("sum_avx2.cpp.o" in done.stdout) != allowed
