"""Arrays that lie on the GPU, in and out, with PyTorch as the other library."""

import numpy as np
import pytest
import rlx

from tests.models.test_builders import SIZES, inputs, narrow

torch = pytest.importorskip("torch")


@pytest.fixture
def session(gpu):
    with rlx.load(narrow("vit-b16"), device=gpu, tf32=False) as session:
        yield session


@pytest.fixture
def given():
    return inputs("vit-b16", SIZES["vit-b16"][0])


def on_gpu(given):
    return {name: torch.from_numpy(x).cuda() for name, x in given.items()}


def test_device_in_and_out_equals_host(session, given):
    host = session.run(given)
    device = on_gpu(given)
    for _ in range(4):
        for name, y in session.run(device, outputs="device").items():
            np.testing.assert_array_equal(torch.from_dlpack(y).cpu().numpy(), host[name])
            np.testing.assert_array_equal(y.numpy(), host[name])


def test_device_in_host_out(session, given):
    host = session.run(given)
    for _ in range(3):
        for name, y in session.run(on_gpu(given)).items():
            np.testing.assert_array_equal(y, host[name])


def test_outputs_are_not_overwritten_by_the_next_run(session, given):
    device = on_gpu(given)
    other = {name: 2 * x for name, x in device.items()}
    kept = [session.run(x, outputs="device") for x in (device, other, device, other)]
    for name in kept[0]:
        a, b, c, d = (torch.from_dlpack(run[name]) for run in kept)
        assert torch.equal(a, c) and torch.equal(b, d) and not torch.equal(a, b)


def test_work_of_another_stream_is_waited_for(session, given):
    truth = session.run({name: 3 * x for name, x in given.items()})
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        device = on_gpu(given)
        for _ in range(20):
            device = {name: x * 1.0 for name, x in device.items()}
        device = {name: x * 3 for name, x in device.items()}
        found = session.run(device, outputs="device", stream=stream.cuda_stream)
        found = {name: torch.from_dlpack(y) for name, y in found.items()}
    stream.synchronize()
    for name, y in found.items():
        np.testing.assert_array_equal(y.cpu().numpy(), truth[name])


def test_a_misaligned_slice_is_taken(session, given):
    host = session.run(given)
    shifted = {}
    for name, x in given.items():
        flat = torch.zeros(x.size + 1, device="cuda")
        flat[1:] = torch.from_numpy(x.reshape(-1)).cuda()
        shifted[name] = flat[1:].view(x.shape)
    for name, y in session.run(shifted).items():
        np.testing.assert_array_equal(y, host[name])


@pytest.mark.parametrize("spoil, word", [
    (lambda x: x.transpose(2, 3), "contiguous"), (lambda x: x.double(), "float32"),
    (lambda x: x[0], "shape"),
])
def test_what_does_not_fit_is_refused(session, given, spoil, word):
    with pytest.raises(rlx.InputError, match=word):
        session.run({name: spoil(x) for name, x in on_gpu(given).items()})
    session.run(given)


def test_pytorch_and_rlx_share_the_process(session, given):
    a = torch.randn(256, 256, device="cuda")
    for _ in range(3):
        session.run(given)
        assert torch.isfinite(a @ a).all()


SPIN = r'''
extern "C" __global__ void spin(long long cycles) {
  long long begin = clock64();
  while (clock64() - begin < cycles) {}
}
'''


@pytest.mark.parametrize("consumer", ["its own", "another"])
def test_a_dropped_result_is_not_overwritten_while_it_is_read(gpu, session, given, consumer):
    """PyTorch's work on one stream still waits for its turn when a run on another begins."""
    truth = session.run(given)
    other = {name: -2 * x for name, x in given.items()}
    spin = rlx.cuda.compile(SPIN, "spin", device=gpu)
    a, b, c = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.Stream()
    reads = a if consumer == "its own" else c
    for _ in range(3):                              # until the runs are recorded
        session.run(other, outputs="device", stream=b)
        found = session.run(given, outputs="device", stream=a)
        with torch.cuda.stream(reads):
            lent = {name: torch.from_dlpack(y) for name, y in found.items()}
            spin(1, 1, 200_000_000, stream=reads)   # a tenth of a second
            kept = {name: y * 1 for name, y in lent.items()}
        del found, lent
        for _ in range(4):
            session.run(other, outputs="device", stream=b)
            if consumer == "another":
                session.run(other, outputs="device", stream=a)
        torch.cuda.synchronize()
        for name, y in kept.items():
            np.testing.assert_array_equal(y.cpu().numpy(), truth[name])
