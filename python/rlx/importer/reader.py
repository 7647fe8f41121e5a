"""Reads an ONNX model from a path, bytes, a ModelProto or a file, and checks its form.

Embedded weights of a file or of bytes are not copied: wire.py finds them and the onnx package
parses the rest.
"""

from __future__ import annotations

import io
import os
from typing import Any

from google.protobuf.message import DecodeError

from rlx.errors import InputError, ModelError, ModelNotFoundError, context
from rlx.importer import opsets
from rlx.importer.external import ExternalData
from rlx.importer.functions import FunctionTable
from rlx.importer.graphs import GraphLoader
from rlx.importer.loaded import LoadedModel
from rlx.importer.protos import ModelProto, TensorProto, TypeProto, ValueInfoProto
from rlx.importer.source import Source, map_file, open_file
from rlx.importer.tensors import TensorReader, element_type
from rlx.importer.wire import Cut, cut_raw_data


def read(model: Any, absent: set[str] | None = None) -> LoadedModel:
    """Read a model from a path, bytes-like object, onnx.ModelProto or binary file object.

    A LoadedModel, read before and perhaps changed since, is given back as it is.
    The bytes of a file or buffer must not change while the result is in use. External data is
    looked for beside a path, or beside a file object that has one. With `absent`, which gets the
    files that are not there, their initializers become inputs of the same type.

    Raises ModelError (malformed), UnsupportedError (newer than rlx), InputError (no model).
    """
    if isinstance(model, LoadedModel):
        return model
    path, source, proto = _open(model)
    with context("reading the model", repr(path) if path else f"given as {type(model).__name__}"):
        cuts: dict[bytes, Cut] = {}
        if proto is None:
            proto, cuts = _parse(source)
        external = ExternalData(path)
        if absent is not None:
            proto = _without_files(proto, external, absent)
        loaded = _load(proto, TensorReader(source, cuts, external), path)
        loaded.files = external.files
        return loaded


def parse(path: str) -> ModelProto:
    """What the file says, unchecked and without its weights. Raises ModelError as `read` does."""
    source = open_file(path)
    with context("reading the model", repr(path)):
        proto = _parse(source)[0]
        if not proto.HasField("graph"):
            raise ModelError("the model has no graph")
        return proto


def _open(model: Any) -> tuple[str | None, Source | None, ModelProto | None]:
    """The model's path if it has one, and its bytes or itself."""
    if isinstance(model, ModelProto):
        return None, None, model
    if isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        path = os.fsdecode(path) if isinstance(path, bytes) else path
        return path, open_file(path), None
    if isinstance(model, (bytes, bytearray, memoryview)):
        view = memoryview(model)
        if not view.c_contiguous:
            raise InputError("the model's memoryview is not contiguous", remedy="pass bytes(view)")
        return None, Source(view), None
    if hasattr(model, "read"):
        name = getattr(model, "name", None)
        path = name if isinstance(name, str) and os.path.isfile(name) else None
        return path, _read_file(model), None
    raise InputError(
        "this is no model",
        expected="a path, bytes, an onnx.ModelProto or a binary file object",
        got=type(model).__name__,
    )


def _read_file(file: Any) -> Source:
    # Wrappers such as gzip's have the descriptor of what they wrap, so only plain files are mapped.
    raw = file.raw if isinstance(file, io.BufferedReader) else file
    if isinstance(raw, io.FileIO) and file.seekable():
        start = file.tell()
        whole = map_file(raw.fileno())
        file.seek(0, os.SEEK_END)
        return Source(whole.buffer[start:], whole.identity and f"{whole.identity}+{start}")
    data = file.read()
    if not isinstance(data, bytes):
        raise InputError("the file object is not binary", remedy='open it with mode "rb"')
    return Source(data)


def _parse(source: Source) -> tuple[ModelProto, dict[bytes, Cut]]:
    if source.nbytes == 0:
        raise ModelError("the model is empty")
    if bytes(source.buffer[:24]) == b"version https://git-lfs.":
        raise ModelError("this is a Git LFS pointer, not the model", remedy="run git lfs pull")
    data, cuts = cut_raw_data(source.buffer)
    proto = ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError as error:
        raise ModelError(
            f"the model is not a whole ONNX file: {error}",
            remedy="check that the file was downloaded or written completely",
        ) from error
    return proto, cuts


def _load(proto: ModelProto, tensors: TensorReader, path: str | None) -> LoadedModel:
    imports = opsets.model_opsets(proto)
    if not proto.HasField("graph"):
        raise ModelError("the model has no graph")
    names: set[str] = set()
    loader = GraphLoader(tensors, imports, proto.ir_version, names)
    graph = loader.main(proto.graph)
    for name, declared in graph.inputs.items():
        with context("checking the type of input", repr(name)):
            _check_type(declared)
    functions = FunctionTable(proto.functions, loader)
    functions.check_size(graph)
    return LoadedModel(
        graph=graph,
        opset_imports=imports,
        functions=functions,
        ir_version=proto.ir_version,
        path=path,
        producer=proto.producer_name,
        domain=proto.domain,
        version=proto.model_version,
        description=proto.doc_string,
        graph_description=proto.graph.doc_string,
        metadata={entry.key: entry.value for entry in proto.metadata_props},
    )


def _without_files(proto: ModelProto, external: ExternalData, absent: set[str]
                   ) -> ModelProto:
    """The model with inputs in place of the initializers whose file is not there."""
    found = ModelProto()
    found.CopyFrom(proto)
    declared = {value.name for value in found.graph.input}
    del found.graph.initializer[:]
    for tensor in proto.graph.initializer:
        location = next((e.value for e in tensor.external_data if e.key == "location"), "")
        try:
            if tensor.data_location == TensorProto.EXTERNAL:
                with context("reading initializer", repr(tensor.name)):
                    external.open(location)
            found.graph.initializer.append(tensor)
        except ModelNotFoundError:
            absent.add(location)
            if tensor.name not in declared:
                kind = {"elem_type": tensor.data_type,
                        "shape": {"dim": [{"dim_value": d} for d in tensor.dims]}}
                found.graph.input.append(ValueInfoProto(name=tensor.name,
                                                        type=TypeProto(tensor_type=kind)))
    return found


def _check_type(declared: TypeProto) -> None:
    """Refuse an input whose type is missing or has an element type that is none."""
    kind = declared.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        element_type(getattr(declared, kind).elem_type)
    elif kind in ("sequence_type", "optional_type"):
        _check_type(getattr(declared, kind).elem_type)
    elif kind is None:
        raise ModelError("the model declares no type")
