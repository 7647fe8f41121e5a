"""Function bodies: names, attributes, optional inputs and outputs, nesting, recursion."""

import numpy as np
import onnx
from onnx import AttributeProto as A, TensorProto as T, helper, numpy_helper
import pytest

from rlx.errors import ModelError, UnsupportedError
from rlx.importer.loaded import FunctionBody, LoadedModel, LoadedNode, Weight
from rlx.importer.reader import read

node, opset = helper.make_node, helper.make_opsetid


def ref(name: str, to: str, kind: int) -> onnx.AttributeProto:
    return onnx.AttributeProto(name=name, ref_attr_name=to, type=kind)


def with_attribute(made: onnx.NodeProto, attribute: onnx.AttributeProto) -> onnx.NodeProto:
    made.attribute.append(attribute)
    return made


def function(name, inputs, outputs, nodes, domain="loc", imports=(("", 18), ("loc", 1)), **rest):
    return helper.make_function(domain, name, inputs, outputs, nodes,
                                [opset(*i) for i in imports], **rest)


def load(nodes, functions=(), inputs=("x",), outputs=("y",), version=18) -> LoadedModel:
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(n, T.FLOAT, [2]) for n in inputs],
        [helper.make_tensor_value_info(n, T.FLOAT, None) for n in outputs])
    return read(helper.make_model(graph, functions=list(functions), ir_version=10,
                                  opset_imports=[opset("", version), opset("loc", 1)]))


def expand(model: LoadedModel, at: int = 0, types=()) -> FunctionBody:
    return model.functions.expand(model.graph.nodes[at], model.opset_imports, types)


def call(name, inputs, outputs, **rest) -> onnx.NodeProto:
    return node(name, inputs, outputs, domain="loc", **rest)


def flat(model: LoadedModel) -> list[LoadedNode]:
    """All nodes of the main graph with local functions expanded through and through."""

    def walk(nodes, imports):
        for n in nodes:
            if model.functions.is_local(n):
                body = model.functions.expand(n, imports)
                yield from walk(body.nodes, body.opset_imports)
            else:
                yield n

    return list(walk(model.graph.nodes, model.opset_imports))


def run(nodes, **values: float) -> dict[str, float]:
    """Evaluates scalar Add, Mul, Neg and Identity; each name may be defined only once."""
    ops = {"Add": lambda a, b: a + b, "Mul": lambda a, b: a * b, "Neg": lambda a: -a,
           "Identity": lambda a: a}
    for n in nodes:
        if n.op_type == "Constant":
            result = n.attributes["value_float"]
        else:
            result = ops[n.op_type](*(values[name] for name in n.input))
        for name in n.output:
            assert name not in values, f"{name} is defined twice"
            values[name] = result
    return values


SQUARE_PLUS = function("F", ["a", "b"], ["r"], [
    node("Mul", ["a", "a"], ["t"]), node("Add", ["t", "b"], ["r"])])


def test_names_of_the_call_are_used_and_inner_ones_are_new():
    # The caller's names are the function's formal and inner ones, crosswise.
    model = load([call("F", ["b", "t"], ["a"]), call("F", ["a", "b"], ["r"])], [SQUARE_PLUS],
                 ["b", "t"], ["a", "r"])
    assert model.functions.is_local(model.graph.nodes[0])
    got = run(flat(model), b=3.0, t=5.0)
    assert (got["a"], got["r"]) == (14.0, 199.0)
    first, second = (n for n in flat(model) if n.op_type == "Mul")
    assert first.output != second.output


def test_expanding_again_gives_the_same_names():
    """Facts of a specialised import name inner values."""
    model = load([call("F", ["x", "x"], ["y"])], [SQUARE_PLUS])
    once, again = ([(n.label, n.input, n.output) for n in expand(model).nodes] for _ in range(2))
    assert once == again


def test_nested_functions_that_give_their_output_through():
    inner = function("G", ["a"], ["b"], [node("Neg", ["a"], ["t"]), node("Neg", ["t"], ["b"])])
    outer = function("F", ["x"], ["y"], [
        call("G", ["x"], ["t"]), call("G", ["t"], ["t/t"]), call("G", ["t/t"], ["y"])])
    model = load([call("F", ["x"], ["y"]), call("F", ["y"], ["y/t"]), call("G", ["x"], ["y/G"])],
                 [inner, outer], outputs=["y/t", "y/G"])
    nodes = flat(model)
    assert len(nodes) == 14
    assert run(nodes, x=2.0)["y/t"] == 2.0
    assert len({n.path for n in nodes}) == 14


def test_absent_inputs_and_outputs():
    f = function("F", ["a", "b", "c"], ["r", "s"], [
        node("Foo", ["a", "b", "c"], ["r", "unused"]), node("Neg", ["r"], ["s"])])
    model = load([call("F", ["x", "", "x"], ["", "y"]), call("F", ["x"], ["z"])], [f],
                 outputs=["y", "z"])
    first, second = expand(model, 0).nodes, expand(model, 1).nodes
    assert first[0].input == ["x", "", "x"] and second[0].input == ["x", "", ""]
    assert first[1].output == ["y"] and second[0].output[0] == "z"
    made = [name for n in (*first, *second) for name in n.output]
    assert all(made) and len(set(made)) == 6


def test_outputs_that_are_inputs_or_repeated():
    f = function("F", ["a"], ["r", "a", "r"], [node("Neg", ["a"], ["r"])])
    model = load([call("F", ["x"], ["p", "q", "s"])], [f], outputs=["p", "q", "s"])
    got = run(expand(model).nodes, x=4.0)
    assert (got["p"], got["q"], got["s"]) == (-4.0, 4.0, -4.0)


def test_attributes_given_defaulted_and_left_out():
    body = node("LeakyRelu", ["x"], ["y"])
    f = function("F", ["x"], ["y"], [
        with_attribute(with_attribute(body, ref("alpha", "slope", A.FLOAT)),
                       ref("beta", "missing", A.FLOAT))],
        attributes=["missing"], attribute_protos=[helper.make_attribute("slope", 0.5)])
    model = load([call("F", ["x"], ["p"]), call("F", ["x"], ["q"], slope=0.25, missing=2.0)], [f],
                 outputs=["p", "q"])
    assert expand(model, 0).nodes[0].attributes == {"alpha": 0.5}
    assert expand(model, 1).nodes[0].attributes == {"alpha": 0.25, "beta": 2.0}
    with pytest.raises(ModelError, match="unknown attributes.*'slant'"):
        expand(load([call("F", ["x"], ["y"], slant=1.0)], [f]))


def test_a_constant_may_be_an_attribute_of_the_call():
    constant = with_attribute(node("Constant", [], ["c"]), ref("value", "v", A.TENSOR))
    f = function("F", ["x"], ["y"], [constant, node("Mul", ["x", "c"], ["y"])], attributes=["v"])
    big = np.arange(5000, dtype=np.float32)
    model = load([call("F", ["x"], ["y"], v=numpy_helper.from_array(big, "w"))], [f])
    value = expand(model).nodes[0].attributes["value"]
    assert isinstance(value, Weight) and value.array.tolist() == big.tolist()


def test_references_and_names_inside_subgraphs():
    scale = with_attribute(node("Constant", [], ["c"]), ref("value_float", "k", A.FLOAT))
    branch = helper.make_graph(
        [scale, node("Mul", ["a", "c"], ["t"]), node("Add", ["t", "w"], ["u"])], "b", [],
        [helper.make_tensor_value_info("u", T.FLOAT, None)],
        [numpy_helper.from_array(np.float32(1), "w")])
    f = function("F", ["a", "c"], ["r"], [
        node("Neg", ["a"], ["t"]),
        node("If", ["c"], ["r"], then_branch=branch, else_branch=branch)], attributes=["k"])
    model = load([call("F", ["x", "w"], ["y"], k=2.5)], [f], ["x", "w"])
    (_, then), _ = expand(model).nodes[1].subgraphs()
    constant, mul, add = then.nodes
    assert constant.attributes == {"value_float": 2.5}
    # The branch's own c, t and w hide those of the function and the model.
    assert mul.input == ["x", constant.output[0]] and set(then.captures) == {"x"}
    assert add.input == [mul.output[0], *then.initializers] and then.outputs == add.output
    outer = {"x", "w", "y", *expand(model).nodes[0].output}
    assert outer.isdisjoint({*constant.output, *mul.output, *then.initializers})


def test_unsorted_bodies_are_sorted():
    f = function("F", ["a"], ["r"], [node("Neg", ["t"], ["r"]), node("Neg", ["a"], ["t"])])
    assert run(expand(load([call("F", ["x"], ["y"])], [f])).nodes, x=3.0)["y"] == 3.0


def test_bodies_have_operator_sets_of_their_own():
    f = function("F", ["a"], ["r"], [node("Neg", ["a"], ["r"])], imports=[("", 13)])
    model = load([call("F", ["x"], ["y"])], [f])
    assert expand(model).opset_imports == {"": 13, "loc": 1} and model.opset_imports[""] == 18


def test_overloads_are_told_apart():
    one, two = (function("F", ["a"], ["r"], [node(op, ["a"], ["r"])], overload=overload)
                for op, overload in (("Neg", "one"), ("Abs", "two")))
    model = load([call("F", ["x"], ["y"], overload="two")], [one, two])
    assert expand(model).nodes[0].op_type == "Abs"
    assert not model.functions.is_local(LoadedNode("F", "loc", "", [], [], {}))


def test_local_functions_may_replace_standard_operators():
    f = function("Relu", ["a"], ["r"], [node("Neg", ["a"], ["r"])], domain="")
    model = load([node("Relu", ["x"], ["y"])], [f])
    assert model.functions.is_local(model.graph.nodes[0])
    assert expand(model).nodes[0].op_type == "Neg"


def test_malformed_functions():
    neg = node("Neg", ["a"], ["r"])
    for f, message in (
        (function("F", ["a"], ["r"], [node("Neg", ["b"], ["r"])]), "'b', which nothing"),
        (function("F", ["a"], ["r"], [node("Neg", ["a"], ["q"])]), "output 'r' is defined nowhere"),
        (function("F", [], ["r"], [node("Foo", [], ["r"])]), "more inputs"),
        (function("F", ["a"], ["r"], [neg, neg]), "twice"),
        (function("F", ["a"], ["r"], [node("Add", ["a", "q"], ["r"]), node("Neg", ["r"], ["q"])]),
         "cycle"),
        (function("F", ["a"], ["r"], [neg], imports=[("", 999)]), "999"),
    ):
        with pytest.raises((ModelError, UnsupportedError), match=message):
            expand(load([call("F", ["x"], ["y"])], [f]))
    with pytest.raises(ModelError, match="two functions loc.F"):
        load([call("F", ["x"], ["y"])], [function("F", ["a"], ["r"], [neg])] * 2)


def test_recursion_is_refused():
    f = function("F", ["a"], ["r"], [call("G", ["a"], ["r"])])
    branch = helper.make_graph([call("F", ["a"], ["r"])], "b", [],
                               [helper.make_tensor_value_info("r", T.FLOAT, None)])
    g = function("G", ["a"], ["r"], [node("If", ["a"], ["r"], then_branch=branch)])
    with pytest.raises(ModelError, match="calls itself: loc.F -> loc.G -> loc.F"):
        load([call("F", ["x"], ["y"])], [f, g])


def test_functions_that_multiply_without_bound_are_refused():
    levels = [function(f"F{i}", ["a"], ["r"], [
        call(f"F{i + 1}", ["a"], ["t"]), call(f"F{i + 1}", ["t"], ["r"])]) for i in range(60)]
    last = function("F60", ["a"], ["r"], [node("Neg", ["a"], ["r"])])
    with pytest.raises(ModelError, match="nodes"):
        load([call("F0", ["x"], ["y"])], [*levels, last])
    deep = [function(f"F{i}", ["a"], ["r"], [call(f"F{i + 1}", ["a"], ["r"])]) for i in range(999)]
    with pytest.raises(UnsupportedError, match="deep"):
        load([call("F0", ["x"], ["y"])], deep)
