"""The exceptions of onnxruntime, and which of them an rlx.Error becomes."""

from __future__ import annotations

from types import TracebackType

import onnx.defs

from rlx.errors import (
    DeviceError,
    Error,
    InputError,
    ModelError,
    ModelNotFoundError,
    UnsupportedError,
)

# What onnxruntime has operators of: elsewhere an unknown operator is an unknown domain.
_DOMAINS = {"", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview.training", "com.microsoft"}


class Fail(Exception):
    """Status 1: whatever has no status of its own."""


class InvalidArgument(Exception):
    """Status 2: an input or output does not fit the model, or the model has no graph."""


class NoSuchFile(Exception):
    """Status 3: there is no file at the model's path."""


class NoModel(Exception):
    """Status 4: no model was loaded."""


class EngineError(Exception):
    """Status 5: an execution provider's engine failed."""


class RuntimeException(Exception):
    """Status 6: something failed that neither the model nor the inputs are to blame for."""


class InvalidProtobuf(Exception):
    """Status 7: the model is no ONNX file, or not a whole one."""


class ModelLoaded(Exception):
    """Status 8: the session has a model already."""


class NotImplemented(Exception):  # noqa: A001  onnxruntime's name
    """Status 9: an operator, type or feature that rlx does not have."""


class InvalidGraph(Exception):
    """Status 10: the model breaks the rules of ONNX."""


class EPFail(Exception):
    """Status 11: a device is missing or failed."""


class ModelLoadCanceled(Exception):
    """Status 12: loading was called off."""


class ModelRequiresCompilation(Exception):
    """Status 13: the model must be compiled first."""


class NotFound(Exception):
    """Status 14: something that was asked for by name does not exist."""


CODES = {
    Fail: (1, "FAIL"),
    InvalidArgument: (2, "INVALID_ARGUMENT"),
    NoSuchFile: (3, "NO_SUCHFILE"),
    NoModel: (4, "NO_MODEL"),
    EngineError: (5, "ENGINE_ERROR"),
    RuntimeException: (6, "RUNTIME_EXCEPTION"),
    InvalidProtobuf: (7, "INVALID_PROTOBUF"),
    ModelLoaded: (8, "MODEL_LOADED"),
    NotImplemented: (9, "NOT_IMPLEMENTED"),
    InvalidGraph: (10, "INVALID_GRAPH"),
    EPFail: (11, "EP_FAIL"),
    ModelLoadCanceled: (12, "MODEL_LOAD_CANCELED"),
    ModelRequiresCompilation: (13, "MODEL_REQUIRES_COMPILATION"),
    NotFound: (14, "NOT_FOUND"),
}

# Models that onnxruntime refuses before it looks at what their nodes mean, by rlx's words.
_MALFORMED = (
    ("not a whole ONNX file", InvalidProtobuf),
    ("not a regular file", InvalidProtobuf),
    ("the model is empty", InvalidArgument),
    ("the model has no graph", InvalidArgument),
    ("which nothing defines", InvalidArgument),
    ("the graph has a cycle", Fail),
    ("is defined twice", Fail),
)


def made(kind: type[Exception], message: object) -> Exception:
    """An exception with the text that programs look for: number and name of its status first."""
    number, name = CODES[kind]
    return kind(f"[ONNXRuntimeError] : {number} : {name} : {message}")


class translated:
    """`with translated():` turns an rlx.Error into onnxruntime's exception, caused by it."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if isinstance(error, Error):
            raise made(kind_of(error), error) from error


def kind_of(error: Error) -> type[Exception]:
    """The exception that onnxruntime raises for what an rlx.Error reports."""
    if isinstance(error, ModelNotFoundError):
        return NoSuchFile
    if isinstance(error, UnsupportedError):
        return _kind_of_unsupported(error)
    if isinstance(error, ModelError):
        return _kind_of_malformed(error)
    if isinstance(error, InputError):
        # A node's complaint about sizes comes while running, an input's before.
        return InvalidArgument if error.node is None else Fail
    return EPFail if isinstance(error, DeviceError) else RuntimeException


def _kind_of_unsupported(error: Error) -> type[Exception]:
    domain = error.domain or ""
    if "uses operator set" in error.message:
        return Fail
    if error.op is None or onnx.defs.has(error.op, domain):
        return NotImplemented
    if domain not in _DOMAINS:
        return Fail
    return InvalidGraph if domain in ("", "ai.onnx") else NotImplemented


def _kind_of_malformed(error: Error) -> type[Exception]:
    return next((kind for part, kind in _MALFORMED if part in error.message), InvalidGraph)
