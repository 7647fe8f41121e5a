"""SessionOptions and RunOptions with the fields that programs set, and their enumerations."""

from __future__ import annotations

import enum
import operator
import os
from collections.abc import Mapping
from typing import Any

from rlx.ort.status import NotImplemented, made
from rlx.passes import PIPELINE


class _Enum(enum.IntEnum):
    __str__ = enum.Enum.__str__


class GraphOptimizationLevel(_Enum):
    """How much of rlx's passes may change the model; see SessionOptions."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(_Enum):
    """Accepted; rlx always runs nodes one after the other, each on all threads."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(_Enum):
    """Accepted; rlx orders nodes as its memory plan wants them."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


# Passes that remain at each level; the levels above leave all of them on.
_BASIC = ("dims", "fold", "dedupe", "regions", "prune")
_KEPT = {GraphOptimizationLevel.ORT_DISABLE_ALL: (),
         GraphOptimizationLevel.ORT_ENABLE_BASIC: _BASIC,
         GraphOptimizationLevel.ORT_ENABLE_EXTENDED: (*_BASIC, "patterns", "attention",
                                                      "epilogues")}


class _Fields:
    """Typed attributes with defaults, and a table of configuration entries."""

    _defaults: dict[str, Any] = {}

    def __init__(self) -> None:
        self.__dict__.update(self._defaults)
        self.__dict__["_entries"] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._defaults:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.__dict__[name] = self._checked(name, value)

    def _checked(self, name: str, value: Any) -> Any:
        kind = type(self._defaults[name])
        if kind is str:
            return os.fspath(value)
        if kind is bool:
            return bool(value)
        if kind is int:
            return operator.index(value)
        if not isinstance(value, kind):
            raise TypeError(f"{name} must be a {kind.__name__}, not {type(value).__name__}")
        return value

    def _add_entry(self, key: str, value: str) -> None:
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError("a configuration entry is two strings, not "
                            f"{type(key).__name__} and {type(value).__name__}")
        if not 0 < len(key) <= 1024:
            raise RuntimeError("Config key is empty or longer than maximum length 1024")
        self._entries[key] = value

    def _entry(self, key: str) -> str:
        if key not in self._entries:
            raise RuntimeError(
                f"{type(self).__name__} does not have configuration with key: {key}")
        return self._entries[key]


class SessionOptions(_Fields):
    """What an InferenceSession is made with.

    Honoured: intra_op_num_threads, graph_optimization_level (by passes of rlx left out),
    enable_profiling and profile_file_prefix, optimized_model_filepath (the model as rlx read it),
    free dimension overrides, initializers and providers. The rest is kept and has no effect.
    """

    _defaults = {
        "enable_cpu_mem_arena": True, "enable_mem_pattern": True, "enable_mem_reuse": True,
        "enable_profiling": False, "execution_mode": ExecutionMode.ORT_SEQUENTIAL,
        "execution_order": ExecutionOrder.DEFAULT,
        "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL,
        "inter_op_num_threads": 0, "intra_op_num_threads": 0, "log_severity_level": -1,
        "log_verbosity_level": 0, "logid": "", "optimized_model_filepath": "",
        "profile_file_prefix": "onnxruntime_profile_", "use_deterministic_compute": False,
        "use_per_session_threads": True,
    }

    def __init__(self) -> None:
        super().__init__()
        self.__dict__["_dims"] = {"dim_param": {}, "denotation": {}}
        self.__dict__["_initializers"] = {}
        self.__dict__["_providers"] = []

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry for get_session_config_entry."""
        self._add_entry(key, value)

    def get_session_config_entry(self, key: str) -> str:
        """The entry's value; RuntimeError when there is none."""
        return self._entry(key)

    def add_free_dimension_override_by_name(self, name: str, value: int) -> None:
        """Fixes every dim of the inputs that the model calls by this name."""
        self._dims["dim_param"][name] = operator.index(value)

    def add_free_dimension_override_by_denotation(self, denotation: str, value: int) -> None:
        """Fixes every dim of the inputs that has this denotation."""
        self._dims["denotation"][denotation] = operator.index(value)

    def add_initializer(self, name: str, value: Any) -> None:
        """Uses the OrtValue in place of the model's initializer of that name."""
        self._initializers[name] = value.numpy()

    def add_external_initializers(self, names: list[str], values: list[Any]) -> None:
        """add_initializer for each name and OrtValue."""
        for name, value in zip(names, values, strict=True):
            self.add_initializer(name, value)

    def add_provider(self, name: str, options: Mapping[str, str]) -> None:
        """Adds a provider, for sessions that are made without any."""
        self._providers.append((name, dict(options)))

    def has_providers(self) -> bool:
        """Whether add_provider was called."""
        return bool(self._providers)

    def register_custom_ops_library(self, path: str) -> None:
        """Raises NotImplemented: libraries of custom operators are built against onnxruntime."""
        raise made(NotImplemented, f"rlx cannot load the custom operators of {path!r}")

    def left_out(self) -> tuple[str, ...]:
        """The passes of rlx that graph_optimization_level switches off."""
        kept = _KEPT.get(self.graph_optimization_level, tuple(PIPELINE))
        return tuple(name for name in PIPELINE if name not in kept)


class RunOptions(_Fields):
    """What a run is made with; `terminate` set before a run makes it fail, the rest is kept."""

    _defaults = {"log_severity_level": -1, "log_verbosity_level": 0, "logid": "",
                 "only_execute_path_to_fetches": False, "terminate": False}

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry for get_run_config_entry."""
        self._add_entry(key, value)

    def get_run_config_entry(self, key: str) -> str:
        """The entry's value; RuntimeError when there is none."""
        return self._entry(key)
