"""Every kernel that the emulated cases launch compiles by NVRTC, for each architecture we name."""

from concurrent.futures import ThreadPoolExecutor
import ctypes
import importlib.metadata
import os
from pathlib import Path
import re
import tempfile

import pytest

from tests.emu import test_counts, test_interpreted, test_tf32
from tests.emu.case import emulated
from tests.emu.test_kernels import CASES, ROOT

ARCHITECTURES = ["75", "80", "86", "89", "90", "90a", "100a", "120a"]
QUICK = {(12, "80"), (13, "90a")}  # of these some forms of each kernel are compiled every day
FORMS = 6
# Select asks no older card for these.
NEEDS = {"attention_decode_mma": 80, "attention_mma": 80, "conv_mma": 80, "matmul_dequant": 80,
         "matmul_mma": 80}
PACKAGES = {12: "nvidia-cuda-nvrtc-cu12", 13: "nvidia-cuda-nvrtc"}


def library(major: int) -> ctypes.CDLL:
    """NVRTC of a major version, from its wheel."""
    try:
        files = importlib.metadata.files(PACKAGES[major])
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{PACKAGES[major]} is not installed")
    found = [f for f in files if f.name == f"libnvrtc.so.{major}"]
    return ctypes.CDLL(str(found[0].locate()))


def log_of(nvrtc: ctypes.CDLL, folder: Path, architecture: str) -> str:
    """What the compiler says to a kernel; empty when it compiles."""
    source = (folder / "kernel.cu").read_bytes()
    program = ctypes.c_void_p()
    made = nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernel.cu", 0, None, None)
    assert made == 0
    options = [b"--std=c++20", f"--gpu-architecture=sm_{architecture}".encode(),
               f"-I{folder}".encode(), f"-I{ROOT}".encode()]
    array = (ctypes.c_char_p * len(options))(*options)
    code = nvrtc.nvrtcCompileProgram(program, len(options), array)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, text)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return text.value.decode() or f"NVRTC error {code}" if code else ""


def name_of(folder: Path) -> str:
    return re.search(r"kernels/(\w+)\.cu", (folder / "kernel.cu").read_text())[1]


@pytest.fixture(scope="module")
def kernels():
    """The folders of all kernels that the cases ask for, found by running them."""
    device = emulated("emu")
    for case in CASES:
        case.run(device)
    rounding = emulated("emu:tf32")
    for case in test_tf32.CASES:
        case.run(rounding)
    test_interpreted.test_truth_values_choices_and_casts("emu")
    test_counts.test_nonzero("emu")
    test_counts.test_compress("emu", 0)
    test_counts.test_unique("emu", 0, 0)
    test_counts.test_suppression("emu")
    test_counts.test_unseeded_draws_differ("emu")
    cache = Path(tempfile.gettempdir()) / f"rlx-emu-{os.getuid()}"
    asked = (cache / f"asked.{os.getpid()}").read_text().split()
    folders = [cache / name for name in sorted(set(asked))]
    assert {name_of(f) for f in folders} == {f.stem for f in (ROOT / "kernels").glob("*.cu")}
    return folders


def compile_all(folders: list[Path], major: int, architecture: str) -> None:
    nvrtc = library(major)
    wanted = [f for f in folders if int(architecture.rstrip("a")) >= NEEDS.get(name_of(f), 0)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # NVRTC runs without the interpreter's lock
        logs = list(pool.map(lambda folder: log_of(nvrtc, folder, architecture), wanted))
    failed = [f"{folder.name}:\n{log}" for folder, log in zip(wanted, logs) if log]
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize(("major", "architecture"), sorted(QUICK))
def test_every_kernel_compiles(kernels, major, architecture):
    forms: dict[str, list[Path]] = {}
    for folder in kernels:
        forms.setdefault(name_of(folder), []).append(folder)
    some = [f for found in forms.values() for f in found[::-(-len(found) // FORMS)]]
    assert {name_of(f) for f in some} == {f.stem for f in (ROOT / "kernels").glob("*.cu")}
    compile_all(some, major, architecture)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("major", PACKAGES)
def test_every_form_compiles(kernels, major, architecture):
    compile_all(kernels, major, architecture)
