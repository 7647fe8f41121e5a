"""Small programs for the executor's tests, built without the importer."""

from collections.abc import Callable
from typing import Any

from rlx import _core
from rlx.emit import emit
from rlx.ir.build import Builder
from rlx.ir.expr import Symbol, symbol
from rlx.ir.graph import Graph, Node, Origin, Value
from rlx.ir.types import DType, TensorType


def tensor(graph: Graph, name: str, dtype: DType, *dims: int | str) -> Value:
    """An input of the graph; a dim given by name is a symbol of its own."""
    value = Value(TensorType(dtype, ()), name)
    shape = tuple(value.dim(axis, d) if isinstance(d, str) else d for axis, d in enumerate(dims))
    value.type = TensorType(dtype, shape)
    graph.inputs.append(value)
    return value


def capacity_dim(value: Value, axis: int, name: str, capacity: Callable) -> Any:
    """A dim of an input that may change from run to run within capacity(dim)."""
    made = Symbol("dim", value, axis, name=name)
    made.capacity = capacity(symbol(made))
    return symbol(made)


def stage(builder: Builder, prim: Any, inputs: list, outputs: list[Value],
          op: str = "Stage") -> list[Value]:
    """Appends a stage node."""
    for v in inputs:
        if v is not None:
            builder.materialise(v)
    builder.graph.nodes.append(Node(prim, inputs, outputs, Origin(f"the {op}", op)))
    return outputs


def executable(build: Callable[[Builder], dict[str, Value]], *, host=None, **options: Any):
    """The Executable of the graph whose outputs `build` gives by name."""
    builder = Builder()
    outputs = build(builder)
    for v in outputs.values():
        builder.materialise(v)
    builder.graph.outputs = list(outputs.values())
    builder.graph.output_names = list(outputs)
    return _core.Executable(emit(builder.graph, host), _core.make_device("cpu"), **options)


def add(*dims: int | str, dtype: DType = DType.FLOAT32, **options: Any):
    """y = a + b."""

    def build(b: Builder) -> dict[str, Value]:
        a = tensor(b.graph, "a", dtype, *dims)
        other = tensor(b.graph, "b", dtype, *dims)
        with b.at(Origin("sum", "Add")):
            return {"y": b.scalar("add", a, other)}

    return executable(build, **options)


def identity(dtype: DType, *dims: int | str):
    """y = x, which is copied."""
    return executable(lambda b: {"y": tensor(b.graph, "x", dtype, *dims)})
