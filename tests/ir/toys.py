"""Toy graphs that the tests of the IR and of emit share."""

import numpy as np

from rlx.ir.build import Builder, DType, Origin, TensorType, Value
from rlx.ir.graph import Graph, If, Loop, Node


def vector(b: Builder, name: str = "x", dtype: DType = DType.FLOAT32) -> Value:
    """A new input of the builder's graph: a vector whose length is a symbol of its own."""
    x = Value(TensorType(dtype, ()), name)
    x.type = TensorType(dtype, (x.dim(0, f"{name}.n"),))
    b.graph.inputs.append(x)
    return x


def builder(origin: str = "node") -> Builder:
    b = Builder()
    b.origin = Origin(origin, "Toy")
    return b


def summed(b: Builder, x: Value) -> Value:
    """A node whose only numbers are those of x's type."""
    return b.cumulate("sum", x, x.rank - 1)


def branch(outer: Value, swap: bool) -> Graph:
    """A graph of one input of outer's type and one output, as If takes it."""
    b = builder("inside")
    inner = vector(b, "captured", outer.dtype)
    b.graph.outputs = [b.cumulate("prod" if swap else "sum", inner, 0)]
    return b.graph


def with_if() -> Graph:
    """y = cumsum(If(c, cumsum(x), cumprod(x))): a stage between two segments."""
    b = builder()
    x = vector(b)
    condition = Value(TensorType(DType.BOOL, ()), "c")
    b.graph.inputs.append(condition)
    captured = summed(b, x)
    out = Value(captured.type)
    b.graph.nodes.append(Node(If(branch(x, False), branch(x, True)), [condition, captured],
                                [out], b.origin))
    b.graph.outputs = [summed(b, out)]
    return b.graph


def loop_body(carried: DType = DType.FLOAT32) -> Graph:
    b = builder("body")
    trip = Value(TensorType(DType.INT64, ()), "i")
    condition = Value(TensorType(DType.BOOL, ()), "go")
    b.graph.inputs += [trip, condition]
    state = vector(b, "state", carried)
    b.graph.outputs = [condition, summed(b, state), state]
    return b.graph


def with_loop() -> Graph:
    """Three trips over a vector; gives the last one and all of them stacked."""
    b = builder()
    x = vector(b)
    trips = b.const(np.array(3, np.int64), DType.INT64)
    last = Value(x.type)
    stacked = Value(TensorType(x.dtype, ()))
    stacked.type = TensorType(x.dtype, (stacked.dim(0), x.shape[0]))
    b.graph.nodes.append(Node(Loop(loop_body(), 1, 1), [trips, None, x], [last, stacked],
                              b.origin))
    b.graph.outputs = [last, stacked]
    return b.graph
