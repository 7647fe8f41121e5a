"""Settings and fixtures that every test may use."""

from collections.abc import Callable
import os
from pathlib import Path
import subprocess
import sys

from hypothesis import settings
import pytest

# The same examples each run, and no deadline: the machine that runs the tests may be busy.
settings.register_profile("rlx", deadline=None, derandomize=True)
settings.load_profile("rlx")

SOURCE = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def source() -> Path:
    """The source tree; a test that reads it is skipped where only tests/ was copied."""
    if not (SOURCE / "CMakeLists.txt").exists():
        pytest.skip("needs the source tree")
    return SOURCE


@pytest.fixture(scope="session")
def fresh_python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run code in a new interpreter, with extra environment variables; it must succeed."""

    def run(code: str, **env: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([sys.executable, "-c", code], env=os.environ | env, text=True,
                              capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done

    return run
