"""Small models for the tests of the API, written with onnx.helper."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F = TensorProto.FLOAT
I = TensorProto.INT64


def value(name: str, elem_type: int = F, shape=None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, elem_type, shape)


def model(nodes, inputs, outputs, initializers=None, *, opset: int = 18,
          functions=()) -> onnx.ModelProto:
    """A model; `initializers` are arrays by name, listed as inputs only when named there too."""
    tensors = [numpy_helper.from_array(np.asarray(x), name)
               for name, x in (initializers or {}).items()]
    graph = helper.make_graph(nodes, "toy", inputs, outputs, tensors)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9,
                             functions=list(functions))
    return made


def node(op_type: str, inputs: str, outputs: str, **attributes) -> onnx.NodeProto:
    """A node; names are given in one string, "_" stands for an absent one."""
    def names(text):
        return ["" if n == "_" else n for n in text.split()]
    return helper.make_node(op_type, names(inputs), names(outputs), name=f"{op_type}_{outputs[:8]}",
                            **attributes)


def add(shape=("n", 4)) -> onnx.ModelProto:
    """y = a + b, both of one shape."""
    return model([node("Add", "a b", "y")], [value("a", F, shape), value("b", F, shape)],
                 [value("y", F, shape)])


def arange(*shape: int, dtype=np.float32) -> np.ndarray:
    return np.arange(np.prod(shape, dtype=int), dtype=dtype).reshape(shape)
