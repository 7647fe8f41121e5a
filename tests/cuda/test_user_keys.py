"""Compilations of users' kernels are done once, and anew for whatever could change the result.

NVRTC is fake_nvrtc.cpp, which "compiles" a source to itself and its options.
"""

import json

import pytest

COUNT = """
import json, os, pathlib, rlx
def compiled():
    log = pathlib.Path(os.environ["COMPILED"])
    return len(log.read_text()) if log.exists() else 0
SOURCE = '#include "a.h"\\n#include <b.h>\\n'
def build(source=SOURCE, name="f", arch="sm_90", **options):
    before = compiled()
    return rlx.cuda.compile(source, name, arch=arch, **options).key, compiled() - before
"""
# Each differs from the first in one thing.
VARIANTS = {
    "nothing": {}, "source": {"source": "int x;"}, "name": {"name": "f<int>"},
    "architecture": {"arch": "sm_80"}, "virtual architecture": {"arch": "compute_90"},
    "standard": {"std": 20}, "fast_math": {"fast_math": True}, "ftz": {"ftz": True},
    "no ftz": {"ftz": False}, "max_registers": {"max_registers": 32},
    "other max_registers": {"max_registers": 33}, "define": {"defines": {"N": 1}},
    "value of a define": {"defines": {"N": 2}}, "flag": {"defines": {"N": None}},
    "two defines": {"defines": ["N=1", "M=1"]}, "program": {"program": "other.cu"},
    "option": {"options": ["-lineinfo"]}, "other option": {"options": ["--device-debug"]},
    "expression": {"expressions": ["g<int>"]}, "header": {"headers": {"a.h": "1"}},
    "header's text": {"headers": {"a.h": "2"}}, "header's name": {"headers": {"c.h": "1"}},
}
INCLUDES = """
folder = pathlib.Path(os.environ["FOLDER"])
def write(name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
write("one/a.h", '#include "deep/c.h"')
write("one/deep/c.h", '#include "d.h"')
write("one/deep/d.h", "1")
write("one/unrelated.h", "1")
paths = [folder / "one", folder / "two"]
found = [build(include_paths=paths)]
for name in ("one/a.h", "one/deep/c.h", "one/deep/d.h"):
    write(name, (folder / name).read_text() + " ")
    found.append(build(include_paths=paths))
write("two/b.h", "")                     # was not there
found.append(build(include_paths=paths))
write("one/b.h", "")                     # comes before it
found.append(build(include_paths=paths))
found.append(build(include_paths=paths[::-1]))
write("one/unrelated.h", "2")
again = build(include_paths=paths)
assert again == (found[-2][0], 0), again  # what nobody reaches does not count
macro = dict(source="#define X <unrelated.h>\\n#  include X\\n", include_paths=paths)
found.append(build(**macro))
write("one/unrelated.h", "3")
found.append(build(**macro))
asked = dict(source="#if __has_include(<e.h>)\\n#endif\\n", include_paths=paths)
found.append(build(**asked))
write("two/e.h", "")
found.append(build(**asked))
print(json.dumps(found))
"""

# Beside the source NVRTC looks for quoted names by itself; absolute ones need no folder.
BESIDE = """
os.chdir(os.environ["FOLDER"])
pathlib.Path("deep").mkdir()
absolute = pathlib.Path("absolute.h").resolve()
source = '#include "a.h"\\n'
kinds = [(dict(source=source), "a.h"), (dict(source=source, program="deep/k.cu"), "deep/a.h"),
         (dict(source=f'#include "{absolute}"\\n'), "absolute.h"),
         (dict(source='#define X "b.h"\\n#include X\\n'), "b.h")]
found = []
for options, path in kinds:
    for contents in "12":
        pathlib.Path(path).write_text(contents)
        found.append(build(**options))
print(json.dumps(found))
"""


@pytest.fixture
def count(python, fake_nvrtc, tmp_path):
    """Runs code that prints JSON, where build() gives a key and how often NVRTC was used."""

    def run(code, **env):
        env = {"RLX_CUDA_PTX_CACHE": str(tmp_path / "kernels")} | env
        done = python(COUNT + code, fake_nvrtc, COMPILED=str(tmp_path / "compiled"),
                      FOLDER=str(tmp_path / "folder"), **env)
        return json.loads(done.stdout)

    return run


def test_whatever_differs_is_compiled_anew_and_once(count):
    code = f"""
variants = {VARIANTS!r}
print(json.dumps([[build(**v) for v in variants.values()] for _ in range(2)]))
"""
    first, again = count(code)
    assert [n for _, n in first] == [1] * len(VARIANTS)
    keys = [key for key, _ in first]
    assert len(set(keys)) == len(VARIANTS), [
        name for name, key in zip(VARIANTS, keys) if keys.count(key) > 1]
    assert again == [[key, 0] for key in keys]                   # from memory
    second, _ = count(code)
    assert second == again                                       # from the disk
    third, in_memory = count(code, RLX_CUDA_PTX_CACHE="off")
    assert third == first and in_memory == again


def test_contents_of_includes_are_part_of_the_key(count):
    found = count(INCLUDES)
    assert [n for _, n in found] == [1] * len(found)
    assert len({key for key, _ in found}) == len(found)


def test_files_beside_the_source_are_part_of_the_key(count, tmp_path):
    (tmp_path / "folder").mkdir()
    found = count(BESIDE)
    assert [n for _, n in found] == [1] * len(found)
    assert len({key for key, _ in found}) == len(found)


def test_versions_of_nvrtc_and_of_the_linker_are_part_of_the_key(count, make_library):
    code = """
import sys
sys.path.insert(0, {0!r})
print(json.dumps(build(lto=True)))
"""
    keys = [count(code.format(str(linker(make_library, minor).parents[3])))[0]
            for minor in (0, 1)]
    assert keys[0] != keys[1]
    keys = [count("print(json.dumps(build()))", NVRTC_MINOR=minor) for minor in "01"]
    assert keys[0][0] != keys[1][0] and [n for _, n in keys] == [1, 1]


def linker(make_library, minor):
    """An nvJitLink that gives back what it is given."""
    text = """
#include <cstddef>
#include <cstring>
#include <string>
struct Link { std::string data; };
extern "C" {
int nvJitLinkVersion(unsigned* a, unsigned* b) { *a = 13; *b = MINOR; return 0; }
int nvJitLinkCreate(Link** l, unsigned, const char**) { *l = new Link; return 0; }
int nvJitLinkDestroy(Link** l) { delete *l; return 0; }
int nvJitLinkAddData(Link* l, int kind, const void* data, size_t n, const char*) {
  l->data.assign(static_cast<const char*>(data), n);
  return kind == 3 ? 0 : 1;
}
int nvJitLinkComplete(Link*) { return 0; }
int nvJitLinkGetLinkedCubinSize(Link* l, size_t* n) { *n = l->data.size(); return 0; }
int nvJitLinkGetLinkedCubin(Link* l, void* to) {
  std::memcpy(to, l->data.data(), l->data.size());
  return 0;
}
int nvJitLinkGetLinkedPtxSize(Link*, size_t*) { return 1; }
int nvJitLinkGetLinkedPtx(Link*, char*) { return 1; }
int nvJitLinkGetErrorLogSize(Link*, size_t* n) { *n = 0; return 0; }
int nvJitLinkGetErrorLog(Link*, char*) { return 0; }
int nvJitLinkGetInfoLogSize(Link*, size_t* n) { *n = 0; return 0; }
int nvJitLinkGetInfoLog(Link*, char*) { return 0; }
}
"""
    return make_library(text.replace("MINOR", str(minor)),
                        "site/nvidia/cu13/lib/libnvJitLink.so.13")


def test_a_damaged_entry_is_compiled_anew(count, tmp_path):
    code = "print(json.dumps(build()))"
    key, _ = count(code)
    entry = tmp_path / "kernels" / f"{key}.kernel"
    whole = entry.read_bytes()
    for damage in (whole[:-1], b"", whole[:100], whole[:-3] + b"xyz"):
        entry.write_bytes(damage)
        assert count(code) == [key, 1]
        assert count(code) == [key, 0]


def test_threads_that_ask_for_the_same_share_one_compilation(count):
    code = """
import time
futures = [rlx.cuda.compile_async(SOURCE, "f", arch="sm_90") for _ in range(6)]
begin = time.monotonic()
futures[0].done()
assert time.monotonic() - begin < 0.2    # nobody waits here
keys = {future.result().key for future in futures}
before = compiled()
keys.add(build()[0])                     # the cache is that of compile()
import asyncio
async def awaited():
    return (await rlx.cuda.compile_async(SOURCE, "f", arch="sm_90")).key
keys.add(asyncio.run(awaited()))
print(json.dumps([len(keys), before, compiled()]))
"""
    assert count(code, COMPILE_MS="300") == [1, 1, 1]


def test_other_threads_go_on_while_nvrtc_works(count):
    """The lock of the interpreter is free meanwhile: this thread counts on."""
    code = """
import threading, time
thread = threading.Thread(target=build)
thread.start()
ticks = 0
while thread.is_alive():
    time.sleep(0.01)
    ticks += 1
print(json.dumps(ticks))
"""
    assert count(code, COMPILE_MS="500") > 10


def test_a_failure_is_no_entry(count):
    code = """
for _ in range(2):
    try:
        build(defines=["BROKEN"])
    except rlx.InputError as error:
        assert "line 3: no such thing" in str(error), error
    else:
        raise AssertionError
print(json.dumps(os.path.exists(os.environ["RLX_CUDA_PTX_CACHE"])))
"""
    assert count(code) is False


def test_cache_info_tells_the_folder_and_what_is_there(count, tmp_path):
    code = """
nothing = rlx.cache_info()
build()
info = rlx.cache_info()
rlx.configure(kernel_cache="off")
off = rlx.cache_info()
print(json.dumps([str(nothing.folder), len(nothing.files), str(info.folder), len(info.files),
                  info.bytes == sum(f.path.stat().st_size for f in info.files) > 0,
                  off.folder, len(off.files)]))
"""
    folder = str(tmp_path / "kernels")
    assert count(code) == [folder, 0, folder, 1, True, None, 0]
