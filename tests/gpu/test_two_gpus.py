"""Several GPUs in one process: each has its memory, kernels and faults, and no other's."""

import subprocess
import sys
import threading

import numpy as np
import pytest
import rlx

from tests.models.test_builders import SIZES, inputs, narrow

torch = pytest.importorskip("torch")

SOURCE = r'''
extern "C" __global__ void add(float* x, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += by;
}
extern "C" __global__ void lose(int* x) { *(int*)16 = 1; }
'''


@pytest.fixture(scope="module")
def gpus(gpu):
    names = [name for name in rlx.devices() if name.startswith("cuda")]
    if len(names) < 2:
        pytest.skip("needs two GPUs")
    return names[:2]


@pytest.mark.parametrize("name", ["bert-base", "resnet50", "gpt2"])
@pytest.mark.parametrize("mode", ["graph", "stream", "multistream"])
def test_a_model_runs_alike_on_each(gpus, name, mode):
    given = inputs(name, SIZES[name][0])
    sessions = [rlx.load(narrow(name), device=gpu, tf32=False, mode=mode) for gpu in gpus]
    for _ in range(3):
        a, b = (session.run(given) for session in sessions)
        for key in a:
            np.testing.assert_array_equal(a[key], b[key])
    for session in sessions:
        session.close()


def test_threads_on_each_do_not_disturb_each_other(gpus):
    given = inputs("bert-base", SIZES["bert-base"][0])
    sessions = [rlx.load(narrow("bert-base"), device=gpu, tf32=False) for gpu in gpus] * 2
    truth = sessions[0].run(given)
    wrong = []

    def work(session):
        for _ in range(20):
            found = session.run(given)
            wrong.extend(key for key in truth if not np.array_equal(found[key], truth[key]))

    threads = [threading.Thread(target=work, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_arrays_go_in_and_out_where_they_lie(gpus):
    given = inputs("vit-b16", SIZES["vit-b16"][0])
    assert torch.cuda.current_device() == 0
    for k, gpu in enumerate(gpus):
        with rlx.load(narrow("vit-b16"), device=gpu, tf32=False) as session:
            host = session.run(given)
            here = {key: torch.from_numpy(x).to(f"cuda:{k}") for key, x in given.items()}
            there = {key: x.to(f"cuda:{1 - k}") for key, x in here.items()}
            for key, y in session.run(here, outputs="device").items():
                tensor = torch.from_dlpack(y)
                assert tensor.device.index == k
                np.testing.assert_array_equal(tensor.cpu().numpy(), host[key])
            with pytest.raises(rlx.InputError, match=rf"(?s)another GPU.*cuda:{k}.*cuda:{1 - k}"):
                session.run(there)
            session.run(here)
            session.profile(here, runs=1)
            assert torch.cuda.current_device() == 0 == torch.ones(4, device="cuda").device.index
    with torch.cuda.device(1), rlx.load(narrow("vit-b16"), device=gpus[0], tf32=False) as session:
        for key, y in session.run(given).items():
            np.testing.assert_array_equal(y, host[key])
        assert torch.ones(4, device="cuda").device.index == 1


def test_users_kernels_on_each(gpus):
    kernels = [rlx.cuda.compile(SOURCE, "add", device=gpu) for gpu in gpus]
    tensors = [torch.zeros(1000, device=f"cuda:{k}") for k in (0, 1)]
    for turn in range(3):
        for k, kernel in enumerate(kernels):
            stream = torch.cuda.current_stream(k)
            kernel(4, 256, tensors[k], float(k + 1), 1000, stream=stream).synchronize()
            assert torch.cuda.current_device() == 0
    assert [x[0].item() for x in tensors] == [3, 6]
    for k, kernel in enumerate(kernels):
        with pytest.raises(rlx.InputError, match="another GPU"):
            kernel(4, 256, tensors[1 - k], 1.0, 1000)
        class Interface:  # has no device: the driver knows it
            __cuda_array_interface__ = tensors[1 - k].__cuda_array_interface__
        with pytest.raises(rlx.InputError, match="another GPU"):
            kernel(4, 256, Interface(), 1.0, 1000)
    with pytest.raises(rlx.InputError, match="another GPU"):
        kernels[1](4, 256, rlx.cuda.to_device(np.zeros(4, np.float32), gpus[0]), 1.0, 4)


APART = r"""
import sys
import numpy as np
import rlx
from tests.models.test_builders import SIZES, inputs, narrow
from tests.gpu.test_two_gpus import SOURCE
first, second, how = sys.argv[1:]
given = inputs("bert-base", SIZES["bert-base"][0])
a, b = (rlx.load(narrow("bert-base"), device=gpu, tf32=False) for gpu in (first, second))
truth = a.run(given)
def is_right(session):
    return all(np.array_equal(y, truth[key]) for key, y in session.run(given).items())
assert is_right(b)
def told(call):
    try:
        call()
    except rlx.Error as error:
        print(type(error).__name__, second in str(error))
    else:
        print("works")
if how == "reset":
    rlx.reset(second, force=True)
    told(lambda: b.run(given))
    assert is_right(a)
    assert is_right(rlx.load(narrow("bert-base"), device=second, tf32=False))
else:
    lose = rlx.cuda.compile(SOURCE, "lose", device=second)
    told(lose(1, 1, rlx.cuda.to_device(np.zeros(1, np.int32), second)).synchronize)
    for session in (b, a):
        told(lambda: session.run(given))
    for gpu in (first, second):
        told(lambda: rlx.load(narrow("bert-base"), device=gpu))
        told(lambda: rlx.reset(gpu, force=True))
    told(lambda: rlx.run(narrow("bert-base"), given, device="cpu"))
"""


def apart(gpus, how: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", APART, *gpus, how], text=True,
                          capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_reset_of_one_leaves_the_other_alone(gpus):
    assert apart(gpus, "reset") == ["StaleHandleError False"]


def test_a_fault_on_one_loses_both(gpus):
    """CUDA has it so: the process must be ended, and a reset of either does not help."""
    assert apart(gpus, "fault") == ["DeviceError False", *["StaleHandleError True"] * 2,
                                    *["DeviceError True"] * 4, "works"]
