"""Free memory whose last use may still be going on is for work behind that use only."""

from tests.cuda.test_runs import on_fake_gpu  # noqa: F401  (a fixture)

BEGIN = """
import ctypes, gc
api = ctypes.pythonapi
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
s = rlx.load(model(), device="cuda")
def run(stream, rows=3, use=None):
    y = s.run({"x": np.ones((rows, 4), np.float32)}, outputs="device", stream=stream)["y"]
    if use is not None: use(y)
    del y
    gc.collect()
def address(stream, rows=3):
    y = s.run({"x": np.ones((rows, 4), np.float32)}, outputs="device", stream=stream)["y"]
    capsule = y.__dlpack__(stream=stream)       # on the stream that made it
    return ctypes.c_void_p.from_address(api.PyCapsule_GetPointer(capsule, b"dltensor")).value
def waits(): return calls().count("cuCtxSynchronize")
def pool(): return rlx._core.cuda_statistics()[0]
"""


def test_a_block_returns_to_its_stream(on_fake_gpu):  # noqa: F811
    """What another stream still reads or writes is not overwritten; large and small blocks."""
    on_fake_gpu(BEGIN + """
for rows in (3, 300_000):
    a, b = address(4096, rows), address(8192, rows)
    assert a != b
    for _ in range(5):
        assert (address(4096, rows), address(8192, rows)) == (a, b)
assert waits() == 0
""")


def test_two_streams_in_turns_wait_for_no_block_however_large(on_fake_gpu):  # noqa: F811
    on_fake_gpu(BEGIN + """
rows = 20_000_000  # of 16 bytes
for _ in range(3):
    run(4096, rows), run(8192, rows)
assert waits() == 0
""")


def test_a_consumer_that_names_no_stream_works_on_the_default_one(on_fake_gpu):  # noqa: F811
    on_fake_gpu(BEGIN + """
y = s.run({"x": np.ones((3, 4), np.float32)}, outputs="device", stream=4096)["y"]
before = len(calls())
y.__dlpack__(stream=-1)
assert not [call for call in calls()[before:] if call.startswith("waits")]
y.__dlpack__()
assert "records:4096" in calls()[before:] and "waits:1" in calls()[before:]
""")


def test_what_was_lent_to_another_stream_is_not_used_again_at_once(on_fake_gpu):  # noqa: F811
    on_fake_gpu(BEGIN + """
first = address(4096, 300_000)
run(4096, 300_000, lambda y: y.__dlpack__(stream=8192))
assert address(4096, 300_000) != first
for lend in (lambda y: y.__dlpack__(), lambda y: y.__dlpack__(stream=-1),
             lambda y: y.__cuda_array_interface__,
             lambda y: s.run({"x": y}, outputs="device", stream=8192)):
    last = address(4096, 300_000)
    run(4096, 300_000, lend)
    assert address(4096, 300_000) != last
assert waits() == 0
""")


def test_memory_does_not_grow_with_the_streams(on_fake_gpu):  # noqa: F811
    """A few blocks of a size wait elsewhere, then the GPU is waited for."""
    on_fake_gpu(BEGIN + """
for rows in (3, 300_000):
    for stream in range(4096, 4096 + 4 * 64, 4): run(stream, rows)
    before = pool()
    asked = waits()
    for stream in range(8192, 8192 + 4 * 512, 4): run(stream, rows)
    after = pool()
    assert after["driver_allocations"] == before["driver_allocations"], (before, after)
    assert after["used_bytes"] + after["kept_bytes"] == before["used_bytes"] + before["kept_bytes"]
    assert 0 < waits() - asked <= 512 // 8
""")


def test_a_wait_that_fails_takes_fresh_memory(on_fake_gpu):  # noqa: F811
    done, _ = on_fake_gpu(BEGIN + """
for stream in range(4096, 4096 + 4 * 40, 4): run(stream)
print(waits() > 0)
""", FAKE_CUDA_FAIL="cuCtxSynchronize:900")
    assert done.stdout.split() == ["True"]
