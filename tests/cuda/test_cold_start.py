"""How many kernels a network asks the compiler for: what a first run with an empty cache costs.

Without libraries, whose kernels are compiled already. A count that falls is entered here; one that
rises needs a reason: NVRTC takes 0.1 to 1 s of a core for each. Convolutions on tensor cores
differ by the channels that are copied as one, 16 bytes at most: 1 of the images, and, in the narrow
mobilenet_v2 alone, 4 of 12; what has 4 channels in all goes to the direct form.
"""

import pytest

KERNELS = {  # float32, float16
    "bert-base": (10, 10), "resnet50": (9, 9), "mobilenet_v2": (10, 11),
}
RUN = """
import models, numpy as np, rlx
from tests.models.test_builders import SIZES, inputs
builder = models.BUILDERS["{name}"]
model = builder.build(0, np.dtype("{dtype}"), **builder.NARROW)
for size in SIZES["{name}"]:
    with rlx.load(model, device="cuda") as session:
        session.run(inputs("{name}", size, dtype=np.dtype("{dtype}")))
        rlx._core.finish_kernels(session._device)  # a Region may have been interpreted until now
    print(rlx._core.cuda_statistics()[0]["kernels_compiled"])
"""


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", KERNELS)
def test_a_network_asks_for_no_more_kernels(python, fake_driver, fake_nvrtc, name, dtype):
    # Compiling takes a while, so that the interpreter is always asked for.
    done = python(RUN.format(name=name, dtype=dtype), fake_nvrtc, LD_LIBRARY_PATH=str(fake_driver),
                  COMPILE_MS="50")
    first, *later = map(int, done.stdout.split())
    assert first == KERNELS[name][dtype == "float16"]
    assert later and set(later) == {first}  # another size compiles nothing
