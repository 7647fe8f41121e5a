"""Models of Loops, and the devices that run them with values that can be told."""

import numpy as np
from onnx import TensorProto as T, helper as h, numpy_helper
import pytest

import rlx
from tests.emu.case import emulated

MODES = ("graph", "stream", "multistream", "eager")
DEVICES = pytest.mark.parametrize("device, mode", [
    ("cpu", "graph"), *(("emu:card", mode) for mode in MODES), ("arrays", "graph")])


class Arrays:
    """A session whose floats come from the card's memory and whose results lie there."""

    def __init__(self, model):
        self.session = rlx.load(model, device="emu:card")
        graph = h.make_graph([h.make_node("Neg", ["x"], ["y"])], "g",
                             [value("x", T.FLOAT, *"ab")], [value("y", T.FLOAT, *"ab")])
        self.negate = rlx.load(h.make_model(graph, opset_imports=[h.make_opsetid("", 20)],
                                            ir_version=9), device="emu:card")

    def on_card(self, x):
        if x.dtype != np.float32 or x.ndim != 2:
            return x
        return self.negate.run({"x": -x}, outputs="device")["y"]

    def run(self, feeds, **options):
        if options or any(x.dtype == object for x in feeds.values()):
            return self.session.run(feeds, **options)
        given = {name: self.on_card(x) for name, x in feeds.items()}
        return {name: y.numpy() for name, y in self.session.run(given, outputs="device").items()}


def value(name, type, *dims):
    return h.make_tensor_value_info(name, type, dims)


def nodes(*rows):
    return [h.make_node(op, ins.split(), outs.split(), **dict(*more))
            for op, ins, outs, *more in rows]


def session(device, mode, all_nodes, inputs, outputs, constants=()):
    held = [numpy_helper.from_array(np.asarray(a), name) for name, a in dict(constants).items()]
    graph = h.make_graph(all_nodes, "g", inputs, outputs, held)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9)
    if device != "cpu":
        emulated("emu:card")
    if device == "arrays":
        return Arrays(model)
    return rlx.load(model, device=device, **{"mode": mode} if device != "cpu" else {})


def body(rows, inputs, outputs, given=("i", "go")):
    first = [value(given[0], T.INT64), value(given[1], T.BOOL)]
    return h.make_graph(rows, "body", [*first, *inputs], outputs)


X = np.array([[1, -2, 3], [0.5, 4, -1]], np.float32)
