"""Sequences and optionals: kept by the executor; SequenceMap runs its body as a Loop would."""

from __future__ import annotations

from rlx.errors import UnsupportedError
from rlx.importer.registry import op
from rlx.ir.build import DType, OptionalType, SequenceType, TensorType, Value
from rlx.ir.graph import SequenceOp


def _sequence_of(x: Value) -> SequenceType:
    """The type of a sequence of tensors like x."""
    return SequenceType(None, x.dtype)


def element_dtype(type) -> DType:
    """The element type at the bottom of a sequence or optional."""
    while isinstance(type, OptionalType):
        type = type.element
    return type.dtype if isinstance(type, TensorType) or type.element is None else \
        element_dtype(type.element)


def _stage(b, kind: str, inputs, types, **fields) -> list[Value]:
    return b.stage(SequenceOp(kind, **fields), list(inputs), [Value(t) for t in types])


def _tensor_of(b, dtype: DType, rank: int) -> Value:
    value = Value(TensorType(dtype, ()))
    value.type = TensorType(dtype, tuple(value.dim(k) for k in range(rank)))
    return value


def _element(b, kind: str, sequence: Value, inputs, why: str) -> Value:
    """A tensor taken out of a sequence: its rank is not known before the run."""
    rank = b.element_rank(sequence, inputs, why)
    value = _tensor_of(b, element_dtype(sequence.type), rank)
    return b.stage(SequenceOp(kind), list(inputs), [value])[0]


@op("SequenceConstruct", since=11)
def sequence_construct(b, *xs):
    return _stage(b, "construct", xs, [_sequence_of(xs[0])], dtype=xs[0].dtype)


@op("SequenceEmpty", since=11)
def sequence_empty(b, *, dtype: int = 1):
    return _stage(b, "empty", [], [SequenceType(None, DType(dtype))], dtype=DType(dtype))


@op("SequenceInsert", since=11)
def sequence_insert(b, sequence, x, position=None):
    return _stage(b, "insert", [sequence, x, position], [sequence.type])


@op("SequenceErase", since=11)
def sequence_erase(b, sequence, position=None):
    return _stage(b, "erase", [sequence, position], [sequence.type])


@op("SequenceLength", since=11)
def sequence_length(b, sequence):
    return _stage(b, "length", [sequence], [TensorType(DType.INT64, ())])


@op("SequenceAt", since=11)
def sequence_at(b, sequence, position):
    return _element(b, "at", sequence, [sequence, position], "SequenceAt")


@op("SplitToSequence", since=11)
def split_to_sequence(b, x, split=None, *, axis: int = 0, keepdims: int = 1):
    axis = b.axis(axis, x.rank)
    return _stage(b, "split", [x, split], [_sequence_of(x)], axis=axis,
                  keepdims=bool(keepdims or split is not None))


@op("Optional", since=15)
def optional(b, x=None, *, type=None):
    if x is None:
        raise UnsupportedError("an empty Optional inside a model")
    return _stage(b, "optional", [x], [OptionalType(x.type)])


@op("OptionalHasElement", since=15)
def optional_has_element(b, x=None):
    if x is None:
        return b.const(False, DType.BOOL)
    if not isinstance(x.type, OptionalType):
        return b.const(True, DType.BOOL)
    return _stage(b, "has_element", [x], [TensorType(DType.BOOL, ())])
