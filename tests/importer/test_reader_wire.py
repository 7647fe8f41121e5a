"""The wire scanner against onnx's own parser: whatever it cuts, the model stays the same."""

from collections.abc import Iterator

from google.protobuf.message import DecodeError, Message
from hypothesis import example, given, settings, strategies as st
import onnx
from onnx import helper
import pytest

from rlx.errors import ModelError
from rlx.importer import wire

SMALL = 30  # stands in for CUT_FROM, so that models stay small; longer than a token's 24 bytes


@pytest.fixture(autouse=True, scope="module")
def cut_small_data():
    patch = pytest.MonkeyPatch()
    patch.setattr(wire, "CUT_FROM", SMALL)
    yield
    patch.undo()


def tensors_in(message: Message) -> Iterator[onnx.TensorProto]:
    """Every TensorProto anywhere in a message."""
    if isinstance(message, onnx.TensorProto):
        yield message
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            for item in [value] if isinstance(value, Message) else value:
                yield from tensors_in(item)


def parse(data: bytes) -> onnx.ModelProto | None:
    try:
        return onnx.ModelProto.FromString(data)
    except DecodeError:
        return None


def restored(data: bytes) -> onnx.ModelProto:
    """The model parsed from the cut form, with what was cut put back."""
    rest, cuts = wire.cut_raw_data(memoryview(data))
    model = onnx.ModelProto.FromString(rest)
    for tensor in tensors_in(model):
        if tensor.raw_data in cuts:
            cut = cuts[tensor.raw_data]
            tensor.raw_data = data[cut.offset : cut.offset + cut.nbytes]
    return model


def check_like_parser(data: bytes) -> None:
    expected = parse(data)
    try:
        model = restored(data)
    except (ModelError, DecodeError):
        assert expected is None
        return
    assert expected is not None
    assert model.SerializeToString(deterministic=True) == expected.SerializeToString(
        deterministic=True)


raw_tensor = st.builds(
    lambda name, raw: onnx.TensorProto(name=name, data_type=2, dims=[len(raw)], raw_data=raw),
    st.text(max_size=3), st.binary(max_size=3 * SMALL))
typed_tensor = st.builds(
    lambda values: onnx.TensorProto(data_type=1, float_data=values, int64_data=[2**63 - 1, -1]),
    st.lists(st.floats(width=32, allow_nan=False), max_size=20))
tensor = raw_tensor | typed_tensor
sparse = st.builds(
    lambda values, indices: onnx.SparseTensorProto(values=values, indices=indices, dims=[9]),
    tensor, tensor)


def attributes(graph: st.SearchStrategy) -> st.SearchStrategy:
    return st.builds(
        lambda t, g, s, floats, strings: onnx.AttributeProto(
            name="a", t=t, g=g, sparse_tensor=s, tensors=[t] if t else [], floats=floats,
            strings=strings),
        st.none() | tensor, st.none() | graph, st.none() | sparse,
        st.lists(st.floats(width=32, allow_nan=False), max_size=12),
        st.lists(st.binary(max_size=2 * SMALL), max_size=3))


def graphs(inner: st.SearchStrategy) -> st.SearchStrategy:
    node = st.builds(lambda a: onnx.NodeProto(op_type="X", attribute=a),
                     st.lists(attributes(inner), max_size=2))
    return st.builds(
        lambda n, i, s, doc: onnx.GraphProto(
            node=n, initializer=i, sparse_initializer=s, doc_string=doc),
        st.lists(node, max_size=3), st.lists(tensor, max_size=3), st.lists(sparse, max_size=2),
        st.text(max_size=2 * SMALL))


graph = graphs(graphs(graphs(st.none())))


@st.composite
def models(draw: st.DrawFn) -> onnx.ModelProto:
    main = draw(graph)
    model = onnx.ModelProto(ir_version=10, graph=main, producer_name=draw(st.text(max_size=50)))
    for node in draw(graph).node:
        model.functions.append(onnx.FunctionProto(name="f", node=[node]))
    if draw(st.booleans()):
        model.training_info.append(onnx.TrainingInfoProto(algorithm=draw(graph)))
    return model


@settings(max_examples=40)
@given(models())
def test_every_model_survives_cutting(model):
    data = model.SerializeToString()
    assert restored(data) == model
    _, cuts = wire.cut_raw_data(memoryview(data))
    # Each cut lies where the bytes of some tensor lie.
    contents = [t.raw_data for t in tensors_in(model)]
    assert all(data[c.offset : c.offset + c.nbytes] in contents for c in cuts.values())


@settings(max_examples=60)
@given(models(), st.data())
def test_damaged_models_are_judged_like_the_parser_does(model, data):
    content = bytearray(model.SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        if content:
            at = data.draw(st.integers(0, len(content) - 1))
            kind = data.draw(st.sampled_from("flip delete insert".split()))
            if kind == "flip":
                content[at] = data.draw(st.integers(0, 255))
            elif kind == "delete":
                del content[at : at + data.draw(st.integers(1, 4))]
            else:
                content[at:at] = data.draw(st.binary(min_size=1, max_size=4))
    check_like_parser(bytes(content))


@given(st.binary(max_size=80))
@example(b"\x0b\x0c")  # an empty group of an unknown field
@example(b"\x0b\x14")  # a group that another one's end closes
@example(b"\x0c")  # an end without its group
@example(b"\x3a\x05\x0b\x12\x01a\x0c")  # a group inside the graph
@example(b"\x08" + b"\x80" * 9 + b"\x01")  # the longest number
@example(b"\x08" + b"\x80" * 10 + b"\x01")  # too long a number
def test_arbitrary_bytes_are_judged_like_the_parser_does(data):
    check_like_parser(data)


def field(number: int, payload: bytes) -> bytes:
    """A length-delimited field."""
    key, length = number << 3 | 2, len(payload)
    number_bytes = bytearray()
    for value in (key, length):
        while value >= 0x80:
            number_bytes.append(value & 0x7F | 0x80)
            value >>= 7
        number_bytes.append(value)
    return bytes(number_bytes) + payload


def test_repeated_single_fields_keep_protobuf_meaning():
    first = onnx.AttributeProto(name="a", t=onnx.TensorProto(name="t", raw_data=b"1" * 99))
    second = onnx.AttributeProto(t=onnx.TensorProto(raw_data=b"2" * 77, dims=[3]))
    attribute = first.SerializeToString() + second.SerializeToString()
    data = field(7, field(1, field(5, attribute)))
    merged = parse(data).graph.node[0].attribute[0].t
    assert (merged.name, merged.raw_data, list(merged.dims)) == ("t", b"2" * 77, [3])
    check_like_parser(data)


def test_too_deep_nesting_is_refused():
    graph = onnx.GraphProto(initializer=[onnx.TensorProto(raw_data=bytes(SMALL))])
    nested = graph.SerializeToString()
    for _ in range(60):
        nested = field(1, field(5, field(6, nested)))
    assert parse(field(7, nested)) is None
    with pytest.raises(ModelError, match="nests more than"):
        wire.cut_raw_data(memoryview(field(7, nested)))


def test_large_data_is_cut_and_the_rest_stays_small():
    nodes = [helper.make_node("Constant", [], ["c"], value=helper.make_tensor(
        "v", onnx.TensorProto.UINT8, [100_000], bytes(100_000), raw=True))]
    weight = helper.make_tensor("w", onnx.TensorProto.UINT8, [200_000], bytes(200_000), raw=True)
    model = helper.make_model(helper.make_graph(nodes, "g", [], [], [weight]))
    rest, cuts = wire.cut_raw_data(memoryview(model.SerializeToString()))
    assert sorted(c.nbytes for c in cuts.values()) == [100_000, 200_000]
    assert len(rest) < 500
