"""Arrays of torch and JAX go in and results go back to them, bfloat16 included."""

import pytest

from tests.clients.conftest import PROGRAMS

pytestmark = [pytest.mark.slow, pytest.mark.clients]


def test_torch_and_jax(started):
    assert started(PROGRAMS / "arrays.py")["answers"] == [
        "torch float32", "torch float64", "torch float16", "torch int64", "torch bfloat16",
        "jax float32", "jax float16", "jax int32", "jax bfloat16", "grad"]
