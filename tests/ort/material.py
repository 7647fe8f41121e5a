"""Models that the tests of rlx.ort load, in this library and in onnxruntime."""

from onnx import TensorProto as T, helper

info = helper.make_tensor_value_info
node = helper.make_node


def model(nodes, inputs, outputs, init=(), opset=17, domains=(), **fields) -> bytes:
    """A serialised model."""
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(init), doc_string="graph doc")
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8,
                             **fields).SerializeToString()


def sums() -> bytes:
    """y = x + w with w overridable, z = y * y; told about itself in every field."""
    made = helper.make_model(helper.make_graph(
        [node("Add", ["x", "w"], ["y"], name="add"), node("Mul", ["y", "y"], ["z"], name="mul")],
        "g", [info("x", T.FLOAT, ["batch", 3]), info("w", T.FLOAT, [3])],
        [info("y", T.FLOAT, ["batch", 3]), info("z", T.FLOAT, [None, 3])],
        [helper.make_tensor("w", T.FLOAT, [3], [1, 2, 3])], doc_string="graph doc"),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="me",
        producer_version="1", domain="dom", model_version=7, doc_string="doc")
    helper.set_model_props(made, {"a": "b"})
    return made.SerializeToString()


def unary(op, inputs=1, opset=17, domain="", **attributes) -> bytes:
    """One node of any operator, with the one input given as often as asked."""
    return model([node(op, ["x"] * inputs, ["y"], name="n", domain=domain, **attributes)],
                 [info("x", T.FLOAT, ["batch", 3])], [info("y", T.FLOAT, None)], opset=opset,
                 domains=[domain] if domain else [])


def optional_type(element=T.FLOAT, shape=(2,)):
    """A TypeProto."""
    return helper.make_optional_type_proto(helper.make_tensor_type_proto(element, shape))


IDENTITY = [node("Identity", ["x"], ["y"])]
RELU = [node("Relu", ["x"], ["y"])]
X = [info("x", T.FLOAT, ["b", 4, 5])]

# name -> a model whose inputs and outputs are described alike by both libraries.
DESCRIBED = {
    "named dims": sums(),
    "no shape": model(RELU, [info("x", T.FLOAT, None)], [info("y", T.FLOAT, None)]),
    "scalar": model(RELU, [info("x", T.FLOAT, [])], [info("y", T.FLOAT, [])]),
    "output's dims follow": model([node("Flatten", ["x"], ["y"])], X, [info("y", T.FLOAT, None)]),
    "output's own name": model(RELU, X, [info("y", T.FLOAT, ["q", 4, 5])]),
    "data-dependent": model([node("NonZero", ["x"], ["y"])], [info("x", T.FLOAT, [None, "k", 3])],
                            [info("y", T.INT64, None)]),
    "sequence": model([node("SplitToSequence", ["x"], ["y"])], [info("x", T.FLOAT, ["n"])],
                      [helper.make_tensor_sequence_value_info("y", T.FLOAT, None)]),
    "optional": model([node("OptionalHasElement", ["x"], ["y"])],
                      [helper.make_value_info("x", optional_type())], [info("y", T.BOOL, [])]),
    **{f"type {name}": model(IDENTITY, [info("x", getattr(T, name), ["n"])],
                             [info("y", getattr(T, name), ["n"])])
       for name in ("FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "BOOL", "STRING", "INT8", "INT16",
                    "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")},
}

# name -> (a model that both libraries refuse, the exception's name).
REFUSED = {
    "garbage": (b"garbage!!" * 10, "InvalidProtobuf"),
    "cut off": (sums()[:60], "InvalidProtobuf"),
    "empty": (b"", "InvalidArgument"),
    "unknown operator": (unary("Nope"), "InvalidGraph"),
    "unknown domain": (unary("Nope", domain="my"), "Fail"),
    "opset of the future": (unary("Relu", opset=99), "Fail"),
    "too many inputs": (unary("Relu", 2), "InvalidGraph"),
    "undefined value": (model([node("Relu", ["q"], ["y"])], X, [info("y", T.FLOAT, None)]),
                        "InvalidArgument"),
    "cycle": (model([node("Add", ["x", "y"], ["y"])], X, [info("y", T.FLOAT, None)]), "Fail"),
    "defined twice": (model([*RELU, *RELU], X, [info("y", T.FLOAT, None)]), "Fail"),
}
