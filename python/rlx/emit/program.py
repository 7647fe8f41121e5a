"""Writes a Graph and its child graphs as Programs: values, stages, guards, origins."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import cache
from typing import Any

from rlx import _core
from rlx.emit.schedule import Stage, schedule
from rlx.emit.tables import Constants, ExprTable, Strings
from rlx.errors import Error, InternalError
from rlx.ir.expr import Expr
from rlx.ir.graph import Alias, Graph, Guard, Host, If, Loop, Node, Origin, Scan, SequenceOp, Value
from rlx.ir.prims import RegionOp
from rlx.ir.slots import slots
from rlx.ir.types import OptionalType, SequenceType, TensorType, Type


def emit(graph: Graph, host: Callable[[Host], Callable] | None = None) -> Any:
    """The Program of a graph; `host` gives the Python function of a Host node."""
    return _Emitter(graph, Strings(), host).program()


class _Emitter:
    def __init__(self, graph: Graph, strings: Strings, host: Callable[[Host], Callable] | None):
        self.graph, self.strings, self.host = graph, strings, host
        self.ids: dict[int, int] = {}
        self.values: list[Any] = []
        self.undescribed: list[Value] = []
        self.origins: dict[Origin, int] = {}
        self.constants = Constants(strings)
        self.exprs = ExprTable(self.value)
        self.inputs = {v.id for v in graph.inputs}
        self.aliases = {node.outputs[0].id: node.inputs[0] for node in graph.nodes
                        if isinstance(node.prim, Alias)}
        self.made = {v.id for node in graph.nodes for v in node.outputs if v is not None}

    def program(self) -> Any:
        graph = self.graph
        inputs = [self.value(v) for v in graph.inputs]
        stages = [self.stage(s) for s in schedule(graph)]
        outputs = [self.value(v) for v in graph.outputs]
        guards = [self.guard(g) for g in graph.guards]
        states = [_struct("StatePair", input=i, output=o, axis=a) for i, o, a in graph.states]
        self.describe_values()
        return _core.Program(
            exprs=self.exprs.rows, symbols=self.exprs.symbols, guards=guards, values=self.values,
            constants=self.constants.made, strings=list(self.strings.ids), states=states,
            inputs=inputs, outputs=outputs, input_names=[v.name for v in graph.inputs],
            output_names=graph.output_names or [v.name for v in graph.outputs], stages=stages,
            origins=[self.origin_struct(o) for o in self.origins])

    # -- values ------------------------------------------------------------------------------

    def value(self, v: Value | None) -> int:
        """The id of a value, -1 for an absent one."""
        if v is None:
            return -1
        if v.id not in self.ids:
            self.ids[v.id] = len(self.values)
            self.values.append(_core.program.Value())
            self.undescribed.append(v)
        return self.ids[v.id]

    def values_of(self, vs: Iterable[Value | None]) -> list[int]:
        return [self.value(v) for v in vs]

    def describe_values(self) -> None:
        """Fills in the values met so far and those that they bring in by their dims."""
        for v in self.undescribed:  # which grows meanwhile
            self.describe(v, self.values[self.ids[v.id]])

    def describe(self, v: Value, made: Any) -> None:
        made.kind, made.dtype = _kind_and_dtype(v.type)
        made.name = v.name
        if isinstance(v.type, TensorType):
            made.shape = [self.exprs.id(d) for d in v.shape]
        if v.id in self.inputs or v.id in self.made:
            if v.id in self.aliases:
                made.alias_of = self.value(self.aliases[v.id])
        elif v.is_const:
            made.constant = self.constants.id(v)
        elif v.exprs is not None:
            raise InternalError(f"{v!r} is tracked as numbers and was never materialised")
        else:
            raise InternalError(f"{v!r} is read, but nothing in the graph computes it")

    # -- origins and guards ------------------------------------------------------------------

    def origin(self, o: Origin | None) -> int:
        return -1 if o is None else self.origins.setdefault(o, len(self.origins))

    @staticmethod
    def origin_struct(o: Origin) -> Any:
        return _struct("Origin", name=o.name, op=o.op, domain=o.domain, opset=o.opset, also=o.also)

    def guard(self, g: Guard) -> Any:
        return _struct("Guard", condition=self.exprs.id(g.condition), message=g.message,
                       origin=self.origin(g.origin), assumption=g.assumption or "")

    # -- stages ------------------------------------------------------------------------------

    def stage(self, stage: Stage) -> Any:
        if isinstance(stage, list):
            return _struct("Segment", nodes=[self.node(n) for n in stage])
        writers = {If: self.branch, Loop: self.loop, Scan: self.scan, SequenceOp: self.sequence,
                   Host: self.host_call}
        made = writers[type(stage.prim)](stage)
        made.outputs = self.values_of(stage.outputs)
        made.origin = self.origin(stage.origin)
        return made

    def child(self, graph: Graph) -> Any:
        return _Emitter(graph, self.strings, self.host).program()

    def branch(self, node: Node) -> Any:
        prim = node.prim
        condition, *captures = self.values_of(node.inputs)
        return _struct("If", condition=condition, captures=captures,
                       then_program=self.child(prim.then_graph),
                       else_program=self.child(prim.else_graph))

    def loop(self, node: Node) -> Any:
        prim = node.prim
        trip_count, condition, *rest = self.values_of(node.inputs)
        return _struct("Loop", trip_count=trip_count, condition=condition,
                       carried=rest[:prim.carried], captures=rest[prim.carried:],
                       scans=prim.scans, body=self.child(prim.body))

    def scan(self, node: Node) -> Any:
        prim = node.prim
        ids = self.values_of(node.inputs)
        scanned = prim.states + prim.scan_inputs
        return _struct("Scan", states=ids[:prim.states], scan_inputs=ids[prim.states:scanned],
                       captures=ids[scanned:], input_axes=prim.input_axes,
                       output_axes=prim.output_axes, input_reverse=prim.input_reverse,
                       output_reverse=prim.output_reverse, body=self.child(prim.body))

    def sequence(self, node: Node) -> Any:
        return _struct("SequenceOp", inputs=self.values_of(node.inputs),
                       **{f.name: getattr(node.prim, f.name) for f in fields(node.prim)})

    def host_call(self, node: Node) -> Any:
        name, origin = node.prim.function, node.origin
        if self.host is None:
            raise InternalError(f"no host functions were given, but {name!r} is called")
        try:
            function = self.host(node.prim)
        except Error as error:
            raise error.at(node=origin.name, op=origin.op)
        return _struct("Host", function=name, callable=_at(function, origin),
                       inputs=self.values_of(node.inputs))

    # -- primitives --------------------------------------------------------------------------

    def node(self, node: Node) -> Any:
        inputs, outputs = self.values_of(node.inputs), self.values_of(node.outputs)
        places = slots(node.prim)
        # Kernels find every operand at its fixed position.
        inputs += [-1] * (places.inputs - len(inputs))
        outputs += [-1] * (places.outputs - len(outputs))
        return _struct("Node", prim=self.prim(node.prim), inputs=inputs, outputs=outputs,
                       origin=self.origin(node.origin))

    def prim(self, x: Any) -> Any:
        """The C++ twin of a dataclass of ir/prims.py: every field by its name."""
        kind = type(x)
        made = getattr(_core.prims, kind.__name__)()
        may_be = kind is not RegionOp or x.op == "dim"
        for name, symbolic in _fields_of(kind):
            setattr(made, name, self.field(getattr(x, name), symbolic and may_be))
        return made

    def field(self, x: Any, symbolic: bool) -> Any:
        kind = type(x)
        if kind is tuple:
            return [self.field(item, symbolic) for item in x]
        if kind is int or kind is Expr:
            return self.exprs.id(x) if symbolic else x
        if hasattr(kind, "__dataclass_fields__"):
            return self.prim(x)
        return self.exprs.id(x) if symbolic else x


@cache
def _fields_of(kind: type) -> list[tuple[str, bool]]:
    """Names of a dataclass's fields; an annotation is text, Dim in it says: holds expressions."""
    return [(f.name, "Dim" in f.type) for f in fields(kind)]


def _at(function: Callable, origin: Origin) -> Callable:
    """The function with its rlx errors naming the ONNX node."""

    def called(*arrays: Any) -> Any:
        try:
            return function(*arrays)
        except Error as error:
            raise error.at(node=origin.name, op=origin.op, domain=origin.domain,
                           opset=origin.opset)

    return called


def _struct(name: str, /, **given: Any) -> Any:
    """A struct of _core.program with its fields set."""
    made = getattr(_core.program, name)()
    for field, value in given.items():
        setattr(made, field, value)
    return made


def _kind_and_dtype(type: Type) -> tuple[str, Any]:
    """The kind of a value, and the element type of the tensors inside it."""
    if isinstance(type, OptionalType):
        return "optional", type.element.dtype
    return "sequence" if isinstance(type, SequenceType) else "tensor", type.dtype
