"""ONNX TypeProto to IR types; dims come as int or str (a name, "" when unnamed)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from rlx.errors import UnsupportedError
from rlx.ir.types import DType, OptionalType, SequenceType, TensorType, Type

if TYPE_CHECKING:
    import onnx
    from rlx.ir.graph import Value


class MapValue:
    """A map, which has no type in the IR: it exists where it enters and leaves a model only.

    values is [n] with the key tensor [n] of an input; or [N, K] with K fixed keys, which is a
    sequence of N maps.
    """

    def __init__(self, keys: Value | tuple, values: Value, name: str = ""):
        self.keys, self.values, self.name = keys, values, name

    @property
    def type(self) -> Type:
        raise UnsupportedError(f"the map {self.name!r} is used by an operator on tensors")


def map_types(proto: onnx.TypeProto.Map) -> tuple[DType, DType]:
    """The element types of a map's keys and values."""
    value = proto.value_type
    if value.WhichOneof("value") != "tensor_type":
        raise UnsupportedError("maps of anything but numbers and strings are not supported")
    return DType(proto.key_type), DType(value.tensor_type.elem_type)


def type_of(proto: onnx.TypeProto, rank: Callable[[], int]) -> Type:
    """The IR type of a TypeProto; rank() is asked when a tensor has no shape."""
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        return _tensor(proto.tensor_type, rank)
    if kind == "sequence_type":
        inner = proto.sequence_type.elem_type
        if inner.WhichOneof("value") == "tensor_type":
            tensor = inner.tensor_type
            known = tensor.HasField("shape")
            # Exporters write an empty shape for elements of any rank.
            rank = len(tensor.shape.dim) or None if known else None
            return SequenceType(DType(tensor.elem_type), rank)
        raise UnsupportedError(f"sequences of {inner.WhichOneof('value')} are not supported")
    if kind == "optional_type":
        return OptionalType(type_of(proto.optional_type.elem_type, rank))
    raise UnsupportedError(f"values of type {kind} are not supported")


def _tensor(proto: onnx.TypeProto.Tensor, rank: Callable[[], int]) -> TensorType:
    if not proto.HasField("shape"):
        return TensorType(DType(proto.elem_type), ("",) * rank())
    # Exporters also write -1 for a dim that is open.
    dims = tuple(d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else d.dim_param
                 for d in proto.shape.dim)
    return TensorType(DType(proto.elem_type), dims)


def proto_of(type: Type) -> onnx.TypeProto:
    """The TypeProto of an IR type; symbolic dims are left open."""
    import onnx  # here: a GPU is begun after this module, and most models need no package
    if isinstance(type, TensorType):
        dims = [d if isinstance(d, int) else None for d in type.shape]
        return onnx.helper.make_tensor_type_proto(int(type.dtype), dims)
    if isinstance(type, OptionalType):
        return onnx.helper.make_optional_type_proto(proto_of(type.element))
    dims = None if type.rank is None else [None] * type.rank
    element = onnx.helper.make_tensor_type_proto(int(type.dtype), dims)
    return onnx.helper.make_sequence_type_proto(element)
