"""No launch leaves the limits of a grid, whatever the batch: the fake driver refuses those."""

import pytest

from tests.large import CASES


@pytest.mark.parametrize("name", CASES)
def test_a_batch_beyond_the_axes_of_a_grid(python, fake_driver, fake_nvrtc, tmp_path, name):
    code = f"""
import rlx
from tests.large import large
made, feeds, _ = large({name!r})
with rlx.load(made, device="cuda") as session:
    session.run(feeds)
"""
    python(code, fake_nvrtc, LD_LIBRARY_PATH=str(fake_driver),
           FAKE_CUDA_LOG=str(tmp_path / "calls"))
