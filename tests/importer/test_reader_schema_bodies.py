"""Bodies of the functions of the ONNX standard, evaluated by onnx.reference."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto as T, defs, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
import pytest

from rlx.errors import UnsupportedError
from rlx.importer.loaded import FunctionBody, LoadedGraph, LoadedNode, Weight
from rlx.importer.reader import read

node = helper.make_node
X = np.array([[-2.0, -0.5, 0.0], [0.25, 1.0, 3.0]], np.float32)


def to_attribute(name: str, value: Any) -> onnx.AttributeProto:
    items = value if isinstance(value, list) else [value]
    if items and isinstance(items[0], Weight):
        items = [numpy_helper.from_array(w.array, w.name) for w in items]
    elif items and isinstance(items[0], LoadedGraph):
        items = [to_graph(g) for g in items]
    elif not items:
        return onnx.AttributeProto(name=name, type=onnx.AttributeProto.INTS)
    return helper.make_attribute(name, items if isinstance(value, list) else items[0])


def to_node(n: LoadedNode) -> onnx.NodeProto:
    made = node(n.op_type, n.input, n.output, n.name, domain=n.domain)
    made.attribute.extend(to_attribute(k, v) for k, v in n.attributes.items())
    return made


def to_graph(g: LoadedGraph) -> onnx.GraphProto:
    return onnx.GraphProto(
        name=g.name or "g", node=map(to_node, g.nodes),
        input=[onnx.ValueInfoProto(name=n, type=t) for n, t in g.inputs.items()],
        output=[onnx.ValueInfoProto(name=n, type=g.output_types[n]) for n in g.outputs],
        initializer=[numpy_helper.from_array(w.array, n) for n, w in g.initializers.items()])


def expanded(model: onnx.ModelProto) -> tuple[onnx.ModelProto, FunctionBody] | None:
    """The model with its last node replaced by its body, or None if that is no function."""
    loaded = read(model)
    *before, last = loaded.graph.nodes
    types = {**loaded.graph.inputs, **loaded.graph.hints}
    types |= {n: helper.make_tensor_type_proto(w.dtype, w.dims)
              for n, w in loaded.graph.initializers.items()}
    body = loaded.functions.expand(
        last, loaded.opset_imports, [types.get(name) for name in last.input])
    if body is None:
        return None
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.node[:], made.opset_import[:]
    made.graph.node.extend(map(to_node, [*before, *body.nodes]))
    made.opset_import.extend(helper.make_opsetid(*i) for i in body.opset_imports.items())
    return made, body


def model_of(made: onnx.NodeProto, version: int, outputs=("y",), **inputs) -> onnx.ModelProto:
    def info(name, value):
        if isinstance(value, list):
            inner = helper.make_tensor_type_proto(T.FLOAT, None)
            return helper.make_value_info(name, helper.make_sequence_type_proto(inner))
        dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
        return helper.make_tensor_value_info(name, dtype, value.shape)

    tensor = helper.make_tensor_type_proto(T.FLOAT, None)
    sequence = any(isinstance(value, list) for value in inputs.values())
    result = helper.make_sequence_type_proto(tensor) if sequence else tensor
    graph = helper.make_graph([made], "g", [info(*i) for i in inputs.items()],
                              [helper.make_value_info(n, result) for n in outputs])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)


def run_body(made: onnx.NodeProto, version: int, outputs=("y",), **inputs) -> list:
    model, body = expanded(model_of(made, version, outputs, **inputs))
    assert made.op_type not in [n.op_type for n in body.nodes]
    return ReferenceEvaluator(model).run(None, inputs)


def test_attributes_given_and_default():
    for given, slope in (({"alpha": 0.5}, 0.5), ({}, 0.01)):
        y, = run_body(node("LeakyRelu", ["x"], ["y"], **given), 16, x=X)
        np.testing.assert_array_equal(y, np.where(X < 0, np.float32(slope) * X, X))


@pytest.mark.parametrize("version, body_version", [(17, 17), (18, 18), (23, 18)])
def test_a_body_that_depends_on_types_and_its_opset(version, body_version):
    rows = np.float32([[-2, 2, -2, 2], [4, 0, 4, 0]])  # means 0 and 2, deviations 2 and 2
    scale, bias = np.float32([1, 2, 3, 4]), np.float32([0, 1, 0, 1])
    made = node("LayerNormalization", ["x", "s", "b"], ["y", "", "d"], epsilon=0.0)
    model, body = expanded(model_of(made, version, ["y", "d"], x=rows, s=scale, b=bias))
    assert body.opset_imports[""] == body_version
    y, inverse = ReferenceEvaluator(model).run(None, {"x": rows, "s": scale, "b": bias})
    np.testing.assert_array_equal(y, [[-1, 3, -3, 5], [1, -1, 3, -3]])
    np.testing.assert_array_equal(inverse, [[0.5], [0.5]])


def test_absent_inputs():
    y, = run_body(node("Clip", ["x", "", "h"], ["y"]), 13, x=X, h=np.float32(0.5))
    np.testing.assert_array_equal(y, np.minimum(X, 0.5))


def test_graphs_of_the_node_keep_their_meaning():
    """The built body inlines the node's graph: its names, initializers and captures must not mix
    with the builder's own, whatever they are called."""
    other = np.float32(10)
    body = helper.make_graph(
        [node("Mul", ["seqlen", "input_sequence"], ["cond_int"]),
         node("Add", ["cond_int", "out_sequence"], ["r"])], "body",
        [helper.make_tensor_value_info("seqlen", T.FLOAT, None)],
        [helper.make_tensor_value_info("r", T.FLOAT, None)],
        [numpy_helper.from_array(np.float32(1), "out_sequence")])
    made = node("SequenceMap", ["s"], ["y"], body=body)
    y, = run_body(made, 17, s=[X, X[0]], input_sequence=other)
    for got, value in zip(y, [X, X[0]], strict=True):
        np.testing.assert_array_equal(got, value * 10 + 1)


def test_what_has_no_body():
    assert expanded(model_of(node("Add", ["x", "x"], ["y"]), 18, x=X)) is None
    custom = node("Gelu", ["x"], ["y"], domain="com.microsoft")
    assert expanded(model_of(custom, 18, x=X)) is None
    loaded = read(model_of(node("Clip", ["x"], ["y"]), 13, x=X))
    with pytest.raises(UnsupportedError, match="types"):
        loaded.functions.expand(loaded.graph.nodes[0], loaded.opset_imports, [None])


def leaves(value) -> list[np.ndarray]:
    """The tensors of outputs, those in sequences too."""
    return [x for v in value for x in leaves(v)] if isinstance(value, list) else [value]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # making the official data and evaluating it warns
def test_official_node_tests_hold_for_the_bodies():
    """Each official test of an operator that is a function, run by its body."""
    from onnx.backend.test.loader import load_model_tests

    # Random values; and what onnx.reference itself gets wrong in these bodies: Loop's scan of
    # scalars, Cast's round_mode.
    left_out = {"Bernoulli", "Range", "CastLike"}
    held: dict[str, int] = {}
    for case in load_model_tests(kind="node"):
        nodes = case.model.graph.node
        if case.name.endswith("_expanded") or len(nodes) != 1 or nodes[0].op_type in left_out:
            continue
        found = expanded(case.model)
        if found is None:
            continue
        onnx.checker.check_model(found[0])
        evaluator = ReferenceEvaluator(found[0])
        for inputs, outputs in case.data_sets:
            got = evaluator.run(None, dict(zip([i.name for i in case.model.graph.input], inputs)))
            for x, y in zip(leaves(got), leaves(outputs), strict=True):
                assert x.dtype == y.dtype and x.shape == y.shape, case.name
                np.testing.assert_allclose(x.astype(float), y.astype(float), case.rtol, case.atol,
                                           err_msg=case.name)
        held[nodes[0].op_type] = held.get(nodes[0].op_type, 0) + 1
    functions = {s.name for s in defs.get_all_schemas()
                 if s.has_function or s.has_context_dependent_function}
    assert functions - left_out - held.keys() == set() and sum(held.values()) > 300
