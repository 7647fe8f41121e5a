"""Stands for onnxruntime's compiled module: the exceptions and classes that programs take there."""

from rlx.ort.options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
)
from rlx.ort.providers import get_all_providers, get_available_providers, get_device
from rlx.ort.session import InferenceSession
from rlx.ort.settings import (
    disable_telemetry_events,
    enable_telemetry_events,
    get_build_info,
    get_version_string,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_global_thread_pool_sizes,
    set_seed,
)
from rlx.ort.status import (
    EngineError,
    EPFail,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    ModelLoadCanceled,
    ModelLoaded,
    ModelRequiresCompilation,
    NoModel,
    NoSuchFile,
    NotFound,
    NotImplemented,
    RuntimeException,
)
from rlx.ort.types import ModelMetadata, NodeArg
from rlx.ort.values import OrtDevice, OrtValue

__all__ = [
    "EPFail", "EngineError", "ExecutionMode", "ExecutionOrder", "Fail", "GraphOptimizationLevel",
    "InferenceSession", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "ModelLoadCanceled",
    "ModelLoaded", "ModelMetadata", "ModelRequiresCompilation", "NoModel", "NoSuchFile", "NodeArg",
    "NotFound", "NotImplemented", "OrtDevice", "OrtValue", "RunOptions", "RuntimeException",
    "SessionOptions", "disable_telemetry_events", "enable_telemetry_events", "get_all_providers",
    "get_available_providers", "get_build_info", "get_device", "get_version_string",
    "set_default_logger_severity", "set_default_logger_verbosity", "set_global_thread_pool_sizes",
    "set_seed",
]
