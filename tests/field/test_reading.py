"""Public reports about models that tools read wrongly, each with what the reader must do.

The values that these models compute are tested where they are run; here it is how they are read.
"""

import numpy as np
import onnx
from onnx import AttributeProto as A, TensorProto as T, helper, numpy_helper
import pytest

from rlx.errors import ModelError, UnsupportedError
from rlx.importer.reader import read

node = helper.make_node


def info(name: str, dtype: int = T.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, ["n"])


def weight(name: str, values) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(values), name)


def model(nodes, inits=(), inputs=("x",), outputs=("y",), functions=()) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", [info(n) for n in inputs], [info(n) for n in outputs],
                              list(inits))
    imports = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=10)


def refuse(given, *words: str) -> None:
    """The model is malformed, and the error says what and where."""
    with pytest.raises(ModelError) as caught:
        read(given)
    assert not isinstance(caught.value, UnsupportedError)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def external(folder, location: str, **sizes: int) -> str:
    tensor = T(name="bias", data_type=T.FLOAT, dims=[8], data_location=T.EXTERNAL)
    for key, value in {"location": location, **sizes}.items():
        tensor.external_data.add(key=key, value=str(value))
    path = folder / "m.onnx"
    path.write_bytes(model([node("Add", ["x", "bias"], ["y"])], [tensor]).SerializeToString())
    return str(path)


def test_onnx_7686_absolute_external_location(tmp_path):
    data = tmp_path / "elsewhere" / "b"
    data.parent.mkdir()
    data.write_bytes(bytes(32))
    refuse(external(tmp_path, str(data), length=32), "bias", "absolute")


def test_onnxruntime_27547_external_file_too_short(tmp_path):
    (tmp_path / "b").write_bytes(bytes(28))
    refuse(external(tmp_path, "b", offset=0, length=32), "bias", "32 bytes", "28 bytes")


def test_onnxruntime_27547_dims_that_overflow():
    tensor = T(name="bias", data_type=T.FLOAT, dims=[2**33, 2**31], raw_data=b"")
    refuse(model([node("Size", ["bias"], ["y"])], [tensor]), "bias", "overflow")


def test_onnx_mlir_3608_more_data_than_the_shape_holds():
    tensor = T(name="bias", data_type=T.INT64, dims=[2], raw_data=bytes(4096 * 8))
    refuse(model([node("Add", ["x", "bias"], ["y"])], [tensor]), "bias", "too much")


def test_onnxruntime_4585_message_cut_within_the_weights():
    data = model([node("MatMul", ["x", "w"], ["y"])], [weight("w", np.ones((99, 99)))])
    data = data.SerializeToString()
    refuse(data[: len(data) // 2], "not a whole ONNX file")


def test_tensorrt_4087_cycle():
    refuse(model([node("Add", ["x", "d"], ["b"], "n1"), node("Exp", ["b"], ["c"], "n2"),
                  node("Exp", ["c"], ["d"], "n3"), node("Neg", ["d"], ["y"], "n4")]),
           "cycle", "n1", "n2", "n3")


def test_onnx_4007_two_nodes_define_one_name():
    refuse(model([node("Neg", ["x"], ["y"], "n1"), node("Exp", ["x"], ["y"], "n2")]),
           "'y'", "n1", "n2")


def test_onnxruntime_genai_707_unsorted_nodes():
    graph = read(model([node("Mul", ["p", "q"], ["y"]), node("Exp", ["p"], ["q"]),
                        node("Neg", ["x"], ["p"])])).graph
    assert [n.output for n in graph.nodes] == [["p"], ["q"], ["y"]]


def test_onnxruntime_1324_an_initializer_that_is_an_input_is_only_a_default():
    graph = read(model([node("Add", ["x", "w"], ["y"])], [weight("w", [1.0])], ["x", "w"])).graph
    assert graph.defaults == {"w"} and list(graph.inputs) == ["x", "w"]


def test_onnxruntime_7260_an_initializer_that_is_only_an_output_is_kept():
    graph = read(model([node("Neg", ["x"], ["y"])], [weight("w", [5])], outputs=["y", "w"])).graph
    assert graph.outputs == ["y", "w"] and graph.initializers["w"].array.tolist() == [5]


def test_onnxsim_664_four_bit_weights():
    values = [-8, 7, -1, 3, 5]
    graph = read(model([node("Foo", ["w"], ["y"])], [helper.make_tensor("w", T.INT4, [5], values)]))
    assert graph.graph.initializers["w"].array.astype(int).tolist() == values


def test_onnx_2082_a_loop_body_may_hide_an_outer_name():
    body = helper.make_graph(
        [node("Add", ["x", "two"], ["next"]), node("Identity", ["go"], ["still"])], "body",
        [info("i", T.INT64), info("go", T.BOOL), info("x")], [info("still", T.BOOL), info("next")])
    loop = node("Loop", ["m", "", "x"], ["y"], body=body)
    graph = read(model([loop], [weight("m", 3), weight("two", [2.0])])).graph
    (_, body), = graph.nodes[0].subgraphs()
    assert set(body.captures) == {"two"} and "x" in body.inputs


def test_burn_4119_captures_from_two_levels_up():
    then = helper.make_graph([node("Add", ["s", "h"], ["t"]), node("Mul", ["t", "k"], ["u"])],
                             "then", [], [info("u")])
    other = helper.make_graph([node("Sub", ["s", "x"], ["v"])], "else", [], [info("v")])
    body = helper.make_graph([node("If", ["go"], ["r"], then_branch=then, else_branch=other),
                              node("Identity", ["go"], ["still"])], "body",
                             [info("i", T.INT64), info("go", T.BOOL), info("s")],
                             [info("still", T.BOOL), info("r")])
    graph = read(model([node("Loop", ["m", "", "x"], ["y"], body=body), node("Neg", ["x"], ["h"])],
                       [weight("m", 5), weight("k", [2.0])])).graph
    assert [n.op_type for n in graph.nodes] == ["Neg", "Loop"]
    assert set(dict(graph.nodes[1].subgraphs())["body"].captures) == {"h", "k", "x"}


def function(name: str, nodes, **rest) -> onnx.FunctionProto:
    return helper.make_function("loc", name, ["x"], ["y"], nodes, [helper.make_opsetid("", 18)],
                                **rest)


def test_onnxruntime_22687_a_constant_that_refers_to_a_function_attribute():
    constant = node("Constant", [], ["c"])
    constant.attribute.add(name="value", ref_attr_name="v", type=A.TENSOR)
    f = function("F", [constant, node("Mul", ["x", "c"], ["y"])], attributes=["v"])
    loaded = read(model([node("F", ["x"], ["y"], domain="loc", v=weight("", [3.0, 4.0]))],
                        functions=[f]))
    body = loaded.functions.expand(loaded.graph.nodes[0], loaded.opset_imports)
    assert body.nodes[0].attributes["value"].array.tolist() == [3.0, 4.0]


def test_onnx_4911_defaults_of_function_attributes():
    leaky = node("LeakyRelu", ["x"], ["y"])
    leaky.attribute.add(name="alpha", ref_attr_name="slope", type=A.FLOAT)
    f = function("F", [leaky], attribute_protos=[helper.make_attribute("slope", 0.5)])
    loaded = read(model([node("F", ["x"], ["t"], domain="loc"),
                         node("F", ["t"], ["y"], domain="loc", slope=0.25)], functions=[f]))
    slopes = [loaded.functions.expand(n, loaded.opset_imports).nodes[0].attributes["alpha"]
              for n in loaded.graph.nodes]
    assert slopes == [0.5, 0.25]
