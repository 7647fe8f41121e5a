"""Models that cannot be run: each raises its kind of rlx.Error that names node and reason."""

import numpy as np
import onnx
from onnx import TensorProto, helper
import pytest

import rlx
from tests.api.toys import F, add, model, node, value

X, Y = value("x", F, [2]), value("y")


def cyclic():
    return model([node("Add", "x b", "a"), node("Relu", "a", "b")], [X], [value("b")])


def undefined():
    return model([node("Add", "x nowhere", "y")], [X], [Y])


def unknown_operator():
    return model([node("Frobnicate", "x", "y")], [X], [Y])


def unknown_domain():
    made = model([helper.make_node("Relu", ["x"], ["y"], name="Relu_y", domain="acme")], [X], [Y])
    made.opset_import.append(helper.make_opsetid("acme", 1))
    return made


def unknown_attribute():
    return model([node("Relu", "x", "y", slope=3)], [X], [Y])


def missing_input():
    return model([node("Add", "x", "y")], [X], [Y])


def wrong_types():
    return model([node("Add", "x k", "y")], [X, value("k", TensorProto.INT64, [2])], [Y])


def shapes_that_cannot_fit():
    return model([node("Add", "x z", "y")], [X, value("z", F, [3])], [Y])


def written_twice():
    return model([node("Relu", "x", "y"), node("Neg", "x", "y")], [X], [Y])


CASES = [(cyclic, rlx.ModelError, "b"), (undefined, rlx.ModelError, "nowhere"),
         (unknown_operator, rlx.UnsupportedError, "Frobnicate"),
         (unknown_domain, rlx.UnsupportedError, "acme"),
         (unknown_attribute, rlx.UnsupportedError, "slope"),
         (missing_input, rlx.ModelError, "Add_y"),
         (wrong_types, rlx.ModelError, "Add_y"),
         (shapes_that_cannot_fit, rlx.ModelError, "Add_y"), (written_twice, rlx.ModelError, "y")]


@pytest.mark.parametrize("build, kind, says", CASES, ids=lambda x: getattr(x, "__name__", None))
def test_refused(build, kind, says):
    with pytest.raises(kind) as caught:
        rlx.load(build())
    assert says in str(caught.value)


def test_truncated(tmp_path):
    whole = add().SerializeToString()
    for size in (0, 1, len(whole) // 2, len(whole) - 1):
        with pytest.raises(rlx.ModelError):
            rlx.load(whole[:size])
    path = tmp_path / "half.onnx"
    path.write_bytes(whole[:-3])
    with pytest.raises(rlx.ModelError, match="half.onnx"):
        rlx.load(path)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent.onnx") as caught:
        rlx.run(tmp_path / "absent.onnx", [])
    assert isinstance(caught.value, rlx.ModelError)


def test_external_data_outside_the_folder(tmp_path):
    secret = tmp_path / "secret.bin"
    secret.write_bytes(bytes(8))
    folder = tmp_path / "model"
    folder.mkdir()
    made = model([node("Add", "x w", "y")], [X], [Y], {"w": np.zeros(2, np.float32)})
    made.graph.initializer[0].ClearField("raw_data")
    made.graph.initializer[0].data_location = TensorProto.EXTERNAL
    entry = made.graph.initializer[0].external_data.add()
    entry.key, entry.value = "location", "../secret.bin"
    (folder / "m.onnx").write_bytes(made.SerializeToString())
    with pytest.raises(rlx.ModelError, match="w"):
        rlx.load(folder / "m.onnx")


def test_not_a_model():
    for given in (3, None, object(), onnx.GraphProto()):
        with pytest.raises((rlx.Error, TypeError)):
            rlx.load(given)
