"""emit: constants kept once, weights passed as views with their source, strings as ids."""

import numpy as np
import pytest

from rlx.emit import emit
from rlx.importer.loaded import Weight
from rlx.ir.build import DType, TensorType, Value
from rlx.ir.graph import Graph
from tests.ir.toys import builder, with_if


def test_equal_constants_are_kept_once():
    b = builder()
    arrays = [np.arange(200.0), np.arange(200.0), np.arange(200)]
    b.graph.outputs = [b.const(a, name=f"c{k}") for k, a in enumerate(arrays)]
    made = emit(b.graph)
    assert [made.values[v].constant for v in made.outputs] == [0, 0, 1]
    assert np.shares_memory(made.constants[0].array, arrays[0])
    assert made.constants[0].source != made.constants[1].source


def weight(data: np.ndarray, dtype: DType, count: int, **fields) -> Value:
    w = Weight("w", dtype, (count,), data, **fields)
    value = Value(TensorType(dtype, (count,)), "w", const=w.array)
    value.weight = w
    return value


@pytest.mark.parametrize("offset, count, copied", [
    (0, 1 << 15, False), (1, 1 << 15, False), (1, 16, True)])
def test_weights_are_not_copied_unless_small_and_misaligned(offset, count, copied):
    data = np.zeros(4 * count + 8, np.uint8)[offset:offset + 4 * count]
    value = weight(data, DType.FLOAT32, count, source="file@0", mapped=True)
    (constant,) = emit(Graph(outputs=[value])).constants
    assert constant.source == "file@0"
    assert np.shares_memory(constant.array, data) != copied
    assert constant.droppable != copied
    assert constant.array.flags.aligned or not copied


def test_unpacked_weights_have_an_identity_of_their_own():
    value = weight(np.array([0x21], np.uint8), DType.UINT4, 2, source="file@0", mapped=True)
    (constant,) = emit(Graph(outputs=[value])).constants
    assert constant.bytes == 2 and constant.source != "file@0" and not constant.droppable


@pytest.mark.parametrize("change", [lambda a: a.reshape(4, 2).T, lambda a: a[1:]])
def test_views_of_a_weight_are_not_the_weight(change):
    value = weight(np.arange(8, dtype=np.uint8), DType.UINT8, 8, source="file@0", mapped=True)
    value.const = change(value.const)
    value.type = TensorType(DType.UINT8, value.const.shape)
    (constant,) = emit(Graph(outputs=[value])).constants
    assert constant.source != "file@0" and not constant.droppable
    assert constant.array.tolist() == value.const.tolist()


def test_strings_become_ids():
    b = builder()
    words = [b.const(np.array(w, object), DType.STRING, name=w[0])
             for w in (["b", "a"], ["a", "c"])]
    b.graph.outputs = words
    made = emit(b.graph)
    assert made.strings == ["b", "a", "c"]
    ids = [made.constants[made.values[v].constant].array.tolist() for v in made.outputs]
    assert ids == [[0, 1], [1, 2]]


def test_children_number_strings_as_their_parent():
    graph = with_if()
    b = builder()
    prim = graph.nodes[1].prim
    for child, word in ((prim.then_graph, "then"), (prim.else_graph, "else")):
        child.outputs.append(b.const(np.array([word], object), DType.STRING))
    out = Value(TensorType(DType.STRING, (1,)))
    graph.nodes[1].outputs.append(out)
    last = b.const(np.array(["else", "last"], object), DType.STRING)
    graph.outputs += [out, last]
    made = emit(graph)
    stage = made.stages[1]
    assert made.strings == ["then", "else", "last"]
    assert (stage.then_program.strings, stage.else_program.strings) == (["then"], ["then", "else"])
    assert stage.else_program.constants[0].array.tolist() == [1]
    assert made.constants[0].array.tolist() == [1, 2]
