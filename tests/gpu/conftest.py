"""Tests of this folder need a GPU: without one they are skipped, and say so."""

import pytest
import rlx


@pytest.fixture(scope="session", autouse=True)
def gpu() -> str:
    """The name of the device that the tests use."""
    names = [name for name in rlx.devices() if name.startswith("cuda")]
    if not names:
        pytest.skip("needs an NVIDIA GPU: " + rlx._core.cuda_probe()["reason"])
    return names[0]
