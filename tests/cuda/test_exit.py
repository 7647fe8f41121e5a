"""A process that ends while threads of ours are inside a library of NVIDIA's: they are waited for.

Such a library takes itself down with the process, and what is at work in it then breaks the heap.
The fakes end the process with a status of their own where one is still at work.
"""

import pytest

from tests.cuda.test_runs import on_fake_gpu  # noqa: F401  (a fixture)

# Until a compiler or a copy is at work, which then takes long.
AT_WORK = """
import threading, time
run = lambda: rlx.run(model(), {"x": x}, device="cuda")
threading.Thread(target=run, daemon=True).start()
def at_work():
    if {compiler}:
        return os.path.exists(os.environ["COMPILED"])
    return "cuMemcpyHtoDAsync_v2" in calls()
while not at_work():
    time.sleep(0.01)
"""
WHAT = pytest.mark.parametrize("compiler", [True, False], ids=["compiler", "copy"])


@pytest.fixture
def at_work(on_fake_gpu, tmp_path):  # noqa: F811
    """Runs code when a library is at work in the background."""

    def run(compiler, code, fails=False):
        slow = "COMPILE_MS" if compiler else "FAKE_CUDA_COPY_MS"
        return on_fake_gpu(AT_WORK.replace("{compiler}", str(compiler)) + code, fails=fails,
                           COMPILED=str(tmp_path / "compiled"), **{slow: "500"})[0]

    return run


@WHAT
def test_a_process_that_ends(at_work, compiler):
    at_work(compiler, "")


@WHAT
def test_a_process_that_ends_by_itself_with_a_status(at_work, compiler):
    assert at_work(compiler, "sys.exit(7)", fails=True).returncode == 7


@WHAT
def test_a_child_waits_for_nobody(at_work, compiler):
    """The threads that compile are the parent's."""
    done = at_work(compiler, """
pid = os.fork()
if pid == 0:
    sys.exit(5)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
""")
    assert done.stdout.split() == ["5"]


COMPILES = """
run = lambda: rlx.cuda.compile("source", "f", arch="sm_90")
"""


def test_a_users_kernel_that_compiles_is_waited_for(on_fake_gpu, tmp_path):  # noqa: F811
    on_fake_gpu(COMPILES + """
import threading, time
threading.Thread(target=run, daemon=True).start()
while not os.path.exists(os.environ["COMPILED"]):
    time.sleep(0.01)
""", COMPILED=str(tmp_path / "compiled"), COMPILE_MS="500")


# What is registered before rlx is imported runs when rlx has waited for its threads.
LATER = """
import atexit, os, threading
def later(work):
    def run():
        try:
            work()
            print("done")
        except rlx.DeviceError as error:
            print(error.remedy, error)
    def at_exit():
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    atexit.register(at_exit)
"""


def test_no_kernel_is_compiled_after_the_wait(on_fake_gpu):  # noqa: F811
    done, _ = on_fake_gpu("""
import rlx._core
made = model()  # without weights
del made.graph.node[0], made.graph.initializer[:]
made.graph.node[0].input[0] = "x"
run = lambda: rlx.run(made, {"x": x}, device="cuda")
""", before=LATER + "later(lambda: run())\n")
    assert "no kernel is compiled any more: the process is ending" in done.stdout
    assert done.stdout.startswith("join the threads")


def test_no_users_kernel_is_compiled_after_the_wait(on_fake_gpu):  # noqa: F811
    done, _ = on_fake_gpu("import rlx.cuda\n" + COMPILES,
                          before=LATER + "later(lambda: run())\n")
    assert "no kernel is compiled any more: the process is ending" in done.stdout
    assert done.stdout.startswith("join the threads")


def test_no_weight_is_copied_after_the_wait(on_fake_gpu):  # noqa: F811
    """Of a second model, whose kernels are there."""
    done, _ = on_fake_gpu("""
rlx.run(model(), {"x": x}, device="cuda")
run = lambda: rlx.run(model(4), {"x": x}, device="cuda")
""", before=LATER + "later(lambda: run())\n", FAKE_CUDA_COPY_MS="500")
    assert "no weight is copied any more: the process is ending" in done.stdout
    assert done.stdout.startswith("join the threads")


def test_who_waits_for_a_kernel_that_is_dropped_is_told(on_fake_gpu, tmp_path):  # noqa: F811
    """More models than threads that compile."""
    done, _ = on_fake_gpu("""
import time
waiting = []
for op in ("Exp", "Sin", "Cos", "Tan", "Atan", "Sqrt", "Log", "Abs", "Neg", "Floor"):
    def run(op=op):
        made = model()
        made.graph.node[1].op_type = op
        made.graph.node[1].name = op
        try:
            rlx.run(made, {"x": x}, device="cuda")
            print("done", flush=True)
        except Exception as error:
            print(type(error).__name__, error, flush=True)
    waiting.append(threading.Thread(target=run, daemon=True))
    waiting[-1].start()
while not os.path.exists(os.environ["COMPILED"]):
    time.sleep(0.01)
time.sleep(0.3)
""", before=LATER + "atexit.register(lambda: [w.join(5) for w in waiting])\n",
                          COMPILE_MS="1000", COMPILED=str(tmp_path / "compiled"))
    assert "no kernel is compiled any more" in done.stdout and "future" not in done.stdout


def test_a_child_that_uses_the_gpu_first_is_waited_for_too(on_fake_gpu, tmp_path):  # noqa: F811
    done, _ = on_fake_gpu("""
pid = os.fork()
if pid == 0:
""" + "\n".join("    " + line for line in AT_WORK.replace("{compiler}", "True").split("\n")) + """
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
""", COMPILED=str(tmp_path / "compiled"), COMPILE_MS="500")
    assert done.stdout.split()[-1] == "0"
