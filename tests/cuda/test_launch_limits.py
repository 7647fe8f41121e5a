"""No launch leaves the limits of a grid, whatever the batch: the fake driver refuses those."""

import pytest

from tests.large import CASES, IMAGES


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


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_of_more_elements_than_an_int_counts(python, fake_driver, fake_nvrtc, tmp_path,
                                                      name):
    code = f"""
import rlx
from tests.large import large_image
made, rung, feeds, truth = large_image({name!r})
with rlx.load(made, device="cuda", force=rung) as session:
    assert session.run(feeds)["y"].shape == truth.shape
    print([row["rung"] for row in session.explain() if row["op"] == "Conv"])
"""
    done = python(code, fake_nvrtc, LD_LIBRARY_PATH=str(fake_driver),
                  FAKE_CUDA_LOG=str(tmp_path / "calls"), FAKE_CUDA_MEMORY=str(1 << 36))
    used = {"tensor cores": "tensor core convolution", "tiles": "implicit product"}
    assert used.get(name, name) in done.stdout
