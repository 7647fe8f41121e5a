"""A fake libcuda for tests without a GPU, and fresh interpreters that load it."""

from collections.abc import Callable
import os
from pathlib import Path
import shutil
import subprocess
import sys

import pytest

HERE = Path(__file__).resolve().parent


def compile_library(source: Path, target: Path) -> Path:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("needs g++")
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([compiler, "-std=c++20", "-shared", "-fPIC", "-O1", "-o", target, source],
                   check=True)
    return target


@pytest.fixture(scope="session")
def fake_driver(tmp_path_factory) -> Path:
    """The folder of a libcuda.so.1 whose kernels do nothing."""
    folder = tmp_path_factory.mktemp("driver")
    compile_library(HERE / "fake_cuda.cpp", folder / "libcuda.so.1")
    return folder


@pytest.fixture(scope="session")
def fake_nvrtc(tmp_path_factory) -> Path:
    """A folder of packages with an NVRTC that compiles nothing."""
    folder = tmp_path_factory.mktemp("nvrtc")
    compile_library(HERE / "fake_nvrtc.cpp", folder / "nvidia/cu13/lib/libnvrtc.so.13")
    return folder


@pytest.fixture(scope="session")
def fake_blas_lt(tmp_path_factory) -> Path:
    """A folder of packages with a cuBLASLt that multiplies nothing."""
    folder = tmp_path_factory.mktemp("blas_lt")
    compile_library(HERE / "fake_blas_lt.cpp", folder / "nvidia/cu13/lib/libcublasLt.so.13")
    return folder


@pytest.fixture(scope="session")
def make_library(tmp_path_factory) -> Callable[..., Path]:
    """Builds a small shared library out of C++ text, at a path below a fresh folder."""

    def make(text: str, path: str) -> Path:
        folder = tmp_path_factory.mktemp("library")
        source = folder / "source.cpp"
        source.write_text(text)
        return compile_library(source, folder / path)

    return make


@pytest.fixture
def python(tmp_path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs code in a fresh interpreter, with variables and folders of packages."""

    def run(code: str, *packages: Path, fails: bool = False, **env: str):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_", "CONDA"))}
        environment |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")} | env
        paths = [*map(str, packages), *sys.path]
        code = f"import sys; packages = {paths[:len(packages)]!r}; sys.path[:0] = {paths!r}\n{code}"
        done = subprocess.run([sys.executable, "-c", code], env=environment, text=True,
                              capture_output=True, timeout=120)
        assert fails or done.returncode == 0, done.stderr
        return done

    return run
