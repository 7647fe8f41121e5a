"""Load the compiled module rlx._core under the thread wait policy that rlx wants."""

from collections.abc import Iterator
from contextlib import contextmanager
import os
from types import ModuleType

# A waiting thread of libgomp spins this often, about 50 us, before it sleeps. Measured on two
# cores: forking a team within that time costs 1 us instead of 11. On a busy machine the slowest
# percent of forks takes 0.1 ms; with libgomp's default of 300000 it takes 4 to 8 ms, since the
# spinning threads hold the core that the working ones need, and 3000 is already as bad.
SPIN_COUNT = 1000


@contextmanager
def wait_policy() -> Iterator[None]:
    """Ask a libgomp that is loaded meanwhile for short spinning; leave no trace.

    libgomp reads its environment once, when it is loaded. A policy that the user has chosen
    stays, and so does that of a libgomp which is already in the process.
    """
    if "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ:
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = str(SPIN_COUNT)
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def load_core() -> ModuleType:
    """Import rlx._core."""
    with wait_policy():
        from rlx import _core
    return _core
