"""rlx compile-kernel: NVRTC's images as files, without a GPU."""

import importlib.util
import json

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("nvidia") is None,
                                reason="needs NVRTC's wheel")
SOURCE = '''#include "scale.h"
template <class T> __global__ void axpy(T a, const T* x, T* y) { y[0] += SCALE * a * x[0]; }
extern "C" __global__ void plain(int* x) { *x = N; }
'''


@pytest.fixture
def source(tmp_path):
    (tmp_path / "scale.h").write_text("#define SCALE 2")
    (tmp_path / "k.cu").write_text(SOURCE)
    return tmp_path / "k.cu"


def test_a_cubin(rlx, source, tmp_path):
    target = tmp_path / "k.cubin"
    done = rlx("compile-kernel", source, "--arch", "sm_90", "-o", target, "-D", "N=3",
               "--name", "axpy<float>")
    assert "axpy<float>: _Z4axpyIfEvT_PKS0_PS0_" in done.stdout and "sm_90" in done.stdout
    image = target.read_bytes()
    assert image.startswith(b"\x7fELF")
    assert all(name in image for name in (b"plain", b"_Z4axpyIfEvT_PKS0_PS0_"))
    assert b"rlx_" not in image  # nothing of ours is in it


def test_ptx_and_json(rlx, source, tmp_path):
    target = tmp_path / "k.ptx"
    done = rlx("compile-kernel", source, "--arch", "compute_80", "-o", target, "-D", "N=3",
               "--option=-lineinfo", "--json")
    text = target.read_text()
    assert ".target sm_80" in text and ".entry plain(" in text and not text.endswith("\0")
    told = json.loads(done.stdout)
    assert told["architecture"] == "compute_80" and told["bytes"] == target.stat().st_size
    assert told["symbols"] == {}


@pytest.mark.parametrize("arguments, words", [
    (["--arch", "sm_90", "-o", "k.o"], ["*.cubin or *.ptx"]),
    (["--arch", "sm_91", "-o", "k.ptx"], ["sm_90", "sm_120", "sm_91"]),
    (["--arch", "compute_90", "-o", "k.cubin", "-D", "N=1"], ["no CUBIN", "sm_NN"]),
    (["--arch", "sm_90", "-o", "k.cubin"], ["k.cu(3): error", '"N" is undefined', "*x = N;"]),
    (["--arch", "sm_90", "-o", "none/k.cubin", "-D", "N=1"],
     ["cannot write the result to 'none/k.cubin'"]),
])
def test_what_is_wrong_is_told(rlx, source, arguments, words):
    done = rlx("compile-kernel", source, *arguments, code=2)
    assert all(word in done.stderr for word in words), done.stderr
