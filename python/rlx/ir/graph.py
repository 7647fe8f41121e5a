"""The typed graph between importer and emit: values, nodes, stage nodes, guards."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlx.ir.expr import Expr, Number, Symbol, symbol
from rlx.ir.types import DType, OptionalType, SequenceType, TensorType, Type


@dataclass(frozen=True, slots=True)
class Origin:
    """The ONNX node(s) a graph node came from, for errors and explain()."""

    name: str
    op: str
    domain: str = ""
    opset: int = 0
    also: tuple[str, ...] = ()  # names of nodes fused into it

    def __str__(self) -> str:
        return f"{self.op} node {self.name!r}"


class Value:
    """One value: a tensor, sequence or optional.

    const: its NumPy array (maybe a mapped weight) when constant; `weight` keeps the reader's
    Weight behind it. exprs: its flat elements as numbers when tracked symbolically.
    """

    __slots__ = ("id", "type", "name", "const", "weight", "exprs", "producer")
    _ids = itertools.count()

    def __init__(self, type: Type, name: str = "", *, const: np.ndarray | None = None,
                 weight: Any = None, exprs: tuple[Number, ...] | None = None):
        self.id = next(Value._ids)
        self.type, self.name = type, name
        self.const, self.weight, self.exprs = const, weight, exprs
        self.producer: Node | None = None

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def shape(self) -> tuple[Number, ...]:
        return self.type.shape

    @property
    def rank(self) -> int:
        return len(self.type.shape)

    @property
    def is_const(self) -> bool:
        return self.const is not None

    def dim(self, axis: int, name: str | None = None) -> Expr:
        """A fresh symbol for an extent of this value known only when it exists."""
        return symbol(Symbol("dim", self, axis, name=name))

    def __repr__(self) -> str:
        return f"%{self.name or self.id}: {self.type}"


class Node:
    """A primitive (ir/prims.py), an alias or a stage node (below) applied to values."""

    __slots__ = ("prim", "inputs", "outputs", "origin", "_numbers")

    def __init__(self, prim, inputs: list[Value | None], outputs: list[Value | None],
                 origin: Origin):
        self.prim, self.inputs, self.outputs, self.origin = prim, inputs, outputs, origin
        self._numbers: tuple[Any, list[Expr]] = (None, [])
        for v in outputs:
            if v is not None:
                v.producer = self

    def numbers(self) -> list[Expr]:
        """The symbolic numbers in the primitive's fields; kept, since every pass asks for them."""
        if self._numbers[0] is not self.prim:
            # Loaded with the first model: the primitives would double the time of `import rlx`.
            from rlx.ir.slots import numbers_of
            self._numbers = self.prim, numbers_of(self.prim)
        return self._numbers[1]

    def __repr__(self) -> str:
        return f"{type(self.prim).__name__}({', '.join(map(repr, self.outputs))}) <- {self.inputs}"


@dataclass(frozen=True, slots=True)
class Alias:
    """x -> y: the same bytes under another shape (Reshape, Squeeze, Identity...)."""


@dataclass(frozen=True, slots=True)
class If:
    """cond, *captures -> outputs: runs one of two graphs; each takes the captures as its inputs.

    Tensor outputs whose dims differ or depend on the branch get fresh "dim" symbols.
    """

    then_graph: Graph
    else_graph: Graph


@dataclass(frozen=True, slots=True)
class Loop:
    """trip_count | None, cond | None, *carried, *captures -> *carried, *scans (ONNX Loop).

    body inputs: iteration number (int64 scalar), condition (bool scalar), carried, captures;
    body outputs: condition, carried, scan slices. Scans are stacked on a new leading axis.
    """

    body: Graph
    carried: int
    scans: int


@dataclass(frozen=True, slots=True)
class Scan:
    """*state, *scan_inputs, *captures -> *state, *scan_outputs (ONNX Scan, opset 9 on)."""

    body: Graph
    states: int
    scan_inputs: int
    input_axes: tuple[int, ...]
    input_reverse: tuple[bool, ...]
    output_axes: tuple[int, ...]
    output_reverse: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class SequenceOp:
    """Sequences in the executor.

    kinds: construct, empty, at, insert, erase, length, concat(axis, new_axis), split(axis,
    keepdims). `dtype` types an empty sequence.
    """

    kind: str
    axis: int = 0
    new_axis: bool = False
    keepdims: bool = True
    dtype: DType | None = None


@dataclass(frozen=True, slots=True)
class Host:
    """*inputs -> *outputs: a named host step of rlx/host (string functions, image decoding)."""

    function: str
    attributes: tuple[tuple[str, Any], ...] = ()


STAGES = (If, Loop, Scan, SequenceOp, Host)


@dataclass(slots=True)
class Guard:
    """Must be non-zero when bound. `assumption` (if any) is re-imported as false when it fails."""

    condition: Number
    message: str
    origin: Origin | None = None
    assumption: str | None = None


@dataclass(slots=True)
class Graph:
    """A program to be: nodes in topological order.

    `output_names` are the model's (one value may be several outputs); empty: the values' own.
    `states` pairs an input with the output that continues it, a growing past: (position among
    the inputs, position among the outputs, axis).
    """

    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    name: str = ""
    output_names: list[str] = field(default_factory=list)
    states: list[tuple[int, int, int]] = field(default_factory=list)

    def values(self) -> list[Value]:
        """Every value, inputs first, then constants where first used, then node outputs."""
        seen: dict[int, Value] = {v.id: v for v in self.inputs}
        for node in self.nodes:
            for v in (*node.inputs, *node.outputs):
                if v is not None:
                    seen.setdefault(v.id, v)
        for v in self.outputs:
            seen.setdefault(v.id, v)
        return list(seen.values())


def tensor(dtype: DType, shape, name: str = "") -> Value:
    """A value of tensor type."""
    return Value(TensorType(dtype, tuple(shape)), name)


__all__ = [
    "Alias", "Graph", "Guard", "Host", "If", "Loop", "Node", "OptionalType", "Origin", "STAGES",
    "Scan",
    "SequenceOp", "SequenceType", "TensorType", "Value", "tensor",
]
