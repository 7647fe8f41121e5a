"""Evaluates primitives on NumPy arrays: what folding uses, and the tests' float64 reference."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlx.errors import InputError, UnsupportedError
from rlx.ir.expr import Expr, Symbol, evaluate, symbols_of
from rlx.ir.graph import Alias, Graph, Guard, Node, Value
from rlx.ir.reference import REFERENCES
from rlx.ir.reference.stages import STAGE_REFERENCES
from rlx.ir.types import DType, TensorType


class AssumptionFailed(InputError):
    """A guard with an assumption does not hold: import again with its name denied."""

    def __init__(self, message: str, assumption: str):
        super().__init__(message)
        self.assumption = assumption


class _Symbolic(Exception):
    """A field of the primitive is known only when bound."""


def _constant(number):
    if isinstance(number, Expr):
        raise _Symbolic
    return number


def reference(prim, inputs, types):
    """The outputs of one primitive on constant arrays, or None when it has no static answer.

    Integers are computed exactly; floats in float64, rounded once to each output's type.
    """
    compute = REFERENCES.get(type(prim))
    if compute is None:
        return None
    try:
        return compute(prim, inputs, types, _constant)
    except (_Symbolic, InputError):
        return None  # wrong data, as an index out of range, is told by the run that meets it


def evaluate_graph(graph: Graph, inputs: dict[str, Any], double: bool = False) -> dict[str, Any]:
    """Runs a Graph node by node with the references: output name -> array.

    double keeps every float tensor in float64, which makes the result the truth that a model's
    run is compared with. Sequences are lists. Not for speed; used by folding and tests.
    """
    values = Evaluator(double).graph(graph, [inputs[v.name] for v in graph.inputs])
    names = graph.output_names or [v.name for v in graph.outputs]
    return dict(zip(names, values))


class Evaluator:
    """Runs graphs node by node; subclasses look at, or replace, what single nodes give."""

    def __init__(self, double: bool):
        self.double = double

    def graph(self, graph: Graph, arrays: list) -> list:
        env: dict[int, Any] = {}
        for v, x in zip(graph.inputs, arrays):
            env[v.id] = self.enter(v, x)

        def known(symbol: Symbol):
            x = np.asarray(self.value(env, symbol.value))
            if symbol.kind == "dim":
                return x.shape[symbol.index]
            return x.reshape(-1)[symbol.index].item()

        def number(n):
            return evaluate(n, known)

        for guard in graph.guards:
            if not any(s.value.id not in env for s in symbols_of(guard.condition)):
                if not number(guard.condition):
                    _refuse(guard)
        for node in graph.nodes:
            self.node(node, env, number)
        return [self.value(env, v) for v in graph.outputs]

    def enter(self, v: Value, x):
        if self.double and isinstance(v.type, TensorType) and v.dtype.is_float:
            return np.asarray(x).astype(np.float64)
        return x

    def value(self, env: dict[int, Any], v: Value | None):
        if v is None:
            return None
        if v.id not in env and v.is_const:
            env[v.id] = self.enter(v, v.const)
        return env.get(v.id)

    def node(self, node: Node, env: dict[int, Any], number) -> None:
        inputs = [self.value(env, v) for v in node.inputs]
        if type(node.prim) in STAGE_REFERENCES:
            results = STAGE_REFERENCES[type(node.prim)](self, node.prim, inputs)
        elif isinstance(node.prim, Alias):
            results = [inputs[0].reshape([number(d) for d in node.outputs[0].shape])]
        else:
            results = self.primitive(node, inputs, number)
        for v, x in zip(node.outputs, results):
            if v is not None:
                env[v.id] = x

    def primitive(self, node: Node, inputs: list, number) -> list:
        types = []
        for v in node.outputs:
            if v is None:
                types.append(None)
                continue
            wide = self.double and v.dtype.is_float
            # A count that this node itself finds is not known yet.
            shape = tuple(-1 if any(s.value in node.outputs for s in symbols_of(d)) else number(d)
                          for d in v.shape)
            types.append(TensorType(DType.FLOAT64 if wide else v.dtype, shape))
        compute = REFERENCES.get(type(node.prim))
        if compute is None:
            raise UnsupportedError("this primitive has no reference", node=node.origin.name,
                                   op=node.origin.op, got=type(node.prim).__name__)
        return compute(node.prim, inputs, types, number)


def _refuse(guard: Guard) -> None:
    if guard.assumption is not None:
        raise AssumptionFailed(guard.message, guard.assumption)
    raise InputError(guard.message)
