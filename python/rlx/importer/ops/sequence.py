"""Sequences, kept by the executor, and optionals, which are decided while importing."""

from __future__ import annotations

from rlx.errors import ModelError, UnsupportedError
from rlx.importer.protos import TypeProto
from rlx.importer.registry import op
from rlx.importer.types import type_of
from rlx.ir.build import (
    DType, OptionalType, SequenceOp, SequenceType, Specialise, TensorType, Value,
)


def _stage(b, kind: str, inputs, type, **fields) -> Value:
    return b.stage(SequenceOp(kind, **fields), list(inputs), [Value(type)])[0]


def _joined_rank(sequence: SequenceType, x: Value) -> SequenceType:
    """The type after x is put into a sequence: its rank is known while all are equal."""
    if x.dtype is not sequence.dtype:
        raise ModelError("the elements of a sequence differ in element type",
                         expected=sequence.dtype.name.lower(), got=str(x.type))
    if sequence.mixed or sequence.rank not in (None, x.rank):
        return SequenceType(sequence.dtype, None, mixed=True)
    return SequenceType(sequence.dtype, x.rank)


def _items(sequence: Value) -> list[Value] | None:
    """The elements of a sequence that is put together from known ones, else None."""
    node = sequence.producer
    prim = None if node is None else node.prim
    if not isinstance(prim, SequenceOp):
        return None
    if prim.kind in ("construct", "empty"):
        return list(node.inputs)
    if prim.kind != "insert":
        return None
    items, place = _items(node.inputs[0]), node.inputs[2]
    at = None if items is None else len(items) if place is None else _place(place, len(items) + 1)
    return None if at is None else [*items[:at], node.inputs[1], *items[at:]]


def _place(position: Value, count: int) -> int | None:
    """A constant position among `count`, None for one that is not constant or out of range."""
    if not position.is_const or position.const.size != 1:
        return None
    at = int(position.const.reshape(())[()])
    return at % count if -count <= at < count else None


def _rank(sequence: Value) -> int:
    if sequence.type.mixed:
        raise UnsupportedError("the elements of the sequence differ in rank",
                               remedy="take them by constant positions")
    if sequence.type.rank is None:
        raise Specialise("rank", sequence, "the rank of a sequence's elements decides the program")
    return sequence.type.rank


@op("SequenceConstruct", since=11)
def sequence_construct(b, *xs):
    if not xs:
        raise ModelError("SequenceConstruct has no inputs", remedy="use SequenceEmpty")
    type = SequenceType(xs[0].dtype)
    for x in xs:
        type = _joined_rank(type, x)
    return _stage(b, "construct", xs, type, dtype=type.dtype)


@op("SequenceEmpty", since=11)
def sequence_empty(b, *, dtype: int = 1):
    return _stage(b, "empty", [], SequenceType(DType(dtype)), dtype=DType(dtype))


@op("SequenceInsert", since=11)
def sequence_insert(b, sequence, x, position=None):
    return _stage(b, "insert", [sequence, x, position], _joined_rank(sequence.type, x))


@op("SequenceErase", since=11)
def sequence_erase(b, sequence, position=None):
    return _stage(b, "erase", [sequence, position], sequence.type)


@op("SequenceLength", since=11)
def sequence_length(b, sequence):
    items = _items(sequence)
    if items is not None:
        return b.const(len(items), DType.INT64)
    return _stage(b, "length", [sequence], TensorType(DType.INT64, ()))


@op("SequenceAt", since=11)
def sequence_at(b, sequence, position):
    items = _items(sequence)
    at = None if items is None else _place(position, len(items)) if items else None
    if at is not None:
        return items[at]
    value = Value(sequence.type)
    dims = tuple(value.dim(k) for k in range(_rank(sequence)))
    value.type = TensorType(sequence.type.dtype, dims)
    return b.stage(SequenceOp("at"), [sequence, position], [value])[0]


@op("ConcatFromSequence", since=11)
def concat_from_sequence(b, sequence, *, axis: int, new_axis: int = 0):
    rank = _rank(sequence) + (1 if new_axis else 0)
    value = Value(sequence.type)
    dims = tuple(value.dim(k) for k in range(rank))
    value.type = TensorType(sequence.type.dtype, dims)
    prim = SequenceOp("concat", b.axis(axis, rank), new_axis=bool(new_axis))
    return b.stage(prim, [sequence], [value])[0]


@op("SplitToSequence", since=11)
def split_to_sequence(b, x, split=None, *, axis: int = 0, keepdims: int = 1):
    keep = bool(keepdims or split is not None)
    type = SequenceType(x.dtype, x.rank if keep else x.rank - 1)
    return _stage(b, "split", [x, split], type, axis=b.axis(axis, x.rank), keepdims=keep)


@op("Optional", since=15)
def optional(b, x=None, *, type: TypeProto = None):
    if x is not None:
        return x
    if type is None:
        raise ModelError("Optional without an input needs its type")
    return Value(OptionalType(type_of(type, lambda: 0)))


@op("OptionalHasElement", since=15)
def optional_has_element(b, x=None):
    present = x is not None and not isinstance(x.type, OptionalType)
    return b.const(present, DType.BOOL)


@op("OptionalGetElement", since=15)
def optional_get_element(b, x):
    if isinstance(x.type, OptionalType):
        raise ModelError("the optional has no element")
    return x
