"""Options of a Session, with their defaults and checks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from rlx.errors import InputError

if TYPE_CHECKING:
    from rlx._core import Device

MODES = ("graph", "stream", "multistream")
_LARGEST = {"threads": 2**31 - 1, "streams": 32, "plan_cache_bytes": 2**63 - 1,
            "memory_limit": 2**63 - 1}


@dataclass(frozen=True, slots=True)
class Options:
    """How a model is compiled and run.

    device: "auto", "cpu" or "cuda[:n]"; "auto" takes CUDA when it works, else the CPU.
    threads: CPU threads of a run; 0 takes what the affinity mask and the cgroup allow.
    disable: names of passes (rlx.passes.PIPELINE) that are left out.
    force: a rung of the device (see Session.explain) to insist on where it applies, or "".
    plan_cache_bytes: bound on cached plans of one Session.
    memory_limit: bytes that a plan's arena may take, 0 for no limit; MemoryLimitError above it.
    tf32: whether float32 products, convolutions and attention on CUDA may round to TF32.
    mode: how CUDA runs are done: "graph" records and replays them, "stream" launches each time,
        "multistream" is "graph" with independent nodes side by side on several streams.
    streams: how many "multistream" takes.
    """

    device: str = "auto"
    threads: int = 0
    disable: tuple[str, ...] = ()
    force: str = ""
    plan_cache_bytes: int = 64 << 20
    memory_limit: int = 0
    tf32: bool = True
    mode: str = "graph"
    streams: int = 4

    @property
    def lanes(self) -> int:
        """Streams of one run."""
        return max(self.streams, 1) if self.mode == "multistream" else 1

    def check_force(self, device: Device) -> None:
        """InputError where the device has no rung `force`."""
        if self.force and self.force not in device.rungs:
            raise InputError(f"option 'force' names no rung of {device.name}",
                             expected=", ".join(device.rungs), got=repr(self.force))

    @classmethod
    def of(cls, **given) -> Options:
        """Options from keyword arguments; InputError for an unknown name or a bad value."""
        known = {f.name: f.default for f in fields(cls)}
        for name, value in given.items():
            if name not in known:
                raise InputError(f"unknown option {name!r}", expected=", ".join(known))
            if name == "disable":
                if not isinstance(value, (tuple, list)) or not all(type(v) is str for v in value):
                    raise InputError("option 'disable' is no list of names", got=repr(value))
                given[name] = tuple(value)
            elif not isinstance(value, type(known[name])):
                raise InputError(f"option {name!r} has the wrong type",
                                 expected=type(known[name]).__name__, got=repr(value))
        if given.get("mode", "graph") not in MODES:
            raise InputError("option 'mode' is unknown", expected=" or ".join(MODES),
                             got=given["mode"])
        for name, largest in _LARGEST.items():
            if not 0 <= given.get(name, 0) <= largest:
                raise InputError(f"option {name!r} is out of range",
                                 expected=f"0 to {largest}", got=given[name])
        return cls(**given)
