"""Settings and fixtures that every test may use."""

from collections.abc import Callable
import os
from pathlib import Path
import shutil
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


@pytest.fixture(scope="session")
def count_mallocs(tmp_path_factory, source) -> Callable[[str], str]:
    """Run code in a new interpreter where count_malloc_start() and _stop() count every malloc."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    library = tmp_path_factory.mktemp("count") / "count_malloc.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library,
                    source / "tests/count_malloc.c"], check=True)

    def run(code: str) -> str:
        env = os.environ | {"LD_PRELOAD": str(library)}
        env["PYTHONPATH"] = os.pathsep.join([str(source), *sys.path])
        done = subprocess.run([sys.executable, "-c", code], env=env, text=True,
                              capture_output=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
