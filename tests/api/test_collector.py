"""Python's collector rests while models are read, and is afterwards as it was."""

import gc
import threading

import pytest

from rlx.compiler import _uncollected


@pytest.mark.parametrize("enabled", [True, False])
def test_the_last_of_several_threads_restores_it(enabled):
    inside, first_is_out = threading.Barrier(2, timeout=30), threading.Event()
    seen = []

    def later():
        with _uncollected:
            inside.wait()
            first_is_out.wait(30)
            seen.append(gc.isenabled())

    was = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        thread = threading.Thread(target=later)
        with _uncollected:
            thread.start()
            inside.wait()
        first_is_out.set()
        thread.join()
        assert seen == [False]
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was else gc.disable)()
