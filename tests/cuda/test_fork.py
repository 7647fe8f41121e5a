"""A child forked while its parent uses the GPU: CUDA is the parent's, and so are its threads.

What the child drops must reach no library, and no lock of a thread that it lacks.
"""

import pytest

from tests.cuda.test_runs import on_fake_gpu  # noqa: F401  (a fixture)

# child(work): what becomes of it in a forked process, whose own calls of the driver are told apart.
CHILD = """
import gc, signal, threading, time
rlx.run(model(), {"x": x}, device="cpu")  # a module whose import goes on is locked in a child
def child(work):
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        os.environ["FAKE_CUDA_LOG"] = os.environ["HOME"] + "/child"
        try:
            work()
            gc.collect()
            print("done", flush=True)
        except rlx.Error as error:
            print(type(error).__name__, error.message, flush=True)
        os._exit(os.path.exists(os.environ["FAKE_CUDA_LOG"]))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print({0: "left alone", 1: "called the driver", -signal.SIGALRM: "hung"}.get(code, code))
def until(call, count=1):
    while calls().count(call) < count:
        time.sleep(0.005)
def background(work):
    threading.Thread(target=work, daemon=True).start()
"""
FORKED = "DeviceError CUDA cannot be used in a process that was forked"


@pytest.fixture
def forks(on_fake_gpu):  # noqa: F811
    """Runs code with child(); gives the lines that were printed."""

    def run(code, **env):
        return on_fake_gpu(CHILD + code, **env)[0].stdout.splitlines()

    return run


DROPS = """
def drop():
    global s
    del s
"""


def test_a_child_drops_a_session(forks, fake_blas_lt):
    """With all that its plans hold of the driver and of cuBLASLt."""
    assert forks(DROPS + f"""
sys.path.insert(0, {str(fake_blas_lt)!r})
s = rlx.load(model(), device="cuda")
for _ in range(3): s.run({{"x": x}})
child(drop)
""") == ["done", "left alone"]


@pytest.mark.parametrize("held", ["used", "last"])
def test_a_child_drops_a_session_whose_weights_are_being_copied(forks, held):
    """"last": nothing else holds the GPU's weights, which wait for their workers."""
    assert forks(DROPS + """
s = rlx.load(model(), device="cuda")
s.prepare({"x": x})
until("cuMemcpyHtoDAsync_v2")
""" + ('rlx.reset("cuda", force=True)\n' if held == "last" else "") + "child(drop)\n",
                 FAKE_CUDA_COPY_MS="1500") == ["done", "left alone"]


def test_a_child_drops_a_session_while_weights_are_replaced(forks):
    assert forks(DROPS + """
s, other = rlx.load(model(), device="cuda"), rlx.load(model(5), device="cuda")
for each in (s, other): each.run({"x": x})
copies = calls().count("cuMemcpyHtoDAsync_v2")
os.environ["FAKE_CUDA_SLOW"] = "cuMemcpyHtoDAsync_v2:1500"
background(lambda: other.update_weights({"w": np.ones((4, 4), np.float32)}))
until("cuMemcpyHtoDAsync_v2", copies + 1)
child(drop)
""") == ["done", "left alone"]


def test_a_child_drops_an_array_while_memory_is_allocated(forks):
    assert forks("""
a = rlx.cuda.to_device(x)
os.environ["FAKE_CUDA_SLOW"] = "cuMemAlloc_v2:1500"
allocated = calls().count("cuMemAlloc_v2")
background(lambda: rlx.cuda.to_device(np.ones(1 << 20, np.float32)))
until("cuMemAlloc_v2", allocated + 1)
def drop():
    global a
    del a
child(drop)
""") == ["done", "left alone"]


def test_a_child_reads_an_array_while_weights_are_copied(forks):
    assert forks("""
a = rlx.cuda.to_device(x)
s = rlx.load(model(), device="cuda")
copies = calls().count("cuMemcpyHtoDAsync_v2")
s.prepare({"x": x})
until("cuMemcpyHtoDAsync_v2", copies + 1)
child(a.numpy)
""", FAKE_CUDA_COPY_MS="1500") == [FORKED, "left alone"]


OPENS = """
background(lambda: rlx.load(model(), device="cuda"))
until("{call}")
"""


@pytest.mark.parametrize("call", ["cuInit", "cuDevicePrimaryCtxRetain"])
@pytest.mark.parametrize("work, told", [
    ('rlx.load(model(), device="cuda")', FORKED),
    ("rlx.cuda.to_device(x)", FORKED),
    ('print(rlx.load(model(), device="auto").device)', "cpu"),
    ('print(*rlx.devices())', "cpu"),
    ('print(rlx.run(model(), {"x": x}, device="cpu")["y"].shape)', "(3, 4)"),
    ("rlx.empty_cache()", "done"),
    ("rlx.configure(arena_pool=1 << 20)", "done"),
    ('rlx.reset("cuda", force=True)', "done"),
], ids=["load", "array", "auto", "devices", "cpu", "empty_cache", "configure", "reset"])
def test_a_child_while_the_gpu_is_opened(forks, call, work, told):
    lines = forks(OPENS.replace("{call}", call) + f"child(lambda: {work})\n",
                  FAKE_CUDA_SLOW=f"{call}:1500")
    assert lines[0] == told and lines[-1] == "left alone"


def test_a_child_while_a_library_is_opened(forks, make_library):
    """Which takes as long as its statics do."""
    slow = """
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
struct Slow {
  Slow() {
    std::fclose(std::fopen(std::getenv("OPENED"), "w"));
    usleep(1500000);
  }
} slow;
"""
    site = make_library(slow, "site/nvidia/cu13/lib/libcublasLt.so.13").parents[3]
    assert forks(f"""
sys.path.insert(0, {str(site)!r})
os.environ["OPENED"] = os.environ["HOME"] + "/opened"
background(lambda: rlx.load(model(), device="cuda"))
while not os.path.exists(os.environ["OPENED"]):
    time.sleep(0.005)
def work():
    print(rlx.load(model(), device="auto").device)
    rlx.load(model(), device="cuda")
child(work)
""") == ["cpu", FORKED, "left alone"]


def test_a_child_of_a_process_without_a_gpu_in_use_may_use_it(forks):
    assert forks("""
import rlx._core
rlx.cuda.compile("source", "f", arch="sm_90")            # by NVRTC, which needs no GPU
child(lambda: print(rlx.load(model(), device="cuda").device))
""") == ["cuda:0", "done", "called the driver"]
