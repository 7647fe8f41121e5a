"""Environment variables that stand for options: one table; an option that is given wins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import os
from typing import Any

from rlx.errors import InputError


LARGEST = 2**63 - 1
LIMITS = {"threads": 2**31 - 1, "streams": 32, "plan_cache_bytes": LARGEST,
          "memory_limit": LARGEST}  # of options that are numbers
MODES = ("graph", "stream", "multistream", "eager")
_SHOWN = 60  # characters of a text that an error repeats


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, the option of rlx.Options or rlx.configure that it stands for, and its text's
    reader, which gives options by name."""

    name: str
    option: str
    meaning: str
    read: Callable[[str], dict[str, Any]]
    of_process: bool = False  # an option of rlx.configure


def _text(option: str) -> Callable[[str], dict[str, Any]]:
    return lambda text: {option: text}


def _number(option: str) -> Callable[[str], dict[str, Any]]:
    def read(text: str) -> dict[str, Any]:
        return {option: _whole(text, LIMITS.get(option, LARGEST))}
    return read


def _whole(text: str, largest: int, what: str = "") -> int:
    """As core/env reads it."""
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= largest):
        raise ValueError(f"{what}a whole number from 0 to {largest}")
    return int(text)


def _switch(option: str) -> Callable[[str], dict[str, Any]]:
    def read(text: str) -> dict[str, Any]:
        if text not in ("0", "1"):
            raise ValueError("0 or 1")
        return {option: text == "1"}
    return read


def _mode(text: str) -> dict[str, Any]:
    mode, colon, streams = text.partition(":")
    if mode not in MODES or (colon and mode != "multistream"):
        raise ValueError(f"{', '.join(MODES)} or multistream:N")
    if not colon:
        return {"mode": mode}
    return {"mode": mode, "streams": _whole(streams, LIMITS["streams"], "multistream: and ")}


VARIABLES = (
    Variable("RLX_CUDA_EXEC_MODE", "mode",
             "how CUDA runs are done; multistream:N sets the streams too", _mode),
    Variable("RLX_CUDA_LOG_FALLBACK", "log_fallback",
             "1: say why a CUDA library was passed over", _switch("log_fallback")),
    Variable("RLX_KERNEL_DISPATCH", "force", "the rung to insist on", _text("force")),
    Variable("RLX_WORKERS", "threads", "CPU threads of a run", _number("threads")),
    Variable("RLX_TRACE_PERFETTO", "trace", "the file that holds the last run's times",
             _text("trace")),
    Variable("RLX_DISPATCH_REPORT", "dispatch_report", "1: say how each step runs, and why",
             _switch("dispatch_report")),
    Variable("RLX_FUSION_REPORT", "fusion_report", "1: say what became of each ONNX node",
             _switch("fusion_report")),
    Variable("RLX_VERBOSE", "verbose", "1: say what a session does and how long it takes",
             _switch("verbose")),
    Variable("RLX_IR_DUMP", "ir_dump", "the folder for the program after each pass",
             _text("ir_dump")),
    Variable("RLX_CUDA_PTX_CACHE", "kernel_cache", "the folder of compiled kernels, off for none",
             _text("kernel_cache"), of_process=True),
    Variable("RLX_CUDA_ARENA_POOL", "arena_pool", "most bytes of free GPU memory that are kept",
             _number("arena_pool"), of_process=True),
)


def options(names: Any) -> dict[str, Any]:
    """Options that the environment gives and that are not among `names`; InputError for a variable
    that cannot be read, those of the process too. One that is empty counts as unset."""
    found: dict[str, Any] = {}
    for variable in VARIABLES:
        text = os.environ.get(variable.name)
        if not text or variable.option in names:
            continue
        try:
            given = variable.read(text)
        except ValueError as error:
            shown = repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."
            raise InputError(f"the environment variable {variable.name} is not usable",
                             expected=str(error), got=shown) from None
        if not variable.of_process:  # the core reads those
            found |= given
    return {name: value for name, value in found.items() if name not in names}
