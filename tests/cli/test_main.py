"""The command as a whole: help, its speed, exit codes, errors without tracebacks."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest

import rlx as rlx_package
from rlx.cli import COMMANDS, main
from tests.api.toys import F, model, node, value
from tests.cli.conftest import DIGITS

HELP = """
import sys
from rlx.cli import main
try:
    main({arguments!r})
except SystemExit as stopped:
    assert stopped.code == 0
print(sorted({{"numpy", "onnx", "rich", "rlx._core"}} & {{*sys.modules}}))
"""


def test_help_lists_every_command_and_examples(rlx):
    text = rlx("--help").stdout
    for command in COMMANDS:
        assert re.search(rf"^    {command}\s", text, re.MULTILINE), command
    assert "examples:" in text and "exit codes:" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(rlx, command):
    text = rlx(command, "--help").stdout
    assert f"  rlx {command}" in text.partition("examples:")[2]
    assert "--json" in text


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"]])
def test_help_imports_nothing_heavy(fresh_python, arguments):
    last = fresh_python(HELP.format(arguments=arguments)).stdout.splitlines()[-1]
    assert last == "[]"


@pytest.mark.bench
def test_help_takes_at_most_300_ms(rlx):
    taken = []
    for _ in range(7):
        start = time.perf_counter()
        rlx("--help")
        taken.append(time.perf_counter() - start)
    print("rlx --help, ms:", [round(1e3 * t) for t in taken])
    assert min(taken) < 0.3


def test_the_command_is_declared(source):
    assert 'rlx = "rlx.cli:main"' in (source / "pyproject.toml").read_text()


def test_version(rlx, source):
    declared = re.search(r'^version = "(.+)"$', (source / "pyproject.toml").read_text(),
                         re.MULTILINE).group(1)
    assert rlx("--version").stdout.strip() == declared


@pytest.mark.parametrize("arguments", [
    [], ["fly"], ["run"], ["run", "m.onnx", "--top-k", "0"], ["ops", "--nothing"]])
def test_bad_usage_is_exit_code_2(rlx, arguments):
    assert "usage:" in rlx(*arguments, code=2).stderr


def test_bad_usage_of_a_command_shows_how_that_is_used(rlx):
    told = rlx("run", "m.onnx", "--badoption", code=2).stderr
    assert told.startswith("usage: rlx run ")
    assert told.endswith("rlx run: error: unrecognized arguments: --badoption\n")


RANDOM = "the inputs were random: "


def test_random_inputs_are_told_of_where_they_may_be_why(rlx, tmp_path):
    picky = model([node("Reshape", "x shape", "y")], [value("x", F, ["n"])], [value("y", F)],
                  {"shape": [3, 5]})
    onnx.save(picky, tmp_path / "picky.onnx")
    for command in ("run", "bench", "profile", "verify", "explain"):
        assert RANDOM + "x float32[1]" in rlx(command, tmp_path / "picky.onnx", code=2).stderr


@pytest.mark.parametrize("arguments", [
    ["run", "--output", "/no/such/folder/y.npz"], ["bench", "--vs", "abacus"],
    ["profile", "--runs", "1", "--html", "/no/such/folder/p.html"]])
def test_random_inputs_are_not_blamed_for_the_rest(rlx, digits, arguments):
    assert RANDOM not in rlx(arguments[0], digits, *arguments[1:], code=2).stderr


def test_random_inputs_are_not_blamed_for_the_device(digits, monkeypatch, capsys):
    def without_compiler(*_):
        raise rlx_package.DeviceError("NVRTC was not found")

    monkeypatch.setattr(rlx_package.Session, "_settle", without_compiler)
    assert main(["explain", str(digits)]) == 2
    told = capsys.readouterr().err
    assert "NVRTC was not found" in told and RANDOM not in told


def test_errors_are_told_without_traceback(rlx, rlx_json, tmp_path):
    assert "ModelNotFoundError: there is no" in rlx("run", "nothing.onnx", code=2).stderr
    damaged = tmp_path / "damaged.onnx"
    damaged.write_bytes((DIGITS / "digits.onnx").read_bytes()[:5000])
    for command in ("run", "explain", "check", "bench", "profile", "verify"):
        assert "ModelError" in rlx(command, damaged, code=2).stderr
    error = rlx_json("run", DIGITS / "digits.onnx", "--input", "picture=1", code=2)["error"]
    assert error["kind"] == "InputError" and "picture" in error["message"]


INTERRUPTED = """
import signal, sys
import rlx
from rlx.cli import main
signal.signal(signal.SIGALRM, signal.default_int_handler)
run = rlx.Session.run
def interrupted(*arguments, **more):
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    return run(*arguments, **more)
rlx.Session.run = interrupted
sys.exit(main(["run", {path!r}, "--device", "cpu"]))
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no timer here")
def test_an_interrupted_run_ends_with_130(tmp_path):
    """Between the products of a long segment: alone they would take minutes."""
    names = ["x", *(f"h{k}" for k in range(400))]
    onnx.save(model([node("MatMul", f"{name} x", after) for name, after in zip(names, names[1:])],
                    [value("x", F, [2000, 2000])], [value(names[-1], F, [2000, 2000])]),
              tmp_path / "long.onnx")
    script = INTERRUPTED.format(path=str(tmp_path / "long.onnx"))
    done = subprocess.run([sys.executable, "-c", script], text=True, capture_output=True,
                          timeout=60)
    assert done.returncode == 130 and not done.stdout, done.stderr
    assert "Traceback" not in done.stderr


def test_a_closed_pipe_is_no_error(source):
    command = f"{sys.executable} -m rlx ops | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], text=True, capture_output=True, timeout=120)
    assert done.returncode == 0 and not done.stderr, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", ["ops", "ops --json", "--version"])
def test_output_that_cannot_be_written_is_told_without_traceback(arguments, unbuffered):
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "rlx", *arguments.split()], stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=120,
                              env=os.environ | {"PYTHONUNBUFFERED": unbuffered})
    assert done.returncode == 1
    assert done.stderr == "rlx: [Errno 28] No space left on device\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("arguments, what", [
    (["run", "{digits}", "--output", "{file}"], "the outputs"),
    (["profile", "{digits}", "--runs", "1", "--html", "{file}"], "the profile"),
    (["profile", "{digits}", "--runs", "1", "--chrome", "{file}"], "the profile"),
], ids=["run", "html", "chrome"])
@pytest.mark.parametrize("file, reason", [
    ("full.npz", "No space left on device"), ("nothing/x", "No such file or directory"),
    (".", "Is a directory")])
def test_a_file_that_cannot_be_written_is_named(rlx, rlx_json, digits, tmp_path, arguments, what,
                                                file, reason):
    """Of a full disk the system gives no name."""
    (tmp_path / "full.npz").symlink_to("/dev/full")
    path = str(tmp_path / file)
    given = [part.format(digits=digits, file=path) for part in arguments]
    told = f"cannot write {what} to {path!r}: {reason}"
    assert rlx(*given, code=2).stderr.startswith(f"InputError: {told}")
    assert rlx_json(*given, code=2)["error"] == {"kind": "InputError", "message": told}


@pytest.mark.parametrize("folder, reason", [
    ("file", "File exists"), ("file/below", "Not a directory"), ("/proc/self", "")])
def test_a_folder_for_kernels_that_cannot_be_written_is_named(rlx, digits, tmp_path, folder,
                                                              reason):
    (tmp_path / "file").touch()
    path = str(tmp_path / folder)
    done = rlx("compile", digits, "-o", path, "--arch", "sm_90", code=2)
    assert f"InputError: cannot write kernels to {path!r}: {reason}" in done.stderr


@pytest.mark.parametrize("action", ["list", "clear"])
def test_a_kernel_cache_that_cannot_be_read_is_named(rlx, action):
    name = "/tmp/" + "x" * 300
    done = rlx("cache", action, code=2, RLX_CUDA_PTX_CACHE=name)
    assert "InputError: the kernel cache cannot be read" in done.stderr and name in done.stderr


OTHER = """
import sys
from rlx.cli import main, ops
ops.run = lambda arguments: print("begun") or open("/no/such/file")
sys.exit(main(["ops", *{options!r}]))
"""


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_only_what_the_output_is_to_blame_for_is_told_of_it(options):
    """A file that a command has not thought of is an error like others; what was printed stays."""
    done = subprocess.run([sys.executable, "-c", OTHER.format(options=options)], text=True,
                          capture_output=True, timeout=120)
    assert done.returncode == 2 and done.stdout.startswith("begun\n")
    message = "[Errno 2] No such file or directory: '/no/such/file'"
    assert done.stderr == f"InputError: {message}\n"
    if options:
        assert json.loads(done.stdout[6:]) == {"error": {"kind": "InputError", "message": message}}
