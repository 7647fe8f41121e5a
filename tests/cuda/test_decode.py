"""Kernels that attention of few query rows asks for: by what is known when it is planned.

NVRTC is fake_nvrtc.cpp, which compiles nothing.
"""

import pytest

GROW = """
import rlx
from tests.attention import Form, feeds_of, model_of
forms = [Form(1, 2, 4, rows, keys, 64, "none", "{dtype}")
         for rows, keys in ((1, 1), (1, 17), (1, 512), (1, 513), (1, 40000), (7, 40000), (15, 3))]
for form in forms:
    with rlx.load(model_of(form, open_keys=True), device="cuda") as session:
        session.run(feeds_of(form)[0])
        rlx._core.finish_kernels(session._device)
        print(rlx._core.cuda_statistics()[0]["kernels_compiled"],
              session.explain()[-1]["rung"].replace(" ", "_"))
"""
SHIP = """
import rlx
from tests.attention import Form, feeds_of, model_of
form = Form(1, 2, 4, 1, 20, 64, "none", "float16")
rlx.compile(model_of(form), {folder!r}, feeds_of(form)[0], architectures=["sm_75", "sm_80"])
"""


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_past_that_grows_compiles_nothing(python, fake_driver, fake_nvrtc, dtype):
    """Nor do other numbers of few query rows: two kernels serve them, split or not."""
    done = python(GROW.format(dtype=dtype), fake_nvrtc, LD_LIBRARY_PATH=str(fake_driver))
    rows = [line.split() for line in done.stdout.splitlines()]
    assert {rung for _, rung in rows} == {"decode_attention"} and len(rows) == 7
    assert {int(count) for count, _ in rows} == {2}


def test_older_cards_get_the_kernel_for_ordinary_cores(python, fake_nvrtc, tmp_path):
    folder = tmp_path / "shipped"
    python(SHIP.format(folder=str(folder)), fake_nvrtc)
    texts = [path.read_bytes() for path in folder.glob("*.cubin")]
    asked = {(arch, b"decode_mma" in text) for text in texts if b"attention_decode" in text
             for arch in ("75", "80") if f"-arch=sm_{arch}".encode() in text}
    assert {("75", False), ("80", True)} <= asked and ("75", True) not in asked
