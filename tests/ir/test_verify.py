"""The verifier of Graphs accepts what is right and names what is wrong."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from rlx.errors import InternalError
from rlx.ir.build import Builder, DType, Symbol, TensorType, Value, apply, symbol
from rlx.ir.graph import Alias, Graph, Node
from rlx.ir.prims import AxisMap, MatMul, Move, Random, Reduce, Region, RegionOp, Sort
from rlx.ir.verify import verify
from tests.ir.toys import builder, loop_body, summed, vector, with_if, with_loop


def valid() -> Builder:
    """One of everything that the broken graphs below break."""
    b = builder()
    x = vector(b)
    matrix = Value(TensorType(DType.FLOAT32, (2, 3)), "m")
    b.graph.inputs.append(matrix)
    product = b.matmul(matrix, b.const(np.ones((3, 4), np.float32)))
    moved = b.transpose(product, (1, 0))
    total = b.reduce("sum", moved, (0,))
    flat = b.reshape(total, (2,))
    shifted = b.scalar("add", flat, flat)
    places = b.nonzero(x)
    length = b.materialise(b.from_numbers((x.shape[0],), DType.INT64))
    b.guard(apply("lt", x.shape[0], 100), "x is long")
    b.graph.outputs = [shifted, places, length]
    return b


def test_valid_graphs_pass():
    for graph in (valid().graph, with_if(), with_loop()):
        verify(graph)


def node_of(graph: Graph, kind: type) -> Node:
    return next(n for n in graph.nodes if isinstance(n.prim, kind))


def change(kind: type, /, **fields) -> Callable[[Graph], None]:
    def apply_change(graph: Graph) -> None:
        node = node_of(graph, kind)
        node.prim = replace(node.prim, **fields)

    return apply_change


def change_op(at: int, /, **fields) -> Callable[[Graph], None]:
    def apply_change(graph: Graph) -> None:
        node = node_of(graph, Region)
        ops = list(node.prim.ops)
        ops[at] = replace(ops[at], **fields)
        node.prim = replace(node.prim, ops=tuple(ops))

    return apply_change


def change_part(**fields) -> Callable[[Graph], None]:
    def apply_change(graph: Graph) -> None:
        node = node_of(graph, Move)
        node.prim = replace(node.prim, parts=(replace(node.prim.parts[0], **fields),))

    return apply_change


def retype(output: int, type: TensorType) -> Callable[[Graph], None]:
    def apply_change(graph: Graph) -> None:
        graph.outputs[output].type = type

    return apply_change


def drop_input(graph: Graph) -> None:
    node_of(graph, MatMul).inputs[1] = None


def swap_order(graph: Graph) -> None:
    graph.nodes[0], graph.nodes[1] = graph.nodes[1], graph.nodes[0]


def define_twice(graph: Graph) -> None:
    node = node_of(graph, Reduce)
    graph.nodes.append(Node(node.prim, node.inputs, node.outputs, node.origin))


def steal_output(graph: Graph) -> None:
    node = node_of(graph, Reduce)
    Node(node.prim, node.inputs, node.outputs, node.origin)


def wrong_array(graph: Graph) -> None:
    node_of(graph, MatMul).inputs[1].const = np.ones((3, 5), np.float32)


def wrong_array_type(graph: Graph) -> None:
    node_of(graph, MatMul).inputs[1].const = np.ones((3, 4), np.float64)


def longer_alias(graph: Graph) -> None:
    node_of(graph, Alias).outputs[0].type = TensorType(DType.FLOAT32, (3,))


def no_upper(graph: Graph) -> None:
    places = node_of(graph, Sort).outputs
    n = symbol(Symbol("element", places[1], 0, name="n"))
    places[0].type = TensorType(DType.INT64, (1, n))


def future_number(graph: Graph) -> None:
    late = node_of(graph, Sort).outputs[1]
    n = symbol(Symbol("element", late, 0, name="later", upper=4))
    graph.nodes[0].outputs[0].type = TensorType(DType.FLOAT32, (2, n))


def stray_guard(graph: Graph) -> None:
    far = symbol(Symbol("dim", Value(TensorType(DType.INT64, (1,)), "far"), 0, name="far"))
    graph.guards[0].condition = apply("lt", far, 3)


def lost_tracked(graph: Graph) -> None:
    graph.outputs[0] = Value(TensorType(DType.INT64, (1,)), "lost",
                             exprs=(graph.inputs[0].shape[0],))


BROKEN = [
    (drop_input, "input 1 is absent"),
    (swap_order, "before it is defined"),
    (define_twice, "names another producer|defined twice"),
    (steal_output, "names another producer"),
    (wrong_array, "holds an array of shape"),
    (wrong_array_type, "holds float64"),
    (longer_alias, "another number of elements"),
    (no_upper, "no upper bound"),
    (future_number, "not defined by then"),
    (stray_guard, "depends on far"),
    (lost_tracked, "never materialised"),
    (retype(0, TensorType(DType.FLOAT32, (-1,))), "negative dim"),
    (retype(0, TensorType(DType.FLOAT32, (2, 1))), "must have the shape"),
    (retype(0, TensorType(DType.INT32, (2,))), "not of its result's type"),
    (change(Reduce, kind="median"), "kind is 'median'"),
    (change(Reduce, axes=(2,)), "axis 2 is not in a rank of 2"),
    (change(Reduce, axes=(0, 0)), "not sorted and distinct"),
    (change(Reduce, keepdims=False), "must have the shape"),
    (change(Reduce, kind="argmax"), "to int64"),
    (change(MatMul, trans_a=True), "inner dims"),
    (change_part(perm=(0, 0)), "no permutation"),
    (change_part(starts=(0,)), "expected 2 starts"),
    (change(Move, fill=0), "only the constant mode"),
    (change_op(-1, args=(0, 2)), "precedes its argument"),
    (change_op(-1, args=(0,)), "takes 2 arguments"),
    (change_op(-1, op="plus"), "no scalar function"),
    (change_op(-1, op="and"), "not defined for FLOAT32"),
    (change_op(-1, op="lt"), "does not give FLOAT32"),
    (change_op(0, dtype=DType.INT8), "another element type"),
    (change_op(0, args=(7,)), "out of range"),
    (change(Region, results=(9,)), "result does not exist"),
    (change(Region, accesses=((AxisMap(1),), (AxisMap(0),))), "an axis that is not there"),
    (change(Region, accesses=((), (AxisMap(0),))), "another rank"),
]


@pytest.mark.parametrize("breakage, message", BROKEN)
def test_broken_graphs_are_named(breakage, message):
    graph = valid().graph
    breakage(graph)
    with pytest.raises(InternalError, match=message):
        verify(graph)


def test_errors_name_the_node():
    graph = valid().graph
    change(Reduce, axes=(7,))(graph)
    with pytest.raises(InternalError) as caught:
        verify(graph)
    assert (caught.value.node, caught.value.op) == ("node", "Toy")


@pytest.mark.parametrize("make", [with_if, with_loop])
def test_children_fit_their_stage(make):
    graph = make()
    node = next(n for n in graph.nodes if hasattr(n.prim, "body") or hasattr(n.prim, "then_graph"))
    child = getattr(node.prim, "body", None) or node.prim.else_graph
    child.outputs.append(child.outputs[0])
    with pytest.raises(InternalError, match="another number of values"):
        verify(graph)


def test_carried_values_keep_their_type():
    graph = with_loop()
    node = graph.nodes[0]
    node.prim = replace(node.prim, body=loop_body(DType.FLOAT64))
    with pytest.raises(InternalError, match="in a child graph"):
        verify(graph)


def test_faults_inside_a_child_are_found():
    graph = with_if()
    child = next(n for n in graph.nodes if hasattr(n.prim, "then_graph")).prim.then_graph
    child.nodes[0].prim = replace(child.nodes[0].prim, axis=4)
    with pytest.raises(InternalError, match="axis 4"):
        verify(graph)


def test_random_reads_only_for_some_kinds():
    b = builder()
    x = vector(b)
    b.graph.outputs = [b.random(Random("uniform"), DType.FLOAT32, (3,), x)]
    with pytest.raises(InternalError, match="takes another input"):
        verify(b.graph)


def test_states_fit_together():
    b = builder()
    x = vector(b)
    b.graph.outputs, b.graph.states = [summed(b, x)], [(0, 0, 0)]
    verify(b.graph)
    b.graph.states = [(0, 0, 1)]
    with pytest.raises(InternalError, match="fit together"):
        verify(b.graph)


def test_region_ops_of_dims_have_types():
    region = Region((2,), (), (RegionOp("dim", None, imm=3),), (0,))
    y = Value(TensorType(DType.INT64, (2,)))
    graph = Graph(outputs=[y], nodes=[Node(region, [], [y], builder().origin)])
    with pytest.raises(InternalError, match="no element type"):
        verify(graph)
