"""What the reader makes of graphs: order, scopes, captures, and malformed ones refused."""

import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper
import pytest

from rlx.errors import ModelError, UnsupportedError
from rlx.importer.loaded import LoadedGraph
from rlx.importer.reader import read
from rlx.importer.toposort import Cycle, topological_order

node = helper.make_node


def info(name, dtype=T.FLOAT, shape=()):
    return helper.make_tensor_value_info(name, dtype, shape)


def graph(nodes, inputs=("x",), outputs=("y",), inits=(), name="g"):
    weights = [numpy_helper.from_array(np.float32(i), n) for i, n in enumerate(inits)]
    return helper.make_graph(nodes, name, [info(n) for n in inputs], [info(n) for n in outputs],
                             weights)


def model(nodes, *args, ir=10, opsets=(("", 18),), **kw) -> onnx.ModelProto:
    imports = [helper.make_opsetid(*o) for o in opsets]
    made = helper.make_model(graph(nodes, *args, **kw), opset_imports=imports)
    made.ir_version = ir
    return made


def read_graph(*args, **kw) -> LoadedGraph:
    return read(model(*args, **kw)).graph


def order(loaded: LoadedGraph) -> list[str]:
    return [n.output[0] for n in loaded.nodes]


def test_fields_of_a_graph():
    made = model([node("Add", ["x", "w"], ["y"], name="sum"), node("Foo", ["y", "", "d"], ["", "z"],
                  domain="my.domain", a=1)], ["x", "d"], ["z", "x", "w", "z"], ["w", "d"])
    made.metadata_props.add(key="k", value="v")
    made.producer_name, made.domain, made.model_version, made.doc_string = "p", "d", 7, "doc"
    made.graph.doc_string = "graph doc"
    loaded = read(made)
    assert read(loaded) is loaded
    assert (loaded.producer, loaded.domain, loaded.version) == ("p", "d", 7)
    assert (loaded.description, loaded.graph_description) == ("doc", "graph doc")
    assert loaded.opset_imports == {"": 18, "my.domain": 1} and loaded.metadata == {"k": "v"}
    assert loaded.ir_version == 10 and loaded.path is None
    g = loaded.graph
    assert list(g.inputs) == ["x", "d"] and g.defaults == {"d"} and g.captures == {}
    assert g.outputs == ["z", "x", "w", "z"] and list(g.initializers) == ["w", "d"]
    first, second = g.nodes
    assert (first.op_type, first.domain, first.label) == ("Add", "", "sum")
    assert (second.domain, second.input, second.output) == ("my.domain", ["y", "", "d"], ["", "z"])
    assert second.attributes == {"a": 1} and second.label == "(output z)"


def test_before_ir_4_initializers_are_constants_although_listed_as_inputs():
    g = read_graph([node("Add", ["x", "w"], ["y"])], ["x", "w"], ["y"], ["w"], ir=3)
    assert list(g.inputs) == ["x"] and g.defaults == set() and list(g.initializers) == ["w"]


def test_nodes_are_ordered_and_otherwise_left_where_they_were():
    nodes = [node("Add", ["a", "b"], ["y"]), node("Neg", ["a"], ["b2"]),
             node("Mul", ["b2", "x"], ["b"]), node("Abs", ["x"], ["a"]), node("Abs", ["x"], ["u"])]
    assert order(read_graph(nodes)) == ["a", "b2", "b", "y", "u"]
    assert order(read_graph([nodes[i] for i in (4, 3, 1, 2, 0)])) == ["u", "a", "b2", "b", "y"]


def test_captures_count_when_ordering():
    then = graph([node("Neg", ["late"], ["t"])], [], ["t"], name="then")
    other = graph([node("Identity", ["x"], ["e"])], [], ["e"], name="else")
    nodes = [node("If", ["c"], ["y"], then_branch=then, else_branch=other),
             node("Abs", ["x"], ["late"]), node("Not", ["k"], ["c"])]
    g = read_graph(nodes, ["x", "k"])
    assert [n.op_type for n in g.nodes] == ["Abs", "Not", "If"]
    inner = dict(g.nodes[2].subgraphs())
    assert set(inner["then_branch"].captures) == {"late"}
    assert set(inner["else_branch"].captures) == {"x"}


def test_captures_through_two_levels_and_shadowing():
    deep = graph([node("Add", ["s", "w"], ["t"]), node("Add", ["t", "b"], ["u"])], [], ["u"],
                 ["b"], name="deep")
    mid = graph([node("Identity", ["c"], ["co"]), node("If", ["c"], ["s_out"], then_branch=deep,
                 else_branch=graph([node("Neg", ["i"], ["v"])], [], ["v"], name="e"))],
                ["i", "c", "s"], ["co", "s_out"], name="mid")
    g = read_graph([node("Loop", ["m", "", "s"], ["y"], body=mid)], ["m", "s", "b"], ["y"], ["w"])
    (_, body), = g.nodes[0].subgraphs()
    assert set(body.captures) == {"w"}
    assert set(dict(body.nodes[1].subgraphs())["then_branch"].captures) == {"s", "w"}
    assert g.captures == {}


def test_a_subgraph_may_give_an_outer_value():
    branch = graph([], [], ["x"], name="b")
    g = read_graph([node("If", ["x"], ["y"], then_branch=branch, else_branch=branch)])
    assert set(dict(g.nodes[0].subgraphs())["then_branch"].captures) == {"x"}


CYCLE = [node("Add", ["x", "c"], ["a"], name="first"), node("Neg", ["a"], ["b"], name="second"),
         node("Abs", ["b"], ["c"], name="third"), node("Relu", ["c"], ["y"])]


def test_cycles_name_their_nodes():
    with pytest.raises(ModelError, match="cycle.*'first'.*'second'.*'third'.*'first'"):
        read_graph(CYCLE)
    body = graph([node("Neg", ["y"], ["t"])], [], ["t"], name="b")
    with pytest.raises(ModelError, match="cycle.*'outer'"):
        read_graph([node("If", ["x"], ["y"], name="outer", then_branch=body, else_branch=body)])
    with pytest.raises(ModelError, match="cycle"):
        read_graph([node("Neg", ["y"], ["y"])])
    inner = graph([node("Neg", ["p"], ["q"]), node("Neg", ["q"], ["p"])], [], ["q"], name="b")
    with pytest.raises(ModelError, match="cycle"):
        read_graph([node("If", ["x"], ["y"], then_branch=inner, else_branch=inner)])


def test_a_long_chain_in_reverse_and_a_long_cycle_are_no_burden():
    chain = [node("Neg", [f"v{i}"], [f"v{i + 1}"]) for i in range(3000)]
    g = read_graph(chain[::-1], ["v0"], ["v3000"])
    assert order(g) == [f"v{i + 1}" for i in range(3000)]
    with pytest.raises(ModelError, match="cycle"):
        read_graph(chain[::-1] + [node("Neg", ["v3000"], ["v0"])], [], ["v3000"])


def test_topological_order_keeps_what_it_can():
    assert topological_order([[], ["a"], []], {"a": 2}) == [0, 2, 1]
    assert topological_order([], {}) == []
    with pytest.raises(Cycle) as caught:
        topological_order([["c"], ["a"], ["b"], ["z"]], {"a": 0, "b": 1, "c": 2})
    assert caught.value.positions == [0, 1, 2]


BRANCH = graph([node("Neg", ["nope"], ["t"], name="inner")], [], ["t"], name="b")
MALFORMED = {
    "undefined input": ([node("Neg", ["xx"], ["y"], name="the_node")], {}, "the_node.*'xx'"),
    "undefined output": ([node("Neg", ["x"], ["z"])], {}, "outputs.*'y'"),
    "undefined in a subgraph": (
        [node("If", ["x"], ["y"], name="outer", then_branch=BRANCH, else_branch=BRANCH)], {},
        "'inner', in .*_branch of If node 'outer'.*'nope'"),
    "output defined twice": (
        [node("Neg", ["x"], ["y"], name="one"), node("Abs", ["x"], ["y"], name="two")], {},
        "'y' is defined twice.*'one'.*'two'"),
    "twice by one node": ([node("Split", ["x"], ["y", "y"])], {}, "twice"),
    "output is an input": ([node("Neg", ["x"], ["x"])], {"outputs": ["x"]}, "'x' is defined twice"),
    "output is a weight": (
        [node("Neg", ["x"], ["w"])], {"outputs": ["w"], "inits": ["w"]}, "'w' is defined twice"),
    "input twice": ([node("Neg", ["x"], ["y"])], {"inputs": ["x", "x"]}, "input 'x'"),
    "unnamed input": ([node("Neg", ["x"], ["y"])], {"inputs": ["x", ""]}, "input ''"),
    "weight twice": ([node("Neg", ["x"], ["y"])], {"inits": ["w", "w"]}, "initializer 'w'"),
    "unnamed weight": ([node("Neg", ["x"], ["y"])], {"inits": [""]}, "initializer ''"),
    "unnamed output": ([node("Neg", ["x"], ["y"])], {"outputs": [""]}, "output"),
    "no op_type": ([node("", ["x"], ["y"])], {}, "op_type"),
    "outside ref": ([onnx.NodeProto(op_type="Foo", input=["x"], output=["y"], attribute=[
        onnx.AttributeProto(name="a", ref_attr_name="b", type=1)])], {}, "function attribute"),
    "attribute twice": ([onnx.NodeProto(op_type="Foo", input=["x"], output=["y"], attribute=[
        onnx.AttributeProto(name="a", i=1, type=2)] * 2)], {}, "twice"),
    "unknown attribute type": ([onnx.NodeProto(op_type="Foo", output=["y"], attribute=[
        onnx.AttributeProto(name="a")])], {}, "'a' has the unknown type"),
}


@pytest.mark.parametrize("nodes, rest, message", MALFORMED.values(), ids=MALFORMED)
def test_malformed(nodes, rest, message):
    with pytest.raises(ModelError, match=message):
        read_graph(nodes, **rest)


def test_a_near_miss_is_suggested():
    with pytest.raises(ModelError, match="did the exporter mean 'hidden_state'"):
        read_graph([node("Neg", ["x"], ["hidden_state"]), node("Abs", ["hidden_stat"], ["y"])])


def test_input_types():
    made = model([node("Neg", ["x"], ["y"])])
    made.graph.input[0].type.tensor_type.elem_type = 0
    with pytest.raises(ModelError, match="'x'"):
        read(made)
    made.graph.input[0].type.tensor_type.elem_type = T.FLOAT6E3M2
    with pytest.raises(UnsupportedError, match="'x'"):
        read(made)
    made.graph.input[0].ClearField("type")
    with pytest.raises(ModelError, match="'x'"):
        read(made)


def test_names_that_are_not_text():
    data = model([node("Neg", ["x"], ["y"])]).SerializeToString()
    names = b"\x0a\x01x\x12\x01y"
    assert data.count(names) == 1
    for bad in (b"\x0a\x01\xff\x12\x01y", b"\x0a\x01x\x12\x01\xff"):
        with pytest.raises(ModelError, match="UTF-8"):
            read(data.replace(names, bad))


def test_attribute_values():
    tensor = numpy_helper.from_array(np.array([1, 2], np.int64), "t")
    sparse = helper.make_sparse_tensor(numpy_helper.from_array(np.float32([7]), "s"),
                                       numpy_helper.from_array(np.int64([1])), [3])
    kinds = dict(f=1.5, i=3, s="ü", t=tensor, g=graph([], [], ["x"]), sp=sparse,
                 tp=helper.make_tensor_type_proto(T.FLOAT, [1]), fs=[1.5, 2.0], is_=[1, 2],
                 ss=["a", "b"], ts=[tensor, tensor], gs=[graph([], [], ["x"])])
    big = dict(many=list(range(5000)), more=[0.5] * 5000)
    got = read_graph([node("Foo", ["x"], ["y"], **kinds, **big)]).nodes[0].attributes
    for key in ("f", "i", "s", "fs", "is_", "ss"):
        assert got[key] == kinds[key] and type(got[key]) is type(kinds[key])
    assert got["t"].array.tolist() == [1, 2] and [w.name for w in got["ts"]] == ["t", "t"]
    assert got["sp"].array.tolist() == [0, 7, 0]
    assert isinstance(got["g"], LoadedGraph) and isinstance(got["gs"][0], LoadedGraph)
    assert got["tp"].tensor_type.elem_type == T.FLOAT
    assert got["many"].dtype == np.int64 and got["many"].tolist() == big["many"]
    assert got["more"].dtype == np.float32 and got["more"].tolist() == big["more"]


def test_attributes_of_the_oldest_models_state_no_type():
    attributes = [onnx.AttributeProto(name="a", i=0), onnx.AttributeProto(name="b", ints=[1, 2]),
                  onnx.AttributeProto(name="c", s=b"x"), onnx.AttributeProto(name="d", f=0.5)]
    old = onnx.NodeProto(op_type="Foo", input=["x"], output=["y"], attribute=attributes)
    got = read_graph([old], ir=1).nodes[0].attributes
    assert got == {"a": 0, "b": [1, 2], "c": "x", "d": 0.5}


def test_deeply_nested_subgraphs_are_refused():
    holder = onnx.ModelProto(ir_version=8)
    holder.opset_import.add(version=18)
    g = holder.graph
    for _ in range(70):
        g.output.add().CopyFrom(info("y"))
        inner_node = g.node.add(op_type="If", output=["y"])
        g = inner_node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH).g
    with pytest.raises(UnsupportedError, match="nested"):
        read(holder)
