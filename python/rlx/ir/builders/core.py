"""What every builder method stands on: nodes, constants, numbers, guards, specialisation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager

import numpy as np

from rlx.errors import ModelError
from rlx.ir import evaluate
from rlx.ir.expr import (
    Expr, Number, Symbol, apply, as_int, product, substitute, symbol, symbols_of,
)
from rlx.ir.graph import Graph, Guard, Node, Origin, Value
from rlx.ir.prims import Region, RegionOp
from rlx.ir.types import HALVES, DType, TensorType, dtype_of

TRACKED_TYPES = frozenset({DType.INT64, DType.INT32, DType.BOOL, DType.FLOAT32, DType.FLOAT64})
TRACKED_LIMIT = 64        # elements a tensor may have to be tracked as numbers
INPUT_LIMIT = 16          # elements that an integer input may have to be tracked unasked
FOLD_LIMIT = 1 << 14      # elements a constant result may have to be computed while importing


class Specialise(Exception):
    """The import needs a concrete fact of the run: the Session imports again with it fixed.

    kind "value": the elements of `value`; "shape": its dims; "rank": its rank (of a sequence:
    its elements'); "presence": whether an optional input is given.
    """

    def __init__(self, kind: str, value: Value, why: str):
        super().__init__(f"{kind} of {value.name!r} is needed: {why}")
        self.kind, self.value, self.why = kind, value, why


class CoreBuilder:
    """Appends typed nodes to a Graph; `origin` is the ONNX node they come from."""

    def __init__(self, graph: Graph | None = None, *, fixed: dict | None = None,
                 denied: frozenset[str] = frozenset()):
        self.graph = graph if graph is not None else Graph()
        self.fixed = fixed if fixed is not None else {}  # value name -> np.ndarray known to hold
        self.denied = denied                             # assumptions that failed before
        self.origin = Origin("", "")
        self._constants: dict = {}

    @contextmanager
    def at(self, origin: Origin):
        """Nodes made inside come from `origin`."""
        before, self.origin = self.origin, origin
        try:
            yield
        finally:
            self.origin = before

    # -- constants and numbers ---------------------------------------------------------------

    def const(self, data, dtype: DType | None = None, name: str = "") -> Value:
        """A constant tensor from array-like data; small equal ones are one value."""
        array = np.asarray(data, None if dtype is None else dtype.numpy)
        dtype = dtype if dtype is not None else dtype_of(array.dtype)
        key = None
        if array.size <= TRACKED_LIMIT and not name and array.dtype != object:
            key = (dtype, array.shape, array.tobytes())
            if key in self._constants:
                return self._constants[key]
        value = Value(TensorType(dtype, array.shape), name, const=array)
        if key:
            self._constants[key] = value
        return value

    def from_numbers(self, numbers, dtype: DType, shape: tuple[int, ...] | None = None) -> Value:
        """A tracked tensor of the given elements; constant when all of them are."""
        numbers = tuple(numbers)
        shape = (len(numbers),) if shape is None else tuple(shape)
        if not any(isinstance(n, Expr) for n in numbers):
            return self.const(np.array(numbers, dtype.numpy).reshape(shape), dtype)
        return Value(TensorType(dtype, shape), exprs=numbers)

    def tracked(self, numbers, dtype: DType, shape: tuple[int, ...],
                compute: Callable[[], Value]) -> Value:
        """A tensor of the given elements. Where they are elements of other tensors, compute()
        makes it by a node, and the numbers stand by: only what asks for them reads tensors."""
        numbers = tuple(numbers)
        if not any(s.kind == "element" for n in numbers for s in symbols_of(n)):
            return self.from_numbers(numbers, dtype, shape)
        made = compute()
        if not made.is_const and made.exprs is None:
            made.exprs = numbers
        return made

    def numbers_or_none(self, x: Value) -> tuple[Number, ...] | None:
        """The elements of x as numbers when they are known without reading a computed value."""
        if x.exprs is not None:
            return x.exprs
        if not isinstance(x.type, TensorType) or x.dtype not in TRACKED_TYPES:
            return None
        if x.is_const:
            if x.const.size > TRACKED_LIMIT:
                return None
            convert = float if x.dtype.is_float else int
            return tuple(convert(v) for v in x.const.reshape(-1))
        # Of inputs only what looks like a shape: arithmetic on data stays with the kernels.
        static = x.type.static_shape()
        if x.producer is None and static is not None and x.rank <= 1 and not x.dtype.is_float \
                and np.prod(static) <= INPUT_LIMIT:
            return self._element_symbols(x, int(np.prod(static)))
        return None

    def numbers(self, x: Value, why: str = "its elements size or place something") -> tuple:
        """The elements of x as numbers: constants, tracked, or symbols read when bound.

        A computed x gives runtime symbols, which end the segment after its producer.
        """
        known = self.numbers_or_none(x)
        if known is not None:
            return known
        if x.is_const:
            return tuple(x.const.reshape(-1).tolist())
        count = as_int(product(x.shape))
        if count is None:
            raise Specialise("shape", x, why)
        return self._element_symbols(x, count)

    def number(self, x: Value, why: str = "it sizes or places something") -> Number:
        """The only element of x (a scalar or one-element tensor) as a number."""
        found = self.numbers(x, why)
        if len(found) != 1:
            raise ModelError("one element is needed here", expected="1 element", got=str(x.type))
        return found[0]

    def structural(self, x: Value, why: str) -> tuple[int, ...]:
        """The elements of x as Python ints, because they decide the form of the program."""
        if x.is_const:
            return tuple(int(v) for v in x.const.reshape(-1))
        if x.name in self.fixed:
            return tuple(int(v) for v in np.asarray(self.fixed[x.name]).reshape(-1))
        if x.exprs is not None:
            if not any(isinstance(n, Expr) for n in x.exprs):
                return tuple(int(n) for n in x.exprs)
            for s in sorted(set().union(*map(symbols_of, x.exprs)), key=lambda s: s.value.id):
                raise Specialise("value" if s.kind == "element" else "shape", s.value, why)
        raise Specialise("value", x, why)

    def structural_one(self, x: Value, why: str) -> int:
        """The only element of x as a Python int, because it decides the form of the program."""
        found = self.structural(x, why)
        if len(found) != 1:
            raise ModelError("one element is needed here", expected="1 element", got=str(x.type))
        return found[0]

    def has_rank(self, x: Value, rank: int, what: str) -> None:
        """ModelError unless x has so many axes."""
        if x.rank != rank:
            raise ModelError(f"{what} has another rank", expected=f"rank {rank}",
                             got=str(x.type)).at(node=self.origin.name, op=self.origin.op)

    def _element_symbols(self, x: Value, count: int) -> tuple[Number, ...]:
        floating = x.dtype.is_float
        if x.exprs is None:
            x.exprs = tuple(symbol(Symbol("element", x, i, is_float=floating,
                                          name=f"{x.name or x.id}[{i}]")) for i in range(count))
        return x.exprs

    # -- nodes -------------------------------------------------------------------------------

    def node(self, prim, inputs, types) -> list[Value]:
        """Appends a node and gives its outputs; small constant results are computed now."""
        present = [v for v in inputs if v is not None]
        if present and all(v.is_const for v in present):
            folded = self._fold(prim, inputs, types)
            if folded is not None:
                return folded
        for v in present:
            self.materialise(v)
        outputs = [None if t is None else Value(t) for t in types]
        self.graph.nodes.append(Node(prim, list(inputs), list(outputs), self.origin))
        return outputs

    def _fold(self, prim, inputs, types) -> list[Value] | None:
        static = [None if t is None else t.static_shape() for t in types]
        if any(t is not None and s is None for t, s in zip(types, static)):
            return None
        if sum(int(np.prod(s)) for s in static if s is not None) > FOLD_LIMIT:
            return None
        if sum(v.const.size for v in inputs if v is not None) > FOLD_LIMIT:
            return None
        # A half matrix that is widened: a product may read it as it is (passes/precision).
        if any(v is not None and v.dtype in HALVES and v.rank > 1 for v in inputs):
            if all(t is None or t.dtype is DType.FLOAT32 for t in types):
                return None
        arrays = evaluate.reference(prim, [v and v.const for v in inputs], types)
        if arrays is None:
            return None
        return [None if t is None else self.const(a, t.dtype) for a, t in zip(arrays, types)]

    def materialise(self, v: Value) -> Value:
        """Makes a tracked value that nothing computes yet the output of a Region of dims."""
        if v.producer is not None or v.is_const or v.exprs is None or v in self.graph.inputs:
            return v
        elements = v.exprs
        if any(s.value is v for s in symbols_of(elements[0] if elements else 0)):
            return v  # its own elements as symbols: it exists, captured from an outer graph
        ops = [RegionOp("dim", v.dtype, imm=e) for e in elements]
        if len(elements) > 1:
            flat = self._flat_index(ops, v.shape)
            result = 0
            for i in range(1, len(elements)):
                ops.append(RegionOp("const", DType.INT64, imm=i))
                ops.append(RegionOp("eq", DType.BOOL, (flat, len(ops) - 1)))
                ops.append(RegionOp("select", v.dtype, (len(ops) - 1, i, result)))
                result = len(ops) - 1
        prim = Region(v.shape, (), tuple(ops), (len(ops) - 1,))
        self.graph.nodes.append(Node(prim, [], [v], self.origin))
        return v

    @staticmethod
    def _flat_index(ops: list[RegionOp], shape) -> int:
        ops.append(RegionOp("index", DType.INT64, (0,)))
        flat = len(ops) - 1
        for axis in range(1, len(shape)):
            ops.append(RegionOp("const", DType.INT64, imm=shape[axis]))
            ops.append(RegionOp("mul", DType.INT64, (flat, len(ops) - 1)))
            ops.append(RegionOp("index", DType.INT64, (axis,)))
            ops.append(RegionOp("add", DType.INT64, (len(ops) - 2, len(ops) - 1)))
            flat = len(ops) - 1
        return flat

    # -- guards and shapes -------------------------------------------------------------------

    def guard(self, condition: Number, message: str, assumption: str | None = None) -> None:
        """`condition` must be non-zero when bound; a constant one is checked now."""
        if not isinstance(condition, Expr):
            if not condition:
                raise ModelError(message).at(node=self.origin.name, op=self.origin.op)
            return
        self.graph.guards.append(Guard(condition, message, self.origin, assumption))

    def assume(self, condition: Number, name: str, message: str) -> bool:
        """True when `condition` may be taken to hold (guarded); False once it was denied."""
        if not isinstance(condition, Expr):
            return bool(condition)
        if name in self.denied:
            return False
        self.guard(condition, message, name)
        return True

    def grows_as(self, x: Number, whole: Number) -> None:
        """x, assumed equal to `whole`, is planned at the capacity that whole has."""
        if isinstance(x, Expr) and x.op == "symbol" and x.args[0].capacity is None:
            planned = substitute(whole, lambda s: s.capacity)
            if planned is not whole:
                x.args[0].capacity = planned

    def same_dim(self, a: Number, b: Number, what: str) -> Number:
        """The dim that a and b must both be; prefers the static one."""
        self.guard(apply("eq", a, b), f"{what}: {a} and {b} must be equal")
        return b if not isinstance(b, Expr) else a

    def broadcast(self, *shapes) -> tuple[Number, ...]:
        """The NumPy broadcast of shapes, guarded where a dim is symbolic."""
        rank = max(len(s) for s in shapes)
        result: list[Number] = [1] * rank
        for shape in shapes:
            for k, d in enumerate(shape, rank - len(shape)):
                result[k] = self._broadcast_dim(result[k], d, shapes)
        return tuple(result)

    def _broadcast_dim(self, a: Number, b: Number, shapes) -> Number:
        if a is b or a == b or as_int(b) == 1:
            return a
        if as_int(a) == 1:
            return b
        text = " and ".join(str(list(s)) for s in shapes)
        if isinstance(a, Expr) and isinstance(b, Expr):
            # Two symbolic dims are mostly the same number; saying so lets passes prove equality.
            name = f"broadcast:{self.origin.name}:{a}:{b}"
            if self.assume(apply("eq", a, b), name, f"shapes {text}: {a} and {b} are equal"):
                return a if a.op == "symbol" or b.op != "symbol" else b
        fits = apply("or", apply("eq", a, b), apply("or", apply("eq", a, 1), apply("eq", b, 1)))
        self.guard(fits, f"shapes {text} do not broadcast: {a} against {b}")
        return apply("bcast", a, b)

    def axis(self, axis: int, rank: int, what: str = "axis") -> int:
        """axis made non-negative; ModelError when out of range."""
        if not -rank <= axis < rank:
            raise ModelError(f"{what} is out of range", expected=f"in [-{rank}, {rank - 1}]",
                             got=axis).at(node=self.origin.name, op=self.origin.op)
        return axis + rank if axis < 0 else axis

    def axes(self, axes, rank: int) -> tuple[int, ...]:
        """axes made non-negative, sorted and unique."""
        found = tuple(sorted(self.axis(a, rank) for a in axes))
        if len(set(found)) != len(found):
            raise ModelError("axes repeat", got=tuple(axes)).at(
                node=self.origin.name, op=self.origin.op)
        return found
