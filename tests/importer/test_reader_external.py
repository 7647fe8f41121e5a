"""External data: mapped, checked for size, and confined to the model's folder."""

import os
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T, helper
import pytest

from rlx.errors import ModelError, ModelNotFoundError
from rlx.importer.reader import read

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


def model_with(**entries: str) -> onnx.ModelProto:
    """y = x + w, where w is external with the given entries."""
    tensor = T(name="w", data_type=T.FLOAT, dims=[2, 3], data_location=T.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    x, y = (helper.make_tensor_value_info(n, T.FLOAT, [2, 3]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [tensor])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def save(folder: Path, data: bytes = VALUES.tobytes(), **entries: str) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "w.bin").write_bytes(data)
    path = folder / "m.onnx"
    path.write_bytes(model_with(**entries).SerializeToString())
    return str(path)


@pytest.mark.parametrize("entries, before", [
    ({}, 0), ({"length": "24"}, 0), ({"offset": "0", "length": "24"}, 0),
    ({"offset": "4096"}, 4096), ({"offset": "3", "length": "24", "checksum": "ignored"}, 3),
])
def test_data_is_mapped(tmp_path, entries, before):
    path = save(tmp_path, b"?" * before + VALUES.tobytes() + b"tail", location="w.bin", **entries)
    weight = read(path).graph.initializers["w"]
    np.testing.assert_array_equal(weight.array, VALUES)
    assert weight.mapped and not weight.array.flags.writeable
    again = read(path).graph.initializers["w"]
    assert weight.source == again.source and weight.source is not None


def test_subfolders_and_file_objects(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "w").write_bytes(VALUES.tobytes())
    path = save(tmp_path, location="data/./w")
    with open(path, "rb") as file:
        for model in (path, Path(path), file):
            np.testing.assert_array_equal(read(model).graph.initializers["w"].array, VALUES)


def test_tensors_share_the_mapping_and_have_their_own_source(tmp_path):
    model = model_with(location="w.bin")
    model.graph.initializer.add().CopyFrom(model.graph.initializer[0])
    model.graph.initializer[1].name = "v"
    other = model.graph.initializer.add()
    other.CopyFrom(model.graph.initializer[0])
    other.name = "u"
    other.external_data.add(key="offset", value="4")
    (tmp_path / "w.bin").write_bytes(bytes(28))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    weights = read(tmp_path / "m.onnx").graph.initializers
    assert weights["w"].source == weights["v"].source != weights["u"].source
    assert weights["w"].data.ctypes.data + 4 == weights["u"].data.ctypes.data


def test_attributes_may_be_external(tmp_path):
    model = model_with(location="w.bin")
    constant = model.graph.node.add(op_type="Constant", output=["w"])
    attribute = constant.attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
    attribute.t.CopyFrom(model.graph.initializer.pop())
    (tmp_path / "w.bin").write_bytes(VALUES.tobytes())
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    nodes = read(tmp_path / "m.onnx").graph.nodes
    assert [n.op_type for n in nodes] == ["Constant", "Add"]
    np.testing.assert_array_equal(nodes[0].attributes["value"].array, VALUES)


@pytest.mark.parametrize("data, entries", [
    (VALUES.tobytes()[:-1], {}), (b"", {}), (VALUES.tobytes(), {"offset": "1"}),
    (VALUES.tobytes(), {"length": "20"}), (bytes(99), {"length": "28"}),
    (VALUES.tobytes(), {"offset": "-4"}), (VALUES.tobytes(), {"offset": "four"}),
    (VALUES.tobytes(), {"length": "-1"}), (VALUES.tobytes(), {"offset": "9" * 30}),
    (VALUES.tobytes(), {"offset": str(2**63 - 4)}), (VALUES.tobytes(), {"offset": "1e3"}),
    (VALUES.tobytes(), {"length": ""}),
])
def test_sizes_are_checked(tmp_path, data, entries):
    with pytest.raises(ModelError, match="'w'"):
        read(save(tmp_path, data, location="w.bin", **entries))


@pytest.mark.parametrize("location", [
    "../w.bin", "a/../../w.bin", "./../w.bin", "..", "/etc/hostname", "C:\\w.bin", "c:w.bin",
    "\\\\host\\w.bin", "", ".", "w.bin\0.txt", "sub", "sub/../w.bin",
])
def test_locations_outside_are_refused(tmp_path, location):
    (tmp_path / "w.bin").write_bytes(VALUES.tobytes())
    path = save(tmp_path / "model", location=location)
    (tmp_path / "model" / "sub").mkdir()
    with pytest.raises(ModelError, match="'w'"):
        read(path)


def test_absolute_location_of_a_good_file_is_refused(tmp_path):
    path = save(tmp_path, location=str(tmp_path / "w.bin"))
    with pytest.raises(ModelError, match="absolute"):
        read(path)


def test_missing_file_and_missing_location(tmp_path):
    with pytest.raises(ModelNotFoundError, match="nowhere.bin"):
        read(save(tmp_path, location="nowhere.bin"))
    with pytest.raises(ModelError, match="location"):
        read(save(tmp_path))


def test_links_out_of_the_folder_are_refused(tmp_path):
    (tmp_path / "secret").write_bytes(VALUES.tobytes())
    path = save(tmp_path / "model", location="link")
    (tmp_path / "model" / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(ModelError, match="link"):
        read(path)
    (tmp_path / "model" / "link").unlink()
    (tmp_path / "model" / "link").symlink_to(tmp_path)
    with pytest.raises(ModelError, match="link"):
        read(save(tmp_path / "model", location="link/secret"))


def test_a_cache_of_linked_files_works(tmp_path):
    """Hub caches link model and data, by their names, to blobs of one folder."""
    blobs, names = tmp_path / "blobs", tmp_path / "names"
    names.mkdir()
    os.rename(save(blobs, location="w.bin"), blobs / "abc")
    os.rename(blobs / "w.bin", blobs / "def")
    (names / "m.onnx").symlink_to(blobs / "abc")
    (names / "w.bin").symlink_to(blobs / "def")
    weight = read(names / "m.onnx").graph.initializers["w"]
    np.testing.assert_array_equal(weight.array, VALUES)


def test_models_without_a_folder_are_told_so():
    model = model_with(location="w.bin")
    for given in (model, model.SerializeToString()):
        with pytest.raises(ModelError, match="pass the model's path"):
            read(given)


def test_pipes_do_not_block(tmp_path):
    path = save(tmp_path, location="pipe")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelError, match="regular"):
        read(path)
    with pytest.raises(ModelError, match="regular"):
        read(tmp_path / "pipe")
