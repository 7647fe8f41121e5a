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
    # What another put there need not have a spec to be found by.
    found = None if "onnx" in sys.modules else importlib.util.find_spec("onnx")
    folders = found.submodule_search_locations if found else None
    path = os.path.join(folders[0], "onnx_ml_pb2.py") if folders else ""
    # "cpp", which protobuf had up to 3, would make the classes anew for the package.
    if not os.path.exists(path) or api_implementation.Type() == "cpp":
        import onnx
        return onnx
    # Not as onnx.onnx_ml_pb2: the package would then come to lack that attribute.
    spec = importlib.util.spec_from_file_location(f"{__name__}.messages", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if not TYPE_CHECKING:
    _found = _messages()
    globals().update((name, getattr(_found, name)) for name in __all__)
