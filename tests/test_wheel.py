"""The wheel is small and runs away from the source; a build without oneDNN runs too."""

from pathlib import Path
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


def output_of(script: Path, *arguments: str) -> str:
    done = subprocess.run(["bash", script, *arguments], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    print(done.stdout)
    assert done.returncode == 0
    return done.stdout


def test_wheel_is_small_and_runs_elsewhere(source):
    shown = output_of(source / "tools/check_wheel.sh", sys._base_executable)
    assert shown.endswith("wheel check passed\n")


def test_build_without_onednn_runs(source):
    assert "without oneDNN: built and imported" in output_of(source / "tools/check_portable.sh")
