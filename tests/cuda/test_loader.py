"""Where NVIDIA's libraries are looked for, in which order, and what a missing one says."""

import json

import pytest

NVRTC = """
extern "C" int nvrtcVersion(int* major, int* minor) { *major = %d; *minor = %d; return 0; }
"""
CUDNN = """
#include <cstddef>
extern "C" size_t cudnnGetVersion() { return 91900; }
extern "C" size_t cudnnGetCudartVersion() { return %d; }
"""
# NVIDIA's wheels may be installed beside NumPy: their folder is left out once rlx is loaded.
PROBE = """
import json, os, rlx
rlx._core
sys.path[:] = [p for p in sys.path if p in packages or not os.path.isdir(p + "/nvidia")]
report = rlx._core.cuda_probe()
report["libraries"] = {row["name"]: row for row in report["libraries"]}
print(json.dumps(report))
"""


def probe(python, *packages, **env):
    return json.loads(python(PROBE, *packages, **env).stdout)


def wheel(make_library, text, folder, soname):
    """A folder of packages that holds the library as a pip wheel would."""
    return make_library(text, f"site/nvidia/{folder}/lib/{soname}").parents[3]


def test_without_a_driver_the_reason_and_the_remedy_are_told(python):
    report = probe(python, LD_LIBRARY_PATH="")
    driver = report["libraries"]["driver"]
    if driver["usable"]:
        pytest.skip("this machine has a driver")
    assert "libcuda.so.1 was not found" in driver["reason"]
    assert "driver" in driver["remedy"]
    assert report["gpus"] == []
    assert report["reason"].startswith("driver")


def test_a_missing_library_names_the_pip_command(python, fake_driver):
    report = probe(python, LD_LIBRARY_PATH=str(fake_driver), FAKE_CUDA_VERSION="12040")
    rows = report["libraries"]
    assert report["cuda_major"] == 12
    assert rows["driver"]["version"] == "12.4"
    for name, package in (("NVRTC", "nvidia-cuda-nvrtc-cu12"), ("cuBLASLt", "nvidia-cublas-cu12"),
                          ("cuDNN", "nvidia-cudnn-cu12>=9")):
        assert not rows[name]["usable"]
        assert "was not found" in rows[name]["reason"]
        assert rows[name]["remedy"].startswith("pip install") and package in rows[name]["remedy"]


@pytest.mark.parametrize("version, expected", [("13000", 13), ("12040", 12)])
def test_the_newest_major_that_the_driver_supports_is_taken(python, fake_driver, make_library,
                                                            version, expected):
    old = wheel(make_library, NVRTC % (12, 9), "cuda_nvrtc", "libnvrtc.so.12")
    new = wheel(make_library, NVRTC % (13, 0), "cu13", "libnvrtc.so.13")
    report = probe(python, old, new, LD_LIBRARY_PATH=str(fake_driver), FAKE_CUDA_VERSION=version)
    assert report["cuda_major"] == expected
    row = report["libraries"]["NVRTC"]
    assert (row["usable"], row["how"]) == (True, "pip wheel")
    assert row["version"].startswith(str(expected))


def test_wheels_come_before_conda_before_the_loader_before_cuda_home(
        python, fake_driver, make_library):
    site = wheel(make_library, NVRTC % (13, 1), "cu13", "libnvrtc.so.13")
    conda = make_library(NVRTC % (13, 2), "conda/lib/libnvrtc.so.13").parents[1]
    system = make_library(NVRTC % (13, 3), "system/libnvrtc.so.13").parent
    home = make_library(NVRTC % (13, 4), "cuda/lib64/libnvrtc.so.13").parents[1]
    loader = f"{fake_driver}:{system}"

    def version(*packages, **env):
        row = probe(python, *packages, **env)["libraries"]["NVRTC"]
        return row["how"], row["version"]

    everything = {"CONDA_PREFIX": str(conda), "CUDA_HOME": str(home)}
    assert version(site, LD_LIBRARY_PATH=loader, **everything) == ("pip wheel", "13.1")
    assert version(LD_LIBRARY_PATH=loader, **everything) == ("conda", "13.2")
    assert version(LD_LIBRARY_PATH=loader, CUDA_HOME=str(home)) == ("system loader", "13.3")
    assert version(LD_LIBRARY_PATH=str(fake_driver), CUDA_HOME=str(home)) == ("CUDA_HOME", "13.4")


def test_a_library_already_in_the_process_wins(python, fake_driver, make_library):
    site = wheel(make_library, NVRTC % (13, 1), "cu13", "libnvrtc.so.13")
    other = make_library(NVRTC % (12, 7), "torch/libnvrtc.so.12")
    code = f"import ctypes; ctypes.CDLL({str(other)!r})\n{PROBE}"
    report = json.loads(python(code, site, LD_LIBRARY_PATH=str(fake_driver)).stdout)
    row = report["libraries"]["NVRTC"]
    # The loader tells libraries apart by their soname, which this one lacks: its file name counts.
    assert (report["cuda_major"], row["how"]) in ((12, "in the process"), (13, "pip wheel"))


def test_cudnn_of_the_other_major_is_refused(python, fake_driver, make_library):
    nvrtc = wheel(make_library, NVRTC % (13, 0), "cu13", "libnvrtc.so.13")
    cudnn = wheel(make_library, CUDNN % 12090, "cudnn", "libcudnn.so.9")
    row = probe(python, nvrtc, cudnn, LD_LIBRARY_PATH=str(fake_driver))["libraries"]["cuDNN"]
    assert not row["usable"]
    assert "built for CUDA 12, this process uses CUDA 13" in row["reason"]
    right = wheel(make_library, CUDNN % 13000, "cudnn", "libcudnn.so.9")
    row = probe(python, nvrtc, right, LD_LIBRARY_PATH=str(fake_driver))["libraries"]["cuDNN"]
    assert (row["usable"], row["version"]) == (True, "9.19.0")


def test_cudnn_finds_in_the_process_what_it_multiplies_by(python, fake_driver, fake_nvrtc,
                                                         fake_blas_lt, make_library, tmp_path):
    """Whoever opens cuDNN, the others come first, ours and not those that it would look for."""
    looks = """
#include <cstdlib>
#include <fstream>
#include <string>
__attribute__((constructor)) void begin() {
  std::ifstream maps("/proc/self/maps");
  const std::string text(std::istreambuf_iterator<char>(maps), {});
  std::ofstream log(std::getenv("SEEN"));
  for (const char* name : {"libnvrtc", "libcublasLt"}) log << (text.find(name) != text.npos);
}
"""
    cudnn, seen = wheel(make_library, looks, "cudnn", "libcudnn.so.9"), tmp_path / "seen"
    for _ in range(6):  # the threads that open them run side by side
        python("""
import rlx
rlx._core.begin_libraries("cuda", half=False, dnn=True)
""", fake_nvrtc, fake_blas_lt, cudnn, LD_LIBRARY_PATH=str(fake_driver), SEEN=str(seen))
        assert seen.read_text() == "11"


def test_a_library_without_a_function_is_named_with_its_file(python, fake_driver, make_library):
    nvrtc = wheel(make_library, NVRTC % (13, 0), "cu13", "libnvrtc.so.13")
    code = "import rlx; rlx._core.make_device('cuda')"
    done = python(code, nvrtc, fails=True, LD_LIBRARY_PATH=str(fake_driver))
    assert "DeviceError" in done.stderr
    assert "libnvrtc.so.13 has no function 'nvrtcCreateProgram'" in done.stderr


def test_an_old_driver_is_refused(python, fake_driver):
    old = {"LD_LIBRARY_PATH": str(fake_driver), "FAKE_CUDA_VERSION": "11080"}
    assert "rlx needs 12 or newer" in probe(python, **old)["libraries"]["driver"]["reason"]
    asked = python("import rlx; rlx._core.make_device('cuda')", fails=True, **old)
    assert "try: update NVIDIA's driver; device=\"auto\" would take the CPU" in asked.stderr


@pytest.mark.parametrize("name", ["cuda:1", "cuda:-1", "cuda:x", "gpu"])
def test_an_unknown_device_is_named(python, fake_driver, name):
    code = f"import rlx; rlx._core.make_device({name!r})"
    done = python(code, fails=True, LD_LIBRARY_PATH=str(fake_driver))
    assert "DeviceError" in done.stderr and name in done.stderr


def test_auto_without_cuda_is_the_cpu(python):
    code = "import rlx; print(rlx._core.make_device('auto').name, rlx.devices())"
    assert python(code, LD_LIBRARY_PATH="").stdout.split()[0] in ("cpu", "cuda:0")
