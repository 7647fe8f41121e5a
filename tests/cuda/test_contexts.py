"""Two GPUs in a process: each call works in its GPU's context and leaves the caller in his."""

import pytest

from tests.cuda.test_runs import on_fake_gpu  # noqa: F401  (a fixture)

BEGIN = """
import ctypes, gc
driver = ctypes.CDLL("libcuda.so.1")
def enter(context): assert driver.cuCtxSetCurrent(ctypes.c_void_p(context)) == 0
def current():
    found = ctypes.c_void_p()
    assert driver.cuCtxGetCurrent(ctypes.byref(found)) == 0
    return found.value
class Lent:  # as PyTorch's: what lies on a GPU other than the current one is not lent
    def __init__(self, array): self.array, self.asked = array, []
    def __dlpack_device__(self): return self.array.__dlpack_device__()
    def __dlpack__(self, *, stream=None):
        self.asked.append(stream)
        if current() != {0: FIRST, 1: SECOND}[self.__dlpack_device__()[1]]:
            raise BufferError("lies on a GPU that is not current")
        return self.array.__dlpack__(stream=stream)
FIRST, SECOND = 16, 32
rows = np.ones((3, 4), np.float32)
"""
TWO = {"FAKE_CUDA_GPUS": "2", "FAKE_CUDA_ORDINAL": "1"}


@pytest.mark.parametrize("context", [None, 16, 32])
@pytest.mark.parametrize("mode", ["graph", "stream", "multistream", "eager"])
def test_the_callers_context_stays_current(on_fake_gpu, mode, context):  # noqa: F811
    on_fake_gpu(BEGIN + f"""
enter({context})
def check(what): assert current() == {context}, (what, current())
s = rlx.load(model(), device="cuda:1", mode={mode!r}); check("load")
for _ in range(3): s.run({{"x": rows}}); check("run")
y = s.run({{"x": rows}}, outputs="device")["y"]; check("outputs on the GPU")
s.run({{"x": y}}); check("an array of ours")
s.run_async({{"x": rows}}).result(); check("run_async")
y.numpy(); check("numpy")
rlx.cuda.to_device(rows, "cuda:1"); check("to_device")
s.profile({{"x": rows}}, runs=1); check("profile")
rlx.empty_cache(); check("empty_cache")
del y; gc.collect(); check("an array that goes")
s.close(); check("close")
rlx.reset("cuda:1", force=True); check("reset")
""", **TWO)


def test_others_lend_in_their_gpus_context(on_fake_gpu):  # noqa: F811
    """On the stream that the run is put on, also where it is watched."""
    on_fake_gpu(BEGIN + """
enter(FIRST)
s = rlx.load(model(), device="cuda:1")
lent = Lent(rlx.cuda.to_device(rows, "cuda:1"))
s.run({"x": lent}), s.run({"x": lent}, stream=4096)
s.profile({"x": lent}, runs=1), s.prepare({"x": lent})
assert lent.asked[:2] == [1, 4096] and set(lent.asked[2:]) == {1}, lent.asked
assert current() == FIRST
""", **TWO)


def test_what_lies_on_another_gpu_is_not_asked_for(on_fake_gpu):  # noqa: F811
    on_fake_gpu(BEGIN + """
s = rlx.load(model(), device="cuda:0")
lent = Lent(rlx.cuda.to_device(rows, "cuda:1"))
for call in (s.run, s.profile, s.prepare):
    try:
        call({"x": lent})
    except rlx.InputError as error:
        assert all(word in str(error) for word in ("'x'", "another GPU", "cuda:0", "cuda:1")), error
    else:
        raise AssertionError("was taken")
assert not lent.asked
s.run({"x": rows})
""", **TWO)


@pytest.mark.parametrize("code", [700, 702, 710, 715, 719])
def test_an_error_that_loses_a_context_loses_all_of_the_process(on_fake_gpu, code):  # noqa: F811
    """So it is on a card: whatever is reset, cuDevicePrimaryCtxRetain fails from then on."""
    done, _ = on_fake_gpu(BEGIN + """
a, b = (rlx.load(model(), device=f"cuda:{k}", mode="stream") for k in (0, 1))
a.run({"x": rows})
def told(call):
    try:
        call()
    except rlx.Error as error:
        print(type(error).__name__, "new process" in error.remedy, "on cuda:1" in str(error))
told(lambda: b.run({"x": rows}))
for session in (a, b):
    told(lambda: session.run({"x": rows}))
told(lambda: rlx.load(model(5), device="cuda:0"))
told(lambda: rlx.reset("cuda:0", force=True))
told(lambda: rlx.load(model(5), device="cuda:0"))
assert "cuDevicePrimaryCtxReset_v2" not in calls()
rlx.run(model(), {"x": rows}, device="cpu")
""", FAKE_CUDA_FAIL=f"cuLaunchKernelEx:{code}:3", **TWO)
    runs = ["DeviceError True False", *["StaleHandleError True True"] * 2]
    assert done.stdout.splitlines() == [*runs, *["DeviceError True True"] * 3]
