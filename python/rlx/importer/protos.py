"""ONNX's messages without the rest of the onnx package.

Importing the package takes longer than reading most models: it brings checkers, converters and
parsers, none of which a run needs. The classes are those that it would give.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import (
        AttributeProto,
        FunctionProto,
        GraphProto,
        ModelProto,
        NodeProto,
        OperatorSetIdProto,
        SparseTensorProto,
        TensorProto,
        TypeProto,
        ValueInfoProto,
    )

__all__ = [
    "AttributeProto", "FunctionProto", "GraphProto", "ModelProto", "NodeProto",
    "OperatorSetIdProto", "SparseTensorProto", "TensorProto", "TypeProto", "ValueInfoProto",
]


def _messages() -> ModuleType:
    """The generated module of onnx, or onnx where that would make classes of its own."""
    from google.protobuf.internal import api_implementation
    if "onnx" in sys.modules:  # first: what another put there need not have a spec to be found by
        import onnx
        return onnx
    found = importlib.util.find_spec("onnx")
    folder, *_ = (found and found.submodule_search_locations) or [""]
    path = os.path.join(folder, "onnx_ml_pb2.py")
    # The other implementations keep one class for each message, whoever asks for it.
    apart = api_implementation.Type() == "cpp"
    if apart or not os.path.exists(path):
        import onnx
        return onnx
    # Not as onnx.onnx_ml_pb2: the package would then come to lack that attribute.
    spec = importlib.util.spec_from_file_location(f"{__name__}.messages", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if not TYPE_CHECKING:
    globals().update((name, getattr(_messages(), name)) for name in __all__)
