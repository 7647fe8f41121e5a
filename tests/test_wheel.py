"""The wheel passes auditwheel, stays under its size and runs away from the source."""

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_wheel_is_small_and_runs_elsewhere(source):
    done = subprocess.run(["bash", source / "tools/check_wheel.sh", sys._base_executable],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(done.stdout)
    assert done.returncode == 0
    assert done.stdout.endswith("wheel check passed\n")
