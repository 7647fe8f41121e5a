"""Users' kernels on a card: results, streams, lifetimes, templates, linking, resets."""

import subprocess
import sys
import time
import uuid

import numpy as np
import pytest
import rlx

torch = pytest.importorskip("torch")

SOURCE = r'''
template <class T> __global__ void axpy(T a, const T* x, T* y, size_t n) {
  size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
extern "C" __global__ void spin(long long cycles, int* after) {
  long long begin = clock64();
  while (clock64() - begin < cycles) {}
  if (threadIdx.x == 0 && blockIdx.x == 0) *after += 1;
}
struct Mix { double a; unsigned char b; short c; float d[2]; };
__global__ void mixed(bool flag, Mix m, unsigned long long big, const unsigned char* none,
                      signed char small, double* to) {
  to[0] = flag, to[1] = m.a, to[2] = m.b, to[3] = m.c, to[4] = m.d[1], to[5] = double(big >> 32);
  to[6] = none == nullptr, to[7] = small;
}
extern "C" __global__ void reverse(float* x) {
  extern __shared__ float held[];
  held[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void indices(int* out) {
  unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
}
'''
SPIN = 400_000_000  # cycles: a fifth of a second


def build(name, gpu, **options):
    return rlx.cuda.compile(SOURCE, name, device=gpu, **options)


@pytest.mark.parametrize("ctype, dtype", [("float", torch.float32), ("double", torch.float64),
                                          ("int", torch.int32), ("long long", torch.int64)])
@pytest.mark.parametrize("lto", [False, True])
def test_a_template_on_torch_tensors(gpu, ctype, dtype, lto):
    if lto and not next(row for row in rlx._core.cuda_probe()["libraries"]
                        if row["name"] == "nvJitLink")["usable"]:
        pytest.skip("needs nvJitLink")
    n = 10_007
    k = build(f"axpy<{ctype}>", gpu, lto=lto)
    x = torch.arange(n, device="cuda").to(dtype)
    y = torch.ones(n, dtype=dtype, device="cuda")
    k(-(-n // 256), 256, 3, x, y, n)
    expected = 3 * np.arange(n) + 1
    np.testing.assert_array_equal(y.cpu().numpy(), expected)     # the same stream: in order
    own = rlx.cuda.to_device(np.ones(n, x.cpu().numpy().dtype), gpu)
    k(-(-n // 256), 256, x.cpu().numpy().dtype.type(3), x, own, n).synchronize()
    np.testing.assert_array_equal(own.numpy(), expected)
    assert torch.equal(torch.from_dlpack(own).cpu(), y.cpu())


def test_values_of_all_kinds(gpu):
    mix = np.zeros((), np.dtype([("a", "f8"), ("b", "u1"), ("c", "i2"), ("d", "f4", 2)],
                                align=True))
    mix["a"], mix["b"], mix["c"], mix["d"] = 1.25, 200, -5, (1, 2.5)
    to = torch.zeros(8, dtype=torch.float64, device="cuda")
    build("mixed", gpu)(1, 1, True, mix[()], 7 << 32, None, -8, to)
    assert to.tolist() == [1, 1.25, 200, -5, 2.5, 7, 1, -8]


def test_grids_blocks_and_shared_memory(gpu):
    grid, block = (3, 2, 4), (8, 4, 2)
    out = torch.zeros(24 * 64, dtype=torch.int32, device="cuda")
    build("indices", gpu)(grid, block, out)
    expected = np.arange(24)[:, None] * 1000 + np.arange(64)
    np.testing.assert_array_equal(out.cpu().numpy(), expected.reshape(-1))
    x = torch.arange(1024, dtype=torch.float32, device="cuda")
    k = build("reverse", gpu)
    k(1, 1024, x, shared=100_000)                                # beyond what needs no asking
    assert torch.equal(x.cpu(), torch.arange(1024.).flip(0))
    with pytest.raises(rlx.InputError, match="shared"):
        k(1, 1024, x, shared=1 << 20)
    assert k.registers > 0 and k.max_threads == 1024


def test_streams_and_completion(gpu):
    after = torch.zeros(1, dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()
    k = build("spin", gpu)
    stream = torch.cuda.Stream()
    launch = k(1, 1, SPIN, after, stream=stream)
    assert not launch.done()
    with torch.cuda.stream(stream):
        doubled = after * 2                                      # behind it on its stream
    launch.synchronize()
    assert launch.done()
    stream.synchronize()
    assert (after.item(), doubled.item()) == (1, 2)

    own = rlx.cuda.to_device(np.zeros(1, np.int32), gpu)
    k(1, 1, SPIN, own, stream=stream)
    other = torch.cuda.Stream()
    with torch.cuda.stream(other):                               # DLPack orders the two
        seen = torch.from_dlpack(own) + 0
    other.synchronize()
    assert seen.item() == 1

    async def awaited():
        await k(1, 1, SPIN // 10, after)
    import asyncio
    asyncio.run(awaited())
    assert after.item() == 2


def test_operands_live_until_the_kernel_has_ended(gpu):
    """A freed operand's memory would be given to the next array, and overwritten there."""
    spin, axpy = build("spin", gpu), build("axpy<int>", gpu)
    stream = torch.cuda.Stream()
    counter = torch.zeros(1, dtype=torch.int32, device="cuda")
    y = torch.zeros(1 << 20, dtype=torch.int32, device="cuda")
    x = torch.full((1 << 20,), 5, dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()
    spin(1, 1, SPIN, counter, stream=stream)
    launch = axpy(4096, 256, 1, x, y, 1 << 20, stream=stream)
    del x
    other = torch.full((1 << 20,), 7, dtype=torch.int32, device="cuda")
    assert not launch.done()
    launch.synchronize()
    assert torch.all(y == 5) and torch.all(other == 7)


def test_compiling_goes_on_beside_launches(gpu):
    """A launch that waited for the compiler would last as long as the compilation, whatever the
    machine's speed. One of several tries may meet a machine that is busy else."""
    k = build("axpy<float>", gpu)
    x = torch.ones(256, device="cuda")
    y = torch.zeros(256, device="cuda")
    z = torch.zeros(4, dtype=torch.float64, device="cuda")
    launches, shares = 0, []
    for _ in range(5):
        begin = time.perf_counter()
        future = rlx.cuda.compile_async(f"// {uuid.uuid4()}\n" + SOURCE, "axpy<double>", device=gpu)
        taken = []
        while not taken or not future.done():
            start = time.perf_counter()
            k(1, 256, 1.0, x, y, 256).synchronize()
            taken.append(time.perf_counter() - start)
        shares.append(max(taken) / (time.perf_counter() - begin))
        launches += len(taken)
        future.result()(1, 4, 2.0, torch.ones(4, dtype=torch.float64, device="cuda"), z, 4)
    assert torch.all(y == launches) and z.tolist() == [10.0] * 4
    assert min(shares) < 0.5, shares


@pytest.mark.parametrize("spoil, word", [
    (lambda x: x.double(), "float64"), (lambda x: x.cpu(), "GPU"), (lambda x: x[::2], "contiguous"),
    (lambda x: x.requires_grad_(), "grad"), (lambda x: x.cpu().numpy(), "GPU"),
])
def test_what_does_not_fit_is_refused(gpu, spoil, word):
    k = build("axpy<float>", gpu)
    x, y = torch.ones(64, device="cuda"), torch.zeros(64, device="cuda")
    with pytest.raises(rlx.InputError, match=word):
        k(1, 64, 1.0, spoil(x), y, 64)
    k(1, 64, 1.0, torch.ones(64, device="cuda"), y, 64)
    assert torch.all(y == 1)


# In a process of its own, since it takes the GPU from all of them.
RESET = r"""
import sys, numpy as np, rlx
gpu = sys.argv[1]
source = 'extern "C" __global__ void add(int* x, int n) { x[0] += n; }' \
         'extern "C" __global__ void lose(int* x) { *(int*)16 = 1; }'
k, x = rlx.cuda.compile(source, "add", device=gpu), rlx.cuda.to_device(np.zeros(1, np.int32), gpu)
k(1, 1, x, 5).synchronize()
print(x.numpy()[0], k.generation)
rlx.reset(gpu, force=True)
new, y = rlx.cuda.compile(source, "add", device=gpu), rlx.cuda.to_device(np.zeros(1, np.int32), gpu)
for call in (lambda: k(1, 1, y, 1), lambda: new(1, 1, x, 1)):
    try:
        call()
    except rlx.Error as error:
        print(type(error).__name__)
new(1, 1, y, 7).synchronize()
print(y.numpy()[0], new.generation)
launch = rlx.cuda.compile(source, "lose", device=gpu)(1, 1, y)
for call in (launch.synchronize, lambda: new(1, 1, y, 1)):
    try:
        call()
    except rlx.Error as error:
        print(type(error).__name__, "lose" in str(error))
"""


def test_resets_and_a_kernel_that_goes_wrong(gpu):
    done = subprocess.run([sys.executable, "-c", RESET, gpu], text=True, capture_output=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "5 0", "StaleHandleError", "StaleHandleError", "7 1", "DeviceError True",
        "StaleHandleError False"], done.stderr
