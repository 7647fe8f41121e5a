"""A Program is verified when made, immutable afterwards, and its errors are rlx errors."""

import numpy as np
import pytest

from rlx import _core
from rlx.errors import Error, InternalError
from rlx.emit import emit
from tests.ir.toys import builder, summed, vector

program = _core.program


def struct(name: str, /, **fields):
    made = getattr(program, name)()
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def cumulate(axis: int):
    prim = _core.prims.Cumulate()
    prim.kind, prim.axis = "sum", axis
    return prim


def make(axis: int = 0, outputs=(1,), origin: int = 0):
    tensor = {"dtype": 1, "shape": [0]}
    node = struct("Node", prim=cumulate(axis), inputs=[0], outputs=[1], origin=origin)
    return _core.Program(
        exprs=[program.ExprRow("const_int", False, (), i=4)],
        values=[struct("Value", **tensor), struct("Value", **tensor)],
        inputs=[0], input_names=["x"], outputs=outputs, output_names=["y"],
        stages=[struct("Segment", nodes=[node])],
        origins=[struct("Origin", name="n7", op="CumSum")])


def test_fields_are_read_only_copies():
    made = make()
    with pytest.raises(AttributeError):
        made.outputs = [0]
    made.stages[0].nodes[0].prim.axis = 5
    made.values.append(made.values[0])
    assert made.stages[0].nodes[0].prim.axis == 0 and len(made.values) == 2


def test_a_broken_program_is_an_internal_error_at_its_node():
    with pytest.raises(InternalError, match="axis 3 is not in a rank of 1") as caught:
        make(axis=3)
    assert isinstance(caught.value, Error)
    assert (caught.value.node, caught.value.op) == ("n7", "CumSum")


@pytest.mark.parametrize("fields, message", [
    ({"outputs": [9]}, "value 9 does not exist"),
    ({"origin": 4}, "no such origin"),
])
def test_ids_are_checked(fields, message):
    with pytest.raises(InternalError, match=message):
        make(**fields)


def test_unknown_keywords_are_errors():
    with pytest.raises(TypeError, match="unknown keyword"):
        _core.Program(stage=[])


def test_constants_are_neither_copied_nor_dropped():
    array = np.arange(6.0).reshape(2, 3)
    constant = program.Constant(array, "here")
    assert constant.array is array and constant.bytes == 48
    with pytest.raises(ValueError, match="contiguous"):
        program.Constant(array.T, "here")


def test_programs_outlive_what_they_were_made_from():
    b = builder()
    x = vector(b)
    b.graph.outputs = [summed(b, x), b.const(np.arange(100.0))]
    made = emit(b.graph)
    del b, x
    values = made.values[made.outputs[1]]
    assert made.constants[values.constant].array.sum() == 4950
