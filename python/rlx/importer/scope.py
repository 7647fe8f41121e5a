"""Names and captures: what a (sub)graph sees, and how outer values become its inputs."""

from __future__ import annotations

import numpy as np

from rlx.errors import ModelError
from rlx.ir.expr import Expr, Number, substitute, symbols_of
from rlx.ir.graph import Value
from rlx.ir.types import TensorType, Type


class Scope:
    """Values by name. A child scope that shares its parent's builder only adds names; one with a
    graph of its own captures outer values as extra inputs of that graph."""

    def __init__(self, parent: Scope | None = None, *, own_graph: bool = True):
        self.parent, self.own_graph = parent, own_graph
        self.values: dict[str, Value | None] = {}
        self.captures: dict[int, tuple[Value, Value]] = {}  # outer id -> (outer, inner)
        self._dims: dict[Expr, Expr] = {}                   # outer expression -> inner symbol

    def set(self, name: str, value: Value | None) -> None:
        self.values[name] = value

    def get(self, name: str) -> Value | None:
        """The value of a name; captured when it lives in an outer graph."""
        if name in self.values:
            return self.values[name]
        if self.parent is None:
            raise ModelError(f"the value {name!r} is not defined")
        outer = self.parent.get(name)
        return outer if not self.own_graph or outer is None else self.capture(outer)

    def capture(self, outer: Value) -> Value:
        """The inner stand-in of an outer value; constants are shared as they are."""
        if outer.is_const:
            return outer
        if outer.exprs is not None and not any(isinstance(n, Expr) for n in outer.exprs):
            array = np.array(outer.exprs, outer.dtype.numpy).reshape(outer.type.static_shape())
            return Value(outer.type, outer.name, const=array)
        if outer.id not in self.captures:
            inner = Value(outer.type, outer.name)
            inner.type = self.rebase(outer.type, inner)
            self.captures[outer.id] = (outer, inner)
        return self.captures[outer.id][1]

    def rebase(self, type: Type, inner: Value) -> Type:
        """type with the outer graph's dims as symbols of the inner graph."""
        if not isinstance(type, TensorType):
            return type
        dims = tuple(self._rebase_dim(d, inner, k) for k, d in enumerate(type.shape))
        return TensorType(type.dtype, dims)

    def _rebase_dim(self, dim: Number, inner: Value, axis: int) -> Number:
        if not isinstance(dim, Expr):
            return dim
        if dim not in self._dims:
            name = dim.args[0].name if dim.op == "symbol" else None
            self._dims[dim] = inner.dim(axis, name)
        return self._dims[dim]

    def outside(self, dim: Number) -> Number | None:
        """An inner dim in the outer graph's terms, or None when it depends on more."""
        if not isinstance(dim, Expr):
            return dim
        back = {inner.args[0]: outer for outer, inner in self._dims.items()}
        if any(s not in back for s in symbols_of(dim)):
            return None
        return substitute(dim, back.get)
