"""Runs the C++ tests: as the development build left them, and with the sanitizers."""

from pathlib import Path
import subprocess

import pytest


def passes(command: list[str | Path]) -> None:
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout


def test_cpp_tests_pass(source):
    program = source / "build/rlx_cpp_tests"
    if not program.exists():
        pytest.skip(f"needs {program.relative_to(source)} of a development build")
    passes([program])


@pytest.mark.slow
def test_cpp_tests_pass_with_sanitizers(source):
    passes(["bash", source / "tools/sanitize.sh"])
