"""CUDA graphs that PyTorch captures: users' kernels become part of them, Sessions run beside."""

import gc
import threading
import weakref

import numpy as np
import pytest
import rlx

from tests.models.test_builders import SIZES, inputs, narrow

torch = pytest.importorskip("torch")

SOURCE = r'''
extern "C" __global__ void add(float* x, const float* by, int n) {
  extern __shared__ float held[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) held[threadIdx.x] = by[i], x[i] += held[threadIdx.x];
}
'''
MODES = ["global", "thread_local", "relaxed"]


@pytest.fixture(scope="module")
def add(gpu):
    return rlx.cuda.compile(SOURCE, "add", device=gpu)


@pytest.fixture(scope="module")
def session(gpu):
    with rlx.load(narrow("bert-base"), device=gpu, tf32=False) as session:
        session.run(inputs("bert-base", SIZES["bert-base"][0]))
        yield session


@pytest.mark.parametrize("mode", MODES)
def test_launches_become_part_of_the_graph(gpu, add, mode):
    x, by = torch.zeros(256, device="cuda"), torch.full((256,), 2.0, device="cuda")
    add(1, 256, x, by, 256, shared=60_000)          # is going on when the capture begins
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode=mode):
        launches = [add(1, 256, x, by, 256, shared=60_000, stream=torch.cuda.current_stream())
                    for _ in range(3)]
        y = x * 10
    for launch in launches:
        with pytest.raises(rlx.InputError, match="captured"):
            launch.done()
    for _ in range(4):
        graph.replay()
    torch.cuda.synchronize()
    assert torch.all(x == 2 + 4 * 3 * 2) and torch.all(y == 260)


@pytest.mark.parametrize("mode", MODES)
def test_a_kernel_is_made_while_a_graph_is_captured(gpu, mode):
    """Its module is loaded, and arrays of rlx are made, inside the capture."""
    graph = torch.cuda.CUDAGraph()
    x = torch.zeros(64, device="cuda")
    with torch.cuda.graph(graph, capture_error_mode=mode):
        k = rlx.cuda.compile(SOURCE.replace("+=", "-="), "add", device=gpu, defines={"MODE": mode})
        by = rlx.cuda.to_device(np.full(64, 3, np.float32), gpu)
        k(1, 64, x, by, 64, shared=256, stream=torch.cuda.current_stream())
    del k, by                                       # the graph has them
    gc.collect()
    rlx.cuda.to_device(np.full(64, 9, np.float32), gpu)
    graph.replay()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.all(x == -6)


def test_operands_go_with_the_graph(gpu, add):
    graph = torch.cuda.CUDAGraph()
    x = torch.zeros(64, device="cuda")
    with torch.cuda.graph(graph):
        by = rlx.cuda.to_device(np.ones(64, np.float32), gpu)
        add(1, 64, x, by, 64, shared=256, stream=torch.cuda.current_stream())
    used = rlx._core.cuda_statistics()[0]["used_bytes"]
    del by
    gc.collect()
    add(1, 64, x, x, 64, shared=256).synchronize()
    assert rlx._core.cuda_statistics()[0]["used_bytes"] == used
    graph.replay()
    torch.cuda.synchronize()
    graph.reset()
    for _ in range(200):                            # CUDA tells of it on a thread of its own
        add(1, 64, x, x, 64, shared=256).synchronize()
        if rlx._core.cuda_statistics()[0]["used_bytes"] < used:
            return
    pytest.fail("the graph is gone, its operands are not")


def test_tensors_that_only_the_graph_needs_stay(gpu, add):
    graph = torch.cuda.CUDAGraph()
    x, by = torch.zeros(64, device="cuda"), torch.full((64,), 5.0, device="cuda")
    there = weakref.ref(by)
    with torch.cuda.graph(graph):
        add(1, 64, x, by, 64, shared=256, stream=torch.cuda.current_stream())
    del by
    gc.collect()
    torch.full((64,), 7.0, device="cuda")           # takes what is free
    graph.replay()
    torch.cuda.synchronize()
    assert there() is not None and torch.all(x == 5)


def test_contents_made_elsewhere_are_waited_for_by_the_host(gpu, add):
    x, by = torch.zeros(64, device="cuda"), rlx.cuda.to_device(np.full(64, 4, np.float32), gpu)
    graph, other = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    add(1, 64, by, by, 64, shared=256, stream=other)  # made on this stream from now on
    with torch.cuda.graph(graph):
        add(1, 64, x, by, 64, shared=256, stream=torch.cuda.current_stream())
    graph.replay()
    torch.cuda.synchronize()
    assert torch.all(x == 8)


def test_a_session_refuses_a_captured_stream_and_spoils_nothing(gpu, session):
    given = inputs("bert-base", SIZES["bert-base"][0])
    truth = session.run(given)
    graph = torch.cuda.CUDAGraph()
    x = torch.zeros(8, device="cuda")
    with torch.cuda.graph(graph):
        with pytest.raises(rlx.InputError, match="being captured"):
            session.run(given, outputs="device", stream=torch.cuda.current_stream())
        x += 1
    graph.replay()
    torch.cuda.synchronize()
    assert torch.all(x == 1)
    for name, y in session.run(given).items():
        np.testing.assert_array_equal(y, truth[name])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("elsewhere", [False, True])
def test_models_load_and_run_beside_a_capture(gpu, session, mode, elsewhere):
    """In global mode CUDA spoils a capture when any thread so much as asks for memory."""
    given = inputs("bert-base", SIZES["bert-base"][0])
    truth, wrong = session.run(given), []

    def work():
        try:
            fresh = rlx.load(narrow("bert-base"), device=gpu, tf32=False)
            for each in (session, session, fresh, fresh, fresh):
                found = each.run(given)
                wrong.extend(name for name in truth if not np.array_equal(found[name], truth[name]))
            fresh.close()
            rlx.empty_cache()
        except rlx.Error as error:
            wrong.append(error)

    graph = torch.cuda.CUDAGraph()
    x = torch.zeros(8, device="cuda")
    with torch.cuda.graph(graph, capture_error_mode=mode):
        x += 1
        if elsewhere:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        else:
            work()
        x += 1
    graph.replay()
    torch.cuda.synchronize()
    assert not wrong and torch.all(x == 2)


def test_the_stream_of_a_run_may_be_captured(gpu, session):
    given = inputs("bert-base", SIZES["bert-base"][0])
    truth = session.run(given)
    stream = torch.cuda.Stream()
    session.run(given, outputs="device", stream=stream)
    graph = torch.cuda.CUDAGraph()
    x = torch.zeros(8, device="cuda")
    with torch.cuda.graph(graph, stream=stream):
        x += 1
        for _ in range(3):
            for name, y in session.run(given).items():
                np.testing.assert_array_equal(y, truth[name])
    graph.replay()
    torch.cuda.synchronize()
    assert torch.all(x == 1)


def test_the_stream_of_a_run_may_go(gpu, session):
    cupy = pytest.importorskip("cupy")
    given = inputs("bert-base", SIZES["bert-base"][0])
    truth = session.run(given)
    for _ in range(8):                              # destroyed with the object, unlike PyTorch's
        own = cupy.cuda.Stream(non_blocking=True)
        found = session.run(given, outputs="device", stream=own.ptr)
        own.synchronize()
        del own
        gc.collect()
        for name, y in session.run(given).items():
            np.testing.assert_array_equal(y, truth[name])
        del found
