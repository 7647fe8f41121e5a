"""Attributes are checked by the types that each operator's function is annotated with."""

import inspect

import numpy as np
from onnx import helper
import pytest

import rlx
import rlx.importer.ops  # noqa: F401  registers the operators
from rlx.importer.registry import converted, entries, Floats, IntArray, Ints
from tests.api.toys import arange, model, node, value


def test_every_attribute_of_every_operator_says_its_type():
    bare = [f"{e.domain}:{e.name} {name}" for e in entries() for name, kind in e.types.items()
            if kind is inspect.Parameter.empty]
    assert not bare


@pytest.mark.parametrize("op, attributes, says", [
    ("Softmax", {"axis": "x"}, "axis"), ("Softmax", {"axis": 1.5}, "axis"),
    ("Softmax", {"axis": [1]}, "axis"), ("LeakyRelu", {"alpha": "x"}, "alpha"),
    ("Transpose", {"perm": 1}, "perm"), ("Transpose", {"perm": [0.0, 1.0]}, "perm"),
    ("Gelu", {"approximate": "a bit"}, "approximate"), ("Gelu", {"approximate": 1}, "approximate"),
    ("DepthToSpace", {"blocksize": 1, "mode": "DRC"}, "mode"),
    ("ReduceSum", {"keepdims": [1]}, "keepdims"),
])
def test_attribute_of_another_type_is_refused(op, attributes, says):
    made = model([node(op, "x", "y", **attributes)], [value("x", shape=[2, 4])], [value("y")],
                 opset=20)
    with pytest.raises(rlx.ModelError, match=says) as caught:
        rlx.load(made)
    error = caught.value
    assert error.op == op and error.node and error.expected and error.got and error.remedy


def test_shift_in_no_direction_is_refused():
    """It must not silently mean one of the two."""
    made = model([node("BitShift", "x x", "y", direction="UP")], [value("x", 2, [2])], [value("y")])
    with pytest.raises(rlx.ModelError, match="direction"):
        rlx.load(made)


def test_whole_numbers_are_floats():
    made = model([node("LeakyRelu", "x", "y")], [value("x", shape=[2])], [value("y")])
    made.graph.node[0].attribute.append(helper.make_attribute("alpha", 2))
    assert rlx.run(made, np.array([-1, 1], np.float32))["y"].tolist() == [-2, 1]


@pytest.mark.parametrize("value, kind, expected", [
    ((1, 2), Ints, (1, 2)), (np.array([1, 2]), Ints, (1, 2)), ((), Floats, ()),
    ((1, 2.5), Floats, (1, 2.5)),
])
def test_lists_are_tuples_whatever_their_length(value, kind, expected):
    assert converted("a", value, kind) == expected


def test_lists_that_may_be_long_are_arrays():
    for given in ((1, 2), np.array([1, 2])):
        made = converted("a", given, IntArray)
        assert made.dtype == np.int64 and made.tolist() == [1, 2]


def test_long_list_where_a_short_one_belongs():
    """The reader gives lists of over 1024 numbers as arrays."""
    made = model([node("Transpose", "x", "y", perm=list(range(2000)))],
                 [value("x", shape=[2, 3])], [value("y")])
    with pytest.raises(rlx.ModelError, match="perm"):
        rlx.run(made, arange(2, 3))
