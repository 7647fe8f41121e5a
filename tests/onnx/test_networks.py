"""The nine convolution networks in the onnx package give their stored outputs."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from rlx import backend
from tests.tolerance import assert_network_output

FOLDER = Path(onnx.__file__).parent / "backend/test/data/light"
NAMES = ["bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet",
         "squeezenet", "vgg19", "zfnet512"]


@pytest.mark.parametrize("name", NAMES)
def test_network_gives_its_stored_output(name):
    path = FOLDER / f"light_{name}.onnx"
    model = onnx.load(path)
    stored = {initializer.name for initializer in model.graph.initializer}
    (given,) = [value for value in model.graph.input if value.name not in stored]
    shape = [dim.dim_value for dim in given.type.tensor_type.shape.dim]
    # The suite's runner feeds the indices of the elements, from 0 to 1.
    count = int(np.prod(shape))
    image = (np.arange(count) / count).astype(np.float32).reshape(shape)
    (found,) = backend.prepare(model, "CPU").run([image])
    expected = onnx.load_tensor(FOLDER / f"light_{name}_output_0.pb")
    assert_network_output(found, onnx.numpy_helper.to_array(expected), "float32", name)
