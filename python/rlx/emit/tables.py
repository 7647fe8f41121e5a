"""The tables of a Program while it is written: expressions, symbols, constants, strings."""

from __future__ import annotations

import hashlib
import math
import struct
from typing import Any, Callable

import numpy as np

from rlx import _core
from rlx.ir.expr import Expr, Number, Symbol
from rlx.ir.graph import Value
from rlx.ir.types import DType

_INT64 = (-(2**63), 2**63 - 1)
# A weight in a mapped file lies at any address. Small ones are copied to an aligned one, as all
# kernels may read them; what reads a large one packs or copies it and takes any address.
_ALIGN_BELOW = 64 << 10


class ExprTable:
    """Exprs as rows in SSA order: equal Exprs are one object, so each gets one row."""

    def __init__(self, value_id: Callable[[Value], int]):
        self.rows: list[Any] = []
        self.symbols: list[Any] = []
        self._value_id = value_id
        self._ids: dict[Any, int] = {}
        self._symbol_ids: dict[Symbol, int] = {}
        self._capacities: list[tuple[Any, Number]] = []

    def id(self, x: Number) -> int:
        """The row of a number; its arguments' rows are made before it."""
        found = self._rows_of(x)
        while self._capacities:  # later: a capacity depends on its own symbol
            symbol, capacity = self._capacities.pop()
            symbol.capacity = self._rows_of(capacity)
        return found

    def _rows_of(self, x: Number) -> int:
        known = self._ids.get(self._key(x))
        if known is not None:
            return known
        stack = [x]
        while stack:
            top = stack[-1]
            if self._key(top) in self._ids:
                stack.pop()
                continue
            missing = [a for a in self._arguments(top) if self._key(a) not in self._ids]
            if missing:
                stack.extend(missing)
            else:
                stack.pop()
                self._ids[self._key(top)] = self._add(top)
        return self._ids[self._key(x)]

    @staticmethod
    def _key(x: Number):
        if isinstance(x, Expr):
            return x
        return struct.pack("<d", x) if isinstance(x, float) else int(x)  # -0.0 is not 0.0

    @staticmethod
    def _arguments(x: Number) -> tuple[Number, ...]:
        return x.args if isinstance(x, Expr) and x.op != "symbol" else ()

    def _add(self, x: Number) -> int:
        if isinstance(x, float):
            row = _core.program.ExprRow("const_float", True, (), f=float(x))
        elif not isinstance(x, Expr):
            # Python's integers have no bound; the nearest int64 keeps every comparison.
            row = _core.program.ExprRow("const_int", False, (), i=min(max(int(x), _INT64[0]),
                                                                      _INT64[1]))
        elif x.op == "symbol":
            row = _core.program.ExprRow("symbol", x.is_float, (), i=self._symbol(x.args[0]))
        else:
            arguments = tuple(self._ids[self._key(a)] for a in x.args)
            row = _core.program.ExprRow(x.op, x.is_float, arguments)
        self.rows.append(row)
        return len(self.rows) - 1

    def _symbol(self, s: Symbol) -> int:
        if s not in self._symbol_ids:
            made = _core.program.Symbol()
            made.kind, made.index, made.is_float = s.kind, s.index, s.is_float
            made.value = self._value_id(s.value)
            made.name = s.name or ""
            if s.upper is not None:
                made.upper = self.id(s.upper)
            if s.capacity is not None:
                self._capacities.append((made, s.capacity))
            self._symbol_ids[s] = len(self.symbols)
            self.symbols.append(made)
        return self._symbol_ids[s]


class Strings:
    """Strings by number, for string constants; one numbering for a program and its children."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def array(self, strings: np.ndarray) -> np.ndarray:
        """The ids of an array of strings."""
        flat = [self.ids.setdefault(str(s), len(self.ids)) for s in strings.reshape(-1)]
        return np.array(flat, np.int64).reshape(strings.shape)


class Constants:
    """The bytes of constant values; equal ones once."""

    def __init__(self, strings: Strings):
        self.made: list[Any] = []
        self._strings = strings
        self._ids: dict[str, int] = {}

    def id(self, value: Value) -> int:
        """The index of a constant value's bytes."""
        array = value.const
        if value.dtype is DType.STRING:
            array = self._strings.array(array)
        weight, source = value.weight, None
        if weight is not None and _same_bytes(array, weight.data):
            source = weight.source
        array = _readable(array)
        if source is None:
            source = f"{value.dtype.name.lower()}:{_digest(array)}"
        if source not in self._ids:
            self._ids[source] = len(self.made)
            mapped = weight is not None and weight.mapped and _same_bytes(array, weight.data)
            self.made.append(_core.program.Constant(array, source, droppable=mapped))
        return self._ids[source]


def _same_bytes(array: np.ndarray, data: np.ndarray) -> bool:
    """Whether the array is all of data, in its order: a view of a part or a transpose is not."""
    return (array.flags.c_contiguous and array.nbytes == data.nbytes
            and array.ctypes.data == data.ctypes.data)


def _readable(array: np.ndarray) -> np.ndarray:
    """The array, C-contiguous, and aligned unless it is large."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    if array.flags.aligned or array.nbytes >= _ALIGN_BELOW:
        return array
    return array.copy()


def _digest(array: np.ndarray) -> str:
    # A byte view: the element types of ml_dtypes have no buffer protocol.
    flat = array.reshape(-1).view(np.uint8) if math.prod(array.shape) else b""
    return hashlib.blake2b(flat, digest_size=16).hexdigest()
