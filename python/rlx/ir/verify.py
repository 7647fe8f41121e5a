"""Checks a Graph between passes: definitions, types, numbers, aliases, child graphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rlx.errors import InternalError
from rlx.ir.expr import Expr, Number, as_int, is_float, product, symbols_of
from rlx.ir.graph import Alias, Graph, If, Loop, Node, Scan, SequenceOp, STAGES, Value
from rlx.ir.prims import PRIMS
from rlx.ir.types import DType, OptionalType, SequenceType, TensorType
from rlx.ir.verify_prims import verify_prim
from rlx.ir.verify_region import require


def verify(graph: Graph) -> None:
    """Raises InternalError naming the node where the graph contradicts itself."""
    _Verifier(graph).run()


class _Verifier:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.defined: set[int] = set()

    def run(self) -> None:
        for v in self.graph.inputs:
            self.define(v)
            require(not v.is_const, f"{v!r} is an input and a constant")
        for v in self.graph.inputs:
            self.value_type(v)
        for node in self.graph.nodes:
            try:
                self.node(node)
            except InternalError as error:
                raise error.at(node=node.origin.name or None, op=node.origin.op or None)
        for v in self.graph.outputs:
            self.use(v)
        for guard in self.graph.guards:
            self.numbers((guard.condition,), f"the guard {guard.message!r}")
        self.interface()

    # -- values ------------------------------------------------------------------------------

    def define(self, v: Value) -> None:
        require(v.id not in self.defined, f"{v!r} is defined twice")
        self.defined.add(v.id)

    def use(self, v: Value) -> None:
        if v.id in self.defined:
            return
        require(v.is_const or v.exprs is None,
                f"{v!r} is tracked as numbers and was never materialised")
        require(v.is_const, f"{v!r} is read before it is defined")
        self.value_type(v)

    def value_type(self, v: Value) -> None:
        if not isinstance(v.type, TensorType):
            require(isinstance(v.type, (SequenceType, OptionalType)), f"{v!r} has no type")
            require(v.const is None and v.exprs is None, f"{v!r} is no tensor but has elements")
            return
        require(isinstance(v.dtype, DType), f"{v!r} has no element type")
        for d in v.shape:
            require(isinstance(d, (int, Expr)) and not is_float(d), f"{v!r} has the dim {d!r}")
            require(isinstance(d, Expr) or d >= 0, f"{v!r} has a negative dim")
        self.numbers(v.shape, repr(v))
        static = v.type.static_shape()
        if v.is_const:
            require(v.const.shape == static, f"{v!r} holds an array of shape {v.const.shape}")
            require(v.const.dtype == v.dtype.numpy, f"{v!r} holds {v.const.dtype}")
        if v.exprs is not None:
            require(static is not None, f"{v!r} is tracked but its shape is not known")
            require(len(v.exprs) == product(static), f"{v!r} tracks {len(v.exprs)} elements")

    def numbers(self, numbers: Iterable[Number], what: str) -> None:
        """Each symbol must be of a value that is there by now."""
        for x in numbers:
            for s in symbols_of(x):
                require(s.value.id in self.defined or s.value.is_const,
                        f"{what} depends on {s}, of a value that is not defined by then")

    # -- nodes -------------------------------------------------------------------------------

    def node(self, node: Node) -> None:
        for v in node.inputs:
            if v is not None:
                self.use(v)
        self.numbers(node.numbers(), type(node.prim).__name__)
        for v in node.outputs:
            if v is not None:
                require(v.producer is node, f"{v!r} names another producer")
                require(not v.is_const, f"{v!r} is computed and a constant")
                self.define(v)
        for v in node.outputs:
            if v is not None:
                self.value_type(v)
        self.bounds(node)
        if isinstance(node.prim, Alias):
            _verify_alias(node)
        elif isinstance(node.prim, STAGES):
            _verify_stage(node)
        else:
            require(isinstance(node.prim, PRIMS), f"{node.prim!r} is no primitive")
            verify_prim(node.prim, node.inputs, node.outputs)

    def bounds(self, node: Node) -> None:
        """A dim that a primitive computes itself must be planned by a bound known before."""
        if isinstance(node.prim, STAGES):
            return
        own = {v.id for v in node.outputs if v is not None}
        for s in _symbols_of_types(node.outputs):
            if s.value.id in own:
                require(s.upper is not None, f"{s} has no upper bound")
                require(all(u.value.id not in own for u in symbols_of(s.upper)),
                        f"the bound of {s} depends on the node's own result")

    def interface(self) -> None:
        names = self.graph.output_names
        require(not names or len(names) == len(self.graph.outputs),
                "outputs and their names differ in number")
        for i, o, axis in self.graph.states:
            require(i < len(self.graph.inputs) and o < len(self.graph.outputs),
                    "a state pairs an input or output that is not there")
            past, present = self.graph.inputs[i], self.graph.outputs[o]
            require(past.dtype is present.dtype and past.rank == present.rank > axis >= 0,
                    f"the state {past!r} -> {present!r} does not fit together")


def _symbols_of_types(values: Iterable[Value | None]) -> Iterator:
    for v in values:
        if v is not None and isinstance(v.type, TensorType):
            for d in v.shape:
                yield from symbols_of(d)


def _verify_alias(node: Node) -> None:
    require(len(node.inputs) == len(node.outputs) == 1, "an alias has one input and one output")
    x, y = node.inputs[0], node.outputs[0]
    require(isinstance(x.type, TensorType) and isinstance(y.type, TensorType),
            "an alias is of a tensor")
    require(x.dtype is y.dtype, f"the alias {y!r} of {x!r} has another element type")
    counts = as_int(product(x.shape)), as_int(product(y.shape))
    require(None in counts or counts[0] == counts[1],
            f"the alias {y!r} of {x!r} has another number of elements")


def _verify_stage(node: Node) -> None:
    prim, inputs, outputs = node.prim, node.inputs, node.outputs
    if isinstance(prim, If):
        require(len(inputs) > 0 and inputs[0] is not None, "If has no condition")
        for branch in (prim.then_graph, prim.else_graph):
            _verify_child(branch, inputs[1:], outputs)
    elif isinstance(prim, Loop):
        carried = inputs[2:2 + prim.carried]
        require(len(carried) == prim.carried, "a carried value is missing")
        require(len(outputs) == prim.carried + prim.scans, "a Loop has the wrong outputs")
        # The iteration number and the condition come from the executor.
        body = prim.body
        require(len(body.inputs) >= 2 and len(body.outputs) >= 1, "a Loop body is too small")
        own = [body.inputs[0], body.inputs[1]]
        _verify_child(body, [*own, *inputs[2:]], [body.outputs[0], *outputs], prim.scans)
    elif isinstance(prim, Scan):
        sliced = range(prim.states, prim.states + prim.scan_inputs)
        require(len(prim.input_axes) == len(prim.input_reverse) == prim.scan_inputs
                and len(prim.output_axes) == len(prim.output_reverse)
                == len(outputs) - prim.states, "the axes of a Scan do not fit its values")
        _verify_child(prim.body, inputs, outputs, len(outputs) - prim.states, sliced)
    elif isinstance(prim, SequenceOp):
        require(len(outputs) == 1 and outputs[0] is not None, "a sequence op gives one value")


def _verify_child(graph: Graph, inputs: list, outputs: list, stacked: int = 0,
                  sliced: Iterable[int] = ()) -> None:
    """A child graph takes and gives what its stage passes: the last `stacked` outputs have one
    axis more outside, as have the inputs at the positions `sliced`."""
    verify(graph)
    require(len(graph.inputs) == len(inputs), "a child graph takes another number of values")
    require(len(graph.outputs) == len(outputs), "a child graph gives another number of values")
    first_stacked = len(outputs) - stacked
    for k, (outer, inner) in enumerate(zip(inputs, graph.inputs)):
        _same_form(outer, inner, k in sliced)
    for k, (outer, inner) in enumerate(zip(outputs, graph.outputs)):
        _same_form(outer, inner, k >= first_stacked)


def _same_form(outer: Value | None, inner: Value, extra_axis: bool) -> None:
    require(outer is not None, "an absent value is passed to or from a child graph")
    require(type(outer.type) is type(inner.type), f"{outer!r} is {inner!r} in a child graph")
    if isinstance(outer.type, TensorType):
        require(outer.dtype is inner.dtype and outer.rank == inner.rank + extra_axis,
                f"{outer!r} is {inner!r} in a child graph")
