"""What rlx.load does per model, in counts: no weight is copied, nothing is found out twice."""

import tracemalloc

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import models
import rlx
from rlx.importer import registry
from rlx.ir import slots as ir_slots

WEIGHTS = 24 << 20


def heavy_model() -> bytes:
    w = numpy_helper.from_array(np.ones((WEIGHTS // 4096, 1024), np.float32), "w")
    node = helper.make_node("Gather", ["w", "i"], ["y"])
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("i", TensorProto.INT64, [3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 1024])], [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                             ir_version=8).SerializeToString()


def test_embedded_weights_are_not_copied():
    data = heavy_model()
    rlx.load(data, device="cpu").close()  # imports are not what is counted
    tracemalloc.start()
    try:
        session = rlx.load(data, device="cpu")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < WEIGHTS // 16
    assert session.run({"i": np.array([0, 5, 2])})["y"].sum() == 3 * 1024


def test_signatures_are_read_when_an_operator_is_met(monkeypatch):
    met = registry.find("", "Hardmax", 13), registry.find("", "Celu", 12)
    for entry in met:
        entry.__dict__.pop("_parameters", None)
    node = helper.make_node("Hardmax", ["x"], ["y"])
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy"]
    model = helper.make_model(helper.make_graph([node], "g", info[:1], info[1:]),
                              opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    met[0].__dict__.pop("inputs", None)
    rlx.load(model, device="cpu").close()
    assert ["_parameters" in entry.__dict__ for entry in met] == [True, False]


def test_numbers_of_a_primitive_are_found_once(monkeypatch):
    builder = models.BUILDERS["bert-base"]
    model = builder.build(0, np.dtype(np.float32), **builder.NARROW)
    asked = []
    found = ir_slots.numbers_of
    monkeypatch.setattr(ir_slots, "numbers_of", lambda prim: asked.append(prim) or found(prim))
    rlx.load(model, device="cpu").close()
    assert 0 < len(asked) <= 2 * len(model.graph.node)
