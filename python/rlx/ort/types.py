"""onnxruntime's names of types, NodeArg and ModelMetadata."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from rlx.ir.types import DType, dtype_of

_NAMES = {DType.FLOAT32: "float", DType.FLOAT64: "double"}


def element_name(element: int) -> str:
    """What onnxruntime calls an element type of ONNX, given by its number."""
    dtype = DType(element)
    return _NAMES.get(dtype, dtype.name.lower())


def tensor_name(array: np.ndarray) -> str:
    """The type of an array, e.g. "tensor(float)"."""
    return f"tensor({element_name(dtype_of(array.dtype))})"


def type_name(proto: onnx.TypeProto) -> str:
    """The type of a value, e.g. "seq(tensor(float))"."""
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        name = element_name(getattr(proto, kind).elem_type)
        return f"{'tensor' if kind == 'tensor_type' else 'sparse_tensor'}({name})"
    if kind == "map_type":
        inner = proto.map_type
        return f"map({element_name(inner.key_type)},{type_name(inner.value_type)})"
    inner = type_name(getattr(proto, kind).elem_type)
    return f"{'seq' if kind == 'sequence_type' else 'optional'}({inner})"


def shape_of(proto: onnx.TypeProto) -> list[int | str | None]:
    """Its dims: an int, a name or None; [] also where the rank is unknown, as in onnxruntime."""
    kind = proto.WhichOneof("value")
    if kind == "optional_type":
        return shape_of(proto.optional_type.elem_type)
    if kind != "tensor_type":
        return []
    return [d.dim_value if d.HasField("dim_value") else d.dim_param or None
            for d in proto.tensor_type.shape.dim]


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input, output or overridable initializer of a model."""

    name: str
    type: str
    shape: list[int | str | None]

    def __str__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """What a model says about itself."""

    producer_name: str
    graph_name: str
    domain: str
    description: str
    graph_description: str
    version: int
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


def numpy_of(element: Any) -> np.dtype:
    """The NumPy dtype of an element type given as NumPy's or as ONNX's number."""
    return DType(element).numpy if isinstance(element, int) else np.dtype(element)
