"""The interface of onnxruntime on rlx: `import rlx.ort as onnxruntime`, or rlx.ort.install()."""

from rlx.ort import capi
from rlx.ort.binding import IOBinding
from rlx.ort.install import install
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
    __version__,
    disable_telemetry_events,
    enable_telemetry_events,
    get_build_info,
    get_version_string,
    preload_dlls,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_global_thread_pool_sizes,
    set_seed,
)
from rlx.ort.types import ModelMetadata, NodeArg
from rlx.ort.values import OrtDevice, OrtValue

__all__ = [
    "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding", "InferenceSession",
    "ModelMetadata", "NodeArg", "OrtDevice", "OrtValue", "RunOptions", "SessionOptions",
    "__version__", "capi", "disable_telemetry_events", "enable_telemetry_events",
    "get_all_providers", "get_available_providers", "get_build_info", "get_device",
    "get_version_string", "install", "preload_dlls", "set_default_logger_severity",
    "set_default_logger_verbosity", "set_global_thread_pool_sizes", "set_seed",
]
