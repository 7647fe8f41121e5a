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


def fake(source: str, library: str) -> Callable:
    """A fixture: the folder in which a file beside this one is compiled to `library`."""
    @pytest.fixture(scope="session")
    def folder(tmp_path_factory) -> Path:
        made = tmp_path_factory.mktemp(Path(source).stem)
        compile_library(HERE / source, made / library)
        return made

    return folder


fake_driver = fake("fake_cuda.cpp", "libcuda.so.1")  # whose kernels do nothing
# Folders of packages, with an NVRTC that compiles nothing, a cuBLASLt that multiplies nothing, and
# cuDNNs for recurrent layers and for graphs.
fake_nvrtc = fake("fake_nvrtc.cpp", "nvidia/cu13/lib/libnvrtc.so.13")
fake_blas_lt = fake("fake_blas_lt.cpp", "nvidia/cu13/lib/libcublasLt.so.13")
fake_cudnn = fake("fake_cudnn.cpp", "nvidia/cudnn/lib/libcudnn.so.9")
fake_cudnn_graph = fake("fake_cudnn_graph.cpp", "nvidia/cudnn/lib/libcudnn.so.9")


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
