"""emit: tables, value ids, aliases, stages cut at runtime symbols, children."""

import numpy as np
import pytest

from rlx import _core
from rlx.emit import emit
from rlx.errors import InternalError
from rlx.ir.build import DType, Symbol, TensorType, Value, apply, symbol
from rlx.ir.graph import Graph, Guard, Host, Node, Origin, SequenceOp
from rlx.ir.types import SequenceType
from tests.ir.toys import builder, summed, vector, with_if, with_loop

program = _core.program


def shape_of(emitted) -> list:
    """The stages as lists of primitive names, or the stage's own name."""
    return [[type(n.prim).__name__ for n in s.nodes] if isinstance(s, program.Segment)
            else type(s).__name__ for s in emitted.stages]


def test_tables_of_a_small_graph():
    b = builder()
    x = vector(b)
    b.guard(apply("le", 1, x.shape[0]), "x is empty")
    y = summed(b, x)
    b.graph.outputs, b.graph.output_names = [y], ["y"]
    made = emit(b.graph)
    assert (made.input_names, made.output_names) == (["x"], ["y"])
    assert made.inputs == [0] and made.outputs == made.stages[0].nodes[0].outputs
    assert [(s.kind, s.value, s.index, s.name) for s in made.symbols] == [("dim", 0, 0, "x.n")]
    assert [(o.name, o.op) for o in made.origins] == [("node", "Toy")]
    guard = made.guards[0]
    assert (guard.message, guard.origin, guard.assumption) == ("x is empty", 0, "")
    assert made.exprs[guard.condition].op == "le"
    # One row for the symbol, whoever mentions it.
    assert sum(row.op == "symbol" for row in made.exprs) == 1
    assert made.values[0].shape == made.values[1].shape


def test_fields_of_primitives_arrive():
    b = builder()
    x = vector(b)
    y = b.pad(x, (1,), (apply("sub", 9, x.shape[0]),))
    b.graph.outputs = [y]
    made = emit(b.graph)
    move = made.stages[0].nodes[0].prim
    (part,) = move.parts
    constant = {i: row.i for i, row in enumerate(made.exprs) if row.op == "const_int"}
    assert (move.mode, move.fill, part.perm) == ("constant", -1, [0])
    assert [constant[i] for i in part.offsets + part.steps] == [1, 1]
    assert made.exprs[part.extents[0]].op == "max"


def test_regions_arrive():
    b = builder()
    x = vector(b)
    y = b.scalar("add", x, b.const(2.5, DType.FLOAT32))
    b.graph.outputs = [y]
    region = emit(b.graph).stages[0].nodes[0].prim
    assert [op.op for op in region.ops][-1] == "add"
    assert region.ops[-1].args == [0, 1] and region.ops[-1].dtype == DType.FLOAT32


def test_operands_stand_at_their_fixed_positions():
    b = builder()
    a = Value(TensorType(DType.FLOAT32, (2, 3)), "a")
    b.graph.inputs.append(a)
    w = b.const(np.ones((3, 4), np.float32))
    y = b.matmul(a, w)
    b.graph.nodes[-1].inputs = [a, w]
    b.graph.outputs = [y]
    assert emit(b.graph).stages[0].nodes[0].inputs[2:] == [-1] * 4


def test_a_runtime_symbol_cuts_after_its_producer():
    b = builder()
    x = vector(b)
    places = b.nonzero(x)
    late = summed(b, places)
    early = summed(b, x)
    b.graph.outputs = [late, early]
    made = emit(b.graph)
    assert shape_of(made) == [["Sort", "Cumulate"], ["Cumulate"]]
    count = made.symbols[1]
    assert (count.kind, count.value) == ("element", made.stages[0].nodes[0].outputs[1])
    assert made.exprs[count.upper].op == "symbol"  # at most every element


def test_independent_runtime_symbols_share_a_cut():
    b = builder()
    x, y = vector(b, "x"), vector(b, "y")
    late = [summed(b, b.nonzero(v)) for v in (x, y)]
    b.graph.outputs = late
    assert shape_of(emit(b.graph)) == [["Sort", "Sort"], ["Cumulate", "Cumulate"]]


def test_dependent_runtime_symbols_cut_twice():
    b = builder()
    places = b.nonzero(vector(b))
    again = b.nonzero(places)
    b.graph.outputs = [summed(b, again)]
    assert shape_of(emit(b.graph)) == [["Sort"], ["Sort"], ["Cumulate"]]


def test_a_value_read_through_an_alias_waits_for_its_dims():
    b = builder()
    places = b.nonzero(vector(b))
    flat = b.reshape(places, (places.shape[1],))
    total = b.reduce("sum", flat, (0,), keepdims=False)  # names n only in its input's type
    b.graph.outputs = [total]
    made = emit(b.graph)
    assert shape_of(made) == [["Sort"], ["Reduce"]]
    (alias,) = [v for v in made.values if v.alias_of >= 0]
    assert alias.alias_of == made.stages[0].nodes[0].outputs[0]


def test_numbers_of_a_primitive_cut_too():
    b = builder()
    x = vector(b)
    k = Value(TensorType(DType.INT64, (1,)), "k")
    b.graph.inputs.append(k)
    computed = summed(b, k)
    values, _ = b.topk(x, b.number(computed), 0)
    b.graph.outputs = [values]
    assert shape_of(emit(b.graph)) == [["Cumulate"], ["Sort"]]


def test_numbers_that_no_type_mentions_cut_too():
    b = builder()
    x = vector(b)
    start = Value(TensorType(DType.INT64, (1,)), "start")
    b.graph.inputs.append(start)
    place = b.number(summed(b, start))
    b.graph.outputs = [b.slice(x, (place,), (1,), (2,))]
    assert shape_of(emit(b.graph)) == [["Cumulate"], ["Move"]]


def test_an_alias_waits_for_the_stage_behind_it():
    graph = with_if()
    b = builder()
    b.graph = graph
    flat = b.reshape(graph.nodes[1].outputs[0], (1, graph.inputs[0].shape[0]))
    graph.outputs.append(summed(b, flat))
    assert shape_of(emit(graph)) == [["Cumulate"], "If", ["Cumulate", "Cumulate"]]


def test_inputs_are_numbers_without_a_cut():
    b = builder()
    x = vector(b)
    k = Value(TensorType(DType.INT64, (1,)), "k")
    b.graph.inputs.append(k)
    b.graph.outputs = list(b.topk(x, b.number(k), 0))
    made = emit(b.graph)
    assert shape_of(made) == [["Sort"]]
    assert ("element", 1, 0) in [(s.kind, s.value, s.index) for s in made.symbols]


def test_if_is_a_stage_of_its_own():
    made = emit(with_if())
    assert shape_of(made) == [["Cumulate"], "If", ["Cumulate"]]
    stage = made.stages[1]
    assert stage.condition == made.inputs[1]
    assert stage.captures == made.stages[0].nodes[0].outputs
    assert shape_of(stage.then_program) == shape_of(stage.else_program) == [["Cumulate"]]
    assert stage.else_program.stages[0].nodes[0].prim.kind == "prod"


def test_loop_passes_what_its_body_takes():
    stage = emit(with_loop()).stages[0]
    assert isinstance(stage, program.Loop)
    assert (stage.condition, len(stage.carried), stage.captures, stage.scans) == (-1, 1, [], 1)
    assert len(stage.outputs) == 2 and len(stage.body.inputs) == 3


def test_outputs_may_be_inputs_constants_or_repeated():
    b = builder()
    x = vector(b)
    constant = b.const(np.arange(3.0), DType.FLOAT64)
    b.graph.outputs = [x, constant, x]
    b.graph.output_names = ["a", "b", "c"]
    made = emit(b.graph)
    assert made.outputs == [0, 1, 0] and made.stages == []
    assert made.output_names == ["a", "b", "c"]


def test_sequences_and_host_functions():
    b = builder()
    x = vector(b, dtype=DType.STRING)
    made_sequence = Value(SequenceType(x.dtype, 1))
    y = Value(x.type)
    b.graph.nodes += [Node(SequenceOp("construct"), [x], [made_sequence], b.origin),
                      Node(Host("lower", (("locale", "C"),)), [x], [y], b.origin)]
    b.graph.outputs = [made_sequence, y]
    asked = []

    def function(array):
        return array

    made = emit(b.graph, lambda prim: asked.append(prim) or function)
    assert shape_of(made) == ["SequenceOp", "Host"]
    assert made.stages[1].callable(asked) is asked
    assert asked == [Host("lower", (("locale", "C"),))]
    sequence = made.values[made.outputs[0]]
    assert (sequence.kind, sequence.dtype, sequence.shape) == ("sequence", DType.STRING, [])
    with pytest.raises(InternalError, match="no host functions"):
        emit(b.graph)


def test_states_arrive():
    b = builder()
    x = vector(b)
    b.graph.outputs, b.graph.states = [summed(b, x)], [(0, 0, 0)]
    (state,) = emit(b.graph).states
    assert (state.input, state.output, state.axis) == (0, 0, 0)


def test_a_tracked_value_must_be_materialised():
    b = builder()
    x = vector(b)
    lost = Value(TensorType(DType.INT64, (1,)), "lost", exprs=(x.shape[0],))
    with pytest.raises(InternalError, match="never materialised"):
        emit(Graph(inputs=b.graph.inputs, outputs=[lost]))


def test_an_undefined_value_is_named():
    b = builder()
    y = summed(b, Value(TensorType(DType.FLOAT32, (3,)), "nowhere"))
    with pytest.raises(InternalError, match="nowhere"):
        emit(Graph(nodes=b.graph.nodes, outputs=[y]))


def test_a_symbol_of_another_graph_is_an_error():
    b = builder()
    stranger = symbol(Symbol("dim", Value(TensorType(DType.INT64, (1,)), "far"), 0, name="far"))
    b.graph.guards.append(Guard(apply("lt", stranger, 3), "too far", Origin("n", "Op")))
    with pytest.raises(InternalError, match="far"):
        emit(b.graph)


def test_nodes_that_wait_for_each_other_are_an_error():
    b = builder()
    x = vector(b)
    first, second = summed(b, x), summed(b, x)
    b.graph.nodes[0].inputs, b.graph.nodes[1].inputs = [second], [first]
    b.graph.outputs = [first]
    with pytest.raises(InternalError, match="wait for each other"):
        emit(b.graph)
