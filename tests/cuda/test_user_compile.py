"""Users' kernels by NVRTC 12 and 13 and by nvJitLink, which need no GPU."""

import importlib.metadata

import pytest

NVRTC = {12: "nvidia-cuda-nvrtc-cu12", 13: "nvidia-cuda-nvrtc"}
LINKER = {12: "nvidia-nvjitlink-cu12", 13: "nvidia-nvjitlink"}
SOURCE = r'''
#include "scale.h"
struct Pair { double a; int b; };
template <class T> __global__ void axpy(T a, const T* x, T* y, size_t n) {
  size_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += SCALE * a * x[i];
}
extern "C" __global__ void plain(Pair p, unsigned char* to, bool flag, const void* any) {
  if (flag) to[0] = p.b;
}
namespace deep { __global__ void nothing() {} }
'''
# Tells an error by its kind and text.
REFUSED = """
def refused(kind, call, *words):
    try:
        call()
    except rlx.Error as error:
        assert type(error) is kind, (type(error), error)
        missing = [word for word in words if word not in str(error)]
        assert not missing, (missing, str(error))
        return str(error)
    raise AssertionError(words)
"""
BEGIN = f"""
import os, pathlib, rlx
SOURCE = {SOURCE!r}
HEADERS = {{"scale.h": "#define SCALE 2"}}
def build(name, source=SOURCE, arch="sm_90", **options):
    return rlx.cuda.compile(source, name, arch=arch, **{{"headers": HEADERS}} | options)
{REFUSED}"""


def path_of(package: str, name: str):
    try:
        files = importlib.metadata.files(package)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    return next(f for f in files if f.name == name).locate()


@pytest.fixture(params=NVRTC)
def nvrtc(request, python):
    """Runs code with NVRTC of this major."""
    library = path_of(NVRTC[request.param], f"libnvrtc.so.{request.param}")

    def run(code, **env):
        load = f"import ctypes; ctypes.CDLL({str(library)!r})\n"
        return python(load + BEGIN + code, **env).stdout

    run.major = request.param
    return run


def test_a_template_is_instantiated_and_its_types_are_known(nvrtc):
    nvrtc("""
k = build("axpy<float>", expressions=["axpy<double>", "deep::nothing"])
assert [p.type for p in k.parameters] == ["float", "float const*", "float*", "unsigned long"]
assert [p.size for p in k.parameters] == [4, 8, 8, 8]
assert [p.written for p in k.parameters] == [False, False, True, False]
assert [[d.name for d in p.dtypes] for p in k.parameters] == [["FLOAT32"]] * 3 + [["UINT64"]]
for name in ("axpy<float>", "axpy<double>", "deep::nothing"):
    symbol = k.lowered_name(name)
    assert symbol.startswith("_Z") and f".entry {symbol}(" in k.ptx, name
    assert symbol.encode() in k.cubin
assert k.lowered_name("axpy<double>") == "_Z4axpyIdEvT_PKS0_PS0_m"  # the Itanium ABI's
refused(rlx.InputError, lambda: k.lowered_name("axpy<int>"), "axpy<int>", "axpy<double>")
assert k.arch == "sm_90" and k.cubin.startswith(b"\\x7fELF") and ".target sm_90" in k.ptx
""")


def test_plain_kernels_and_structures(nvrtc):
    nvrtc("""
k = build("plain")
assert k.lowered_name("plain") == "plain"
assert [(p.type, p.size, p.pointer) for p in k.parameters] == [
    ("Pair", 16, False), ("unsigned char*", 8, True), ("bool", 1, False), ("void const*", 8, True)]
assert [p.dtypes for p in k.parameters][::3] == [(), ()]
assert build("deep::nothing").parameters == ()
assert "plain(Pair, unsigned char*, bool, void const*)" in repr(k)
refused(rlx.UnsupportedError, lambda: build("f", "__global__ void f(int& x) {}"), "int&")
nested = "template <class A, class B> struct Two { A a; B b; };" \
         "__global__ void f(Two<int, Two<char, long>> x, int (*p)[3], void (*g)(int, float)) {}"
assert [(p.size, p.dtypes, p.pointer) for p in build("f", nested).parameters] == [
    (24, (), False), (8, (), True), (8, (), False)]
""")


def test_each_standard_is_passed_on(nvrtc):
    nvrtc("""
seventeen = "template <class T> __global__ void f(T* p) { if constexpr (sizeof(T) == 4) *p = 1; }"
twenty = "template <class T> requires(sizeof(T) == 4) __global__ void f(T* p) { *p = 1; }"
for std in (17, "c++17", 20):
    build("f<int>", seventeen, std=std)
build("f<int>", twenty, std=20)
refused(rlx.InputError, lambda: build("f<int>", twenty), "requires")
fourteen = "template <class T> __device__ T v; __global__ void f(int* p) { *p = v<int>; }"
build("f", fourteen, std=14)
refused(rlx.InputError, lambda: build("f", fourteen, std=11), "14 or 17 or 20", "11")
""")


def test_options_reach_the_compiler(nvrtc):
    nvrtc("""
divide = "extern \\"C\\" __global__ void f(float* x) { x[0] = x[0] / x[1] + N; }"
exact, fast = (build("f", divide, defines={"N": 1}, fast_math=fast).ptx for fast in (False, True))
assert "div.rn.f32" in exact and "div.approx.ftz.f32" in fast
assert "div.rn.ftz.f32" in build("f", divide, defines=["N=1"], ftz=True).ptx
assert ".maxnreg" not in exact
assert "-lineinfo" not in exact and ".loc" in build("f", divide, defines={"N": 1},
                                                    options=["-lineinfo"]).ptx
for wrong in (dict(defines="N=1"), dict(options="-lineinfo"), dict(options=[1]),
              dict(max_registers=0), dict(max_registers=True), dict(fast_math=1), dict(ftz="yes"),
              dict(include_paths="."), dict(options=["-I."]), dict(options=["-arch=sm_80"]),
              dict(options=["--std=c++20"]), dict(options=["-dlto"]), dict(options=["--use-pch=a"]),
              dict(options=["--prec-div", "false"]), dict(device="cpu")):
    refused(rlx.InputError, lambda: build("f", divide, **{"defines": ["N=1"]} | wrong))
refused(rlx.InputError, lambda: build("f", divide, options=["--bogus"]), "--bogus")
refused(rlx.InputError, lambda: build(""), "name")
refused(rlx.InputError, lambda: build("f", 5), "int")
""")


def test_registers_are_bounded(nvrtc):
    """Of the CUBIN: in .nv.info attribute 0x2f holds a symbol and its registers."""
    nvrtc(r"""
import re
many = "extern \"C\" __global__ void f(float* x) { float v[64];" \
       "for (int i = 0; i < 64; ++i) v[i] = x[i * 32]; __syncthreads();" \
       "for (int i = 0; i < 64; ++i) x[i] = v[i] * v[63 - i]; }"
def registers(**options):
    return re.search(rb"\x04\x2f\x08\0....(.)\0\0\0", build("f", many, **options).cubin, re.S)[1][0]
assert registers() > 32 >= registers(max_registers=32)
""")


def test_architectures(nvrtc):
    nvrtc("""
for given, made in (("sm_80", "sm_80"), (90, "sm_90"), ("90a", "sm_90a"), ("120", "sm_120")):
    k = build("plain", arch=given)
    assert k.arch == made and f".target {made}" in k.ptx and k.cubin
k = build("plain", arch="compute_89")
assert k.arch == "compute_89" and ".target sm_89" in k.ptx
refused(rlx.InputError, lambda: k.cubin, "CUBIN", "sm_NN")
for wrong in ("sm_91", "gfx942", "sm_", "sm_90z", "compute_1", "", "sm_80 "):
    refused(rlx.InputError, lambda: build("plain", arch=wrong), "sm_80", "sm_90", "sm_120", wrong)
""")


def test_an_error_carries_the_log_and_the_line(nvrtc):
    nvrtc("""
source = "__global__ void f(int* x) {\\n  *x = missing;\\n}\\n__global__ void g(int) {}"
text = refused(rlx.InputError, lambda: build("f", source, program="mine.cu"),
               "NVRTC", "mine.cu(2): error", '"missing" is undefined', "*x = missing;")
assert "rlx_s" not in text, text
text = refused(rlx.InputError, lambda: build("h", source.replace("missing", "1")), "NVRTC", "h")
assert "rlx_s" not in text, text
refused(rlx.InputError, lambda: build("h<", source.replace("missing", "1")), "NVRTC")
k = build("f", "__global__ void f(int* x) { int unused; }")
assert "kernel.cu(1): warning" in k.log and "unused" in k.log
""")


def test_files_and_folders(nvrtc, tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below/scale.h").write_text('#include "one.h"\n#define SCALE ONE')
    (tmp_path / "below/one.h").write_text("#define ONE 1")
    (tmp_path / "kernel.cu").write_text(SOURCE.replace("scale.h", "below/scale.h"))
    nvrtc(f"""
folder = pathlib.Path({str(tmp_path)!r})
k = build("plain", folder / "kernel.cu", headers=None)
assert k.parameters[1].type == "unsigned char*"
assert build("plain", headers=None, include_paths=[folder / "below"]).cubin
refused(rlx.InputError, lambda: build("plain", headers=None), "scale.h", "include_paths")
refused(rlx.InputError, lambda: build("plain", folder / "none.cu"), "none.cu")
""")


def test_lto_links_to_a_cubin(nvrtc):
    path_of(LINKER[nvrtc.major], f"libnvJitLink.so.{nvrtc.major}")
    nvrtc("""
k = build("axpy<float>", lto=True)
assert k.cubin.startswith(b"\\x7fELF") and k.lowered_name("axpy<float>").encode() in k.cubin
assert [p.type for p in k.parameters] == ["float", "float const*", "float*", "unsigned long"]
refused(rlx.InputError, lambda: k.ptx, "PTX", "lto=False", "compute_NN")
assert build("axpy<float>").key != k.key
""")


def test_lto_for_a_virtual_architecture_gives_ptx(nvrtc):
    path_of(LINKER[nvrtc.major], f"libnvJitLink.so.{nvrtc.major}")
    nvrtc("""
k = build("axpy<float>", lto=True, arch="compute_90")
symbol = k.lowered_name("axpy<float>")
assert k.arch == "compute_90" and k.ptx.rstrip().endswith("}"), k
assert ".target sm_90" in k.ptx and f".entry {symbol}(" in k.ptx
refused(rlx.InputError, lambda: k.cubin, "CUBIN", "sm_NN")
assert [p.type for p in k.parameters] == ["float", "float const*", "float*", "unsigned long"]
assert "fma.rn.ftz.f32" in build("axpy<float>", lto=True, arch="compute_90", ftz=True).ptx
again = build("axpy<float>", lto=True, arch="compute_90")
assert again.ptx == k.ptx and build("axpy<float>", lto=True).key != k.key
""")


def test_options_of_the_compiler_reach_the_linker(nvrtc):
    path_of(LINKER[nvrtc.major], f"libnvJitLink.so.{nvrtc.major}")
    nvrtc("""
def linked(*options, **more):
    return build("axpy<float>", lto=True, options=options, **more).cubin
plain = linked()
assert linked(max_registers=16) != plain
assert linked(fast_math=True) != plain and linked(ftz=True) != plain
assert linked("--fmad=false") != plain
for ftz in (False, True):      # a flag is given once, by the more particular option
    both = linked("--prec-div=true", "--fmad=false", fast_math=True, ftz=ftz)
    assert both not in (plain, linked(fast_math=True))
assert b".debug_line" in linked("--generate-line-info") and b".debug_line" not in plain
assert b".debug_info" in linked("--device-debug") and b".debug_info" not in plain
""")


@pytest.mark.parametrize("version, words", [
    (None, ("nvJitLink", "was not found", "pip install")),
    ("{*a = 13; *b = 0;}", ("newer NVRTC", "13.0", "--upgrade")),
    ("", ("newer NVRTC", "before 12.3")),
    ("{*a = 14; *b = 0;}", ("another CUDA", "NVRTC 13.1", "14.0")),
])
def test_a_linker_that_is_missing_or_old_is_told(python, fake_nvrtc, make_library, version, words):
    packages = [fake_nvrtc]
    if version is not None:
        text = f"""extern "C" int nvJitLinkVersion(unsigned* a, unsigned* b) {version or "{}"}"""
        text = text if version else 'extern "C" int nothing() { return 0; }'
        text = text.replace(";}", "; return 0;}")
        packages.append(
            make_library(text, "site/nvidia/cu13/lib/libnvJitLink.so.13").parents[3])
    python(BEGIN + f"""
import os
rlx.cuda.compile
sys.path[:] = [p for p in sys.path if p in packages or not os.path.isdir(p + "/nvidia")]
refused(rlx.DeviceError, lambda: build("f", lto=True), *{words!r})
assert build("f").cubin                 # all else works
""", *packages, NVRTC_MINOR="1")


def test_without_nvrtc_the_remedy_is_told(python):
    python(BEGIN + """
rlx.cuda.compile
sys.path[:] = [p for p in sys.path if not os.path.isdir(p + "/nvidia")]
refused(rlx.DeviceError, lambda: build("plain"), "NVRTC", "pip install")
""", LD_LIBRARY_PATH="")


def test_without_a_gpu_a_kernel_is_compiled_but_not_launched(nvrtc):
    nvrtc("""
if "cuda:0" not in rlx.devices():
    k = build("deep::nothing")
    refused(rlx.DeviceError, lambda: k(1, 1), "deep::nothing")
    refused(rlx.DeviceError, lambda: k.registers)
    refused(rlx.DeviceError, lambda: build("plain", arch=None))
""")
