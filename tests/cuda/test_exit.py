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
