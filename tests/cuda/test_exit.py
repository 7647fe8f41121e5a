"""A process that ends while threads of ours are inside a library of NVIDIA's: they are waited for.

Such a library takes itself down with the process, and what is at work in it then breaks the heap.
The fakes end the process with a status of their own where one is still at work.
"""

import pytest

from tests.cuda.test_runs import on_fake_gpu  # noqa: F401  (a fixture)

SLOW = {"compiler": {"COMPILE_MS": "400"}, "copies": {"FAKE_CUDA_COPY_MS": "400"}}


@pytest.mark.parametrize("what", SLOW)
def test_a_process_that_only_loads(on_fake_gpu, what):  # noqa: F811
    on_fake_gpu("s = rlx.load(model(), device='cuda')", **SLOW[what])


@pytest.mark.parametrize("what", SLOW)
def test_a_process_that_ends_by_an_error(on_fake_gpu, what):  # noqa: F811
    done, _ = on_fake_gpu("s = rlx.load(model(), device='cuda')\nsys.exit(7)", fails=True,
                          **SLOW[what])
    assert done.returncode == 7, done.stderr


def test_a_child_that_ends_by_itself_waits_for_nobody(on_fake_gpu):  # noqa: F811
    """The threads that compile are the parent's."""
    done, _ = on_fake_gpu("""
s = rlx.load(model(), device="cuda")
pid = os.fork()
if pid == 0:
    sys.exit(5)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
""", COMPILE_MS="400")
    assert done.stdout.split() == ["5"]
