"""What onnxruntime keeps once for a process: seed, threads, logging and telemetry."""

from __future__ import annotations

import operator

from rlx.ort.options import SessionOptions

# The release of onnxruntime whose interface this package follows.
__version__ = "1.32.0"

_global = {"seed": None, "threads": 0}


def set_seed(seed: int) -> None:
    """Seeds the random operators, without a seed of their own, of sessions made afterwards."""
    _global["seed"] = operator.index(seed)


def seed() -> int | None:
    """What set_seed was given last."""
    return _global["seed"]


def set_global_thread_pool_sizes(intra_op_num_threads: int = 0,
                                 inter_op_num_threads: int = 0) -> None:
    """Threads of sessions made afterwards with use_per_session_threads off."""
    _global["threads"] = operator.index(intra_op_num_threads)


def threads_of(options: SessionOptions) -> int:
    """Threads that a session may use; 0 lets rlx decide."""
    own = options.intra_op_num_threads if options.use_per_session_threads else _global["threads"]
    return max(own, 0)


def set_default_logger_severity(severity: int) -> None:
    """Accepted from 0 (verbose) to 4 (fatal): rlx raises and warns, but writes no log."""
    if not 0 <= operator.index(severity) <= 4:
        raise RuntimeError("Invalid logging severity. 0:Verbose, 1:Info, 2:Warning, 3:Error, "
                           "4:Fatal")


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accepted: rlx writes no log."""
    operator.index(verbosity)


def disable_telemetry_events() -> None:
    """Nothing to do: rlx sends nothing to anyone."""


def enable_telemetry_events() -> None:
    """Accepted, and still nothing is sent."""


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True,
                 directory: str | None = None) -> None:
    """Nothing to do: rlx finds the libraries of a device when it first needs them."""


def get_version_string() -> str:
    """The release of onnxruntime whose interface this is."""
    return __version__


def get_build_info() -> str:
    """Which rlx this is."""
    import rlx
    return f"rlx {rlx.__version__}, with the interface of onnxruntime {__version__}"
