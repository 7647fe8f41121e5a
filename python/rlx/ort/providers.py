"""Execution providers: which there are, and which device of rlx a program's list asks for."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import rlx

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
_DEVICES = {CPU: "cpu", CUDA: "cuda"}

Provider = tuple[str, dict[str, str]]


def get_available_providers() -> list[str]:
    """The providers that work here, best first."""
    kinds = {name.partition(":")[0] for name in rlx.devices()}
    return [name for name in (CUDA, CPU) if _DEVICES[name] in kinds]


def get_all_providers() -> list[str]:
    """The providers that rlx can have, whether they work here or not."""
    return [CUDA, CPU]


def get_device() -> str:
    """"GPU" where CUDA works, else "CPU"."""
    return "GPU" if CUDA in get_available_providers() else "CPU"


def chosen(providers: Sequence[Any] | None, options: Sequence[Any] | None) -> list[Provider]:
    """The available ones of a program's list, best first, the CPU always last.

    As in onnxruntime, what is not available is left out with a warning; ValueError for a
    list that is malformed.
    """
    found: dict[str, dict[str, str]] = {}
    available = get_available_providers()
    for name, given in _pairs(providers, options):
        if name not in available:
            warnings.warn(f"Specified provider {name!r} is not in available provider names."
                          f"Available providers: {', '.join(available)!r}", stacklevel=4)
        elif name in found:
            warnings.warn(f"Duplicate provider {name!r} encountered, ignoring.", stacklevel=4)
        else:
            found[name] = {} if name == CPU else {str(k): str(v) for k, v in given.items()}
    found.setdefault(CPU, {})
    return list(found.items())


def _pairs(providers: Sequence[Any] | None, options: Sequence[Any] | None) -> list[Provider]:
    if providers is None:
        return []
    if options is not None and len(options) != len(providers):
        raise ValueError("'providers' and 'provider_options' should be the same length if both "
                         "are given.")
    pairs: list[Provider] = []
    for index, entry in enumerate(providers):
        if isinstance(entry, str):
            pairs.append((entry, options[index] if options is not None else {}))
        elif not isinstance(entry, (tuple, list)) or [type(v) for v in entry] != [str, dict]:
            raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
        elif options is not None:
            raise ValueError("Only string values for 'providers' are supported if "
                             "'provider_options' is given.")
        else:
            pairs.append(tuple(entry))
    return pairs


def device_of(provider: Provider) -> str:
    """The device of rlx that a provider stands for, e.g. "cuda:1"."""
    name, options = provider
    return f"cuda:{options.get('device_id', 0)}" if name == CUDA else "cpu"
