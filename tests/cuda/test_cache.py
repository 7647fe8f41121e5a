"""The cache of compiled kernels: what its key covers, damage, races and folders that fail.

NVRTC is fake_nvrtc.cpp, which "compiles" a source to itself and its options.
"""

from concurrent.futures import ThreadPoolExecutor
import os
import signal
import time

import pytest

COMPILE = """
import rlx, sys
file = next(f for f in rlx._core.cuda_kernel_files() if f.endswith('.cu'))
image = rlx._core.cuda_compile_kernel(file, 'entry', {defines!r}, {capability})
assert image.startswith(b'\\x7fELF'), image[:20]
sys.stdout.buffer.write(image[-200:])
"""


@pytest.fixture
def compile_kernel(python, fake_nvrtc, tmp_path):
    """Compiles in a fresh process; gives its output and how often NVRTC was used so far."""
    log = tmp_path / "compiled"

    def run(defines=("A=1",), capability=90, folder=tmp_path / "kernels", fails=False,
            before=""):
        code = before + COMPILE.format(defines=list(defines), capability=capability)
        done = python(code, fake_nvrtc, fails=fails, COMPILED=str(log),
                      RLX_CUDA_PTX_CACHE=str(folder))
        return done, len(log.read_text()) if log.exists() else 0

    return run


def test_a_second_process_reads_what_the_first_compiled(compile_kernel, tmp_path):
    first, compiled = compile_kernel()
    assert compiled == 1
    second, compiled = compile_kernel()
    assert (second.stdout, compiled) == (first.stdout, 1)
    assert len(list((tmp_path / "kernels").glob("*.cubin"))) == 1
    assert "-arch=sm_90a" in first.stdout and "-DA=1" in first.stdout


def test_the_key_covers_definitions_and_architecture(compile_kernel):
    assert [compile_kernel(d, c)[1] for d, c in (
        (("A=1",), 90), (("A=2",), 90), (("A=1", "B=1"), 90), (("A=1",), 80), (("A=1",), 90),
    )] == [1, 2, 3, 4, 4]


def test_a_gpu_newer_than_nvrtc_gets_ptx(compile_kernel):
    done, _ = compile_kernel(capability=120)
    assert "-arch=compute_90" in done.stdout


@pytest.mark.parametrize("damage", [
    lambda data: data[:-1], lambda data: data[:40], lambda data: b"",
    lambda data: data[:-3] + b"xyz", lambda data: b"y" + data[1:], lambda data: data + b"z",
])
def test_a_damaged_entry_is_compiled_anew(compile_kernel, tmp_path, damage):
    first, _ = compile_kernel()
    entry, = (tmp_path / "kernels").glob("*.cubin")
    entry.write_bytes(damage(entry.read_bytes()))
    again, compiled = compile_kernel()
    assert (again.stdout, compiled) == (first.stdout, 2)
    assert compile_kernel()[1] == 2  # and was written again


def test_a_folder_that_cannot_be_made_is_said_once(compile_kernel, tmp_path):
    (tmp_path / "file").write_text("")
    done, compiled = compile_kernel(folder=tmp_path / "file" / "below")
    assert compiled == 1
    assert done.stderr.count("no kernel cache") == 1


def test_off_means_no_cache(compile_kernel, tmp_path):
    compile_kernel(folder="off")
    assert compile_kernel(folder="off")[1] == 2
    assert not (tmp_path / "cache").exists()


def test_eight_processes_race_on_one_cache(compile_kernel, tmp_path):
    with ThreadPoolExecutor(8) as pool:
        outputs = [done.stdout for done, _ in pool.map(lambda _: compile_kernel(), range(8))]
    assert len(set(outputs)) == 1
    assert [p.suffix for p in (tmp_path / "kernels").iterdir()] == [".cubin"]
    assert compile_kernel()[0].stdout == outputs[0]


def test_a_process_that_dies_while_it_writes_spoils_nothing(compile_kernel, tmp_path):
    """The system ends it inside the entry: a file may have 64 bytes, and the signal is on."""
    dies = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
"""
    dead, _ = compile_kernel(before=dies, fails=True)
    assert dead.returncode == -signal.SIGXFSZ
    left, = (tmp_path / "kernels").iterdir()
    assert left.suffix == ".tmp" and left.stat().st_size == 64
    done, compiled = compile_kernel()
    assert compiled == 2
    assert compile_kernel()[0].stdout == done.stdout
    assert len(list((tmp_path / "kernels").glob("*.cubin"))) == 1


def test_what_a_dead_process_left_is_removed_later(compile_kernel, tmp_path):
    folder = tmp_path / "kernels"
    folder.mkdir()
    old, young = folder / f"{'a' * 64}.cubin.1.0.tmp", folder / f"{'b' * 64}.cubin.2.0.tmp"
    others = folder / "letter.tmp"
    for path in (old, young, others):
        path.write_bytes(b"x")
    for path in (old, others):
        os.utime(path, (time.time() - 7200,) * 2)
    compile_kernel()
    assert not old.exists() and young.exists()  # whoever writes that one may be alive
    assert others.exists()


DAY = 24 * 3600


def entry(folder, name, bytes, age):
    """A file without contents of so many bytes, used so many seconds ago."""
    path = folder / (name if "." in name else f"{name * 64}.cubin")
    with open(path, "wb") as file:
        file.truncate(bytes)
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_a_folder_keeps_a_gib_of_what_was_used_last(compile_kernel, tmp_path):
    folder = tmp_path / "kernels"
    folder.mkdir()
    others = [entry(folder, name, 2 << 30, 9 * DAY)
              for name in ("notes.txt", "cafe.cubin", f"{'e' * 64}.json")]
    second = entry(folder, "b", 100 << 20, 2 * DAY)
    first = entry(folder, "a", 100 << 20, 3 * DAY)
    last = entry(folder, "c", 800 << 20, DAY / 2)
    compile_kernel()
    assert first.exists() and second.exists() and last.exists()   # there is room
    more = entry(folder, "d", 30 << 20, 0)
    compile_kernel(("A=2",))
    assert not first.exists() and not second.exists()             # down to seven eighths
    assert last.exists() and more.exists() and all(path.exists() for path in others)
    assert compile_kernel(("A=2",))[1] == compile_kernel()[1] == 2  # both are still there


def test_one_process_that_compiles_much_keeps_to_it_too(python, fake_nvrtc, tmp_path):
    folder = tmp_path / "kernels"
    folder.mkdir()
    first, second = entry(folder, "a", 400 << 20, 2 * DAY), entry(folder, "b", 580 << 20, DAY)
    python("""
import rlx
for i in range(8):
    rlx.cuda.compile("//" + "x" * (4 << 20), "f", arch="sm_90", defines={"N": i})
    files = rlx.cache_info().files
    assert sum(file.bytes for file in files) <= 1 << 30
    assert len(files) == i + (3 if i < 5 else 2), (i, len(files))
""", fake_nvrtc, RLX_CUDA_PTX_CACHE=str(folder))
    assert second.exists() and not first.exists()


def test_processes_race_for_the_room(compile_kernel, tmp_path):
    folder = tmp_path / "kernels"
    folder.mkdir()
    for name in "0123456789abcdef":
        entry(folder, name, 100 << 20, DAY)
    with ThreadPoolExecutor(8) as pool:
        for done, _ in pool.map(lambda n: compile_kernel((f"A={n}",)), range(8)):
            assert not done.stderr
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 1 << 30
    assert compile_kernel(("A=3",))[1] == 8


@pytest.mark.parametrize("age, touched", [(2 * DAY, True), (DAY / 2, False)])
def test_reading_an_entry_notes_the_day(compile_kernel, tmp_path, age, touched):
    compile_kernel()
    path, = (tmp_path / "kernels").iterdir()
    before = time.time() - age
    os.utime(path, (before, before))
    assert compile_kernel()[1] == 1
    assert (path.stat().st_mtime > before + 1) is touched


def test_a_full_disk_costs_the_entry_only(compile_kernel, tmp_path):
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))\n"
    done, _ = compile_kernel(before=full)
    assert done.stderr.count("no kernel cache") == 1
    assert list((tmp_path / "kernels").iterdir()) == []
    assert compile_kernel()[0].stdout == done.stdout


def test_a_compiler_error_carries_the_log(compile_kernel):
    done, _ = compile_kernel(("BROKEN",), fails=True)
    assert "InternalError" in done.stderr
    assert "line 3: no such thing" in done.stderr and "NVRTC_ERROR_COMPILATION" in done.stderr
