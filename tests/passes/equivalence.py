"""Runs a model with and without passes through the references, and counts what is left."""

from collections import Counter

import numpy as np
import onnx
from onnx import TensorProto, helper

from rlx.importer.importer import import_model
from rlx.importer.reader import read
from rlx.ir.evaluate import evaluate_graph
from rlx.ir.graph import Graph, If, Loop, Scan
from rlx.ir.verify import verify
from rlx.passes import PIPELINE, run_pipeline
from tests.tolerance import tolerance


def graph_of(model: onnx.ModelProto, passes: list[str]) -> Graph:
    """The model after only the named passes, and pruned; verified."""
    kept = {*passes, "prune"}
    graph = run_pipeline(import_model(read(model)), [p for p in PIPELINE if p not in kept])
    verify(graph)
    return graph


def check(model: onnx.ModelProto, inputs: dict, passes: list[str],
          exactly: tuple[str, str] = ("exact order", "float64")) -> Graph:
    """The graph with the passes, after it gave in float64 what it gives without them."""
    expected = evaluate_graph(graph_of(model, []), inputs, double=True)
    graph = graph_of(model, passes)
    found = evaluate_graph(graph, inputs, double=True)
    assert list(found) == list(expected)
    for name, y in expected.items():
        assert found[name].dtype == y.dtype
        np.testing.assert_allclose(found[name], y, err_msg=name, **tolerance(*exactly))
    return graph


def counts(graph: Graph) -> Counter:
    """How many nodes of each primitive there are, children included."""
    found = Counter(type(node.prim).__name__ for node in graph.nodes)
    for node in graph.nodes:
        if isinstance(node.prim, If):
            found += counts(node.prim.then_graph) + counts(node.prim.else_graph)
        elif isinstance(node.prim, (Loop, Scan)):
            found += counts(node.prim.body)
    return found


def model_of(nodes, inputs: dict, outputs: list[str], constants: dict | None = None,
             opset: int = 17, dtype=np.float32) -> onnx.ModelProto:
    """A model of ONNX nodes; inputs map names to shapes, constants to arrays."""
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(n, element, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in outputs],
        [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in (constants or {}).items()])
    for info in graph.output:
        info.ClearField("type")
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def node(op: str, inputs: str, output: str, **attributes) -> onnx.NodeProto:
    """A node; `inputs` are names with blanks between, "-" where one is not given."""
    names = ["" if n == "-" else n for n in inputs.split()]
    return helper.make_node(op, names, output.split(), **attributes)
