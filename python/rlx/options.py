"""Options of a Session and of the process, with their defaults and checks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from rlx import _core, environment
from rlx.errors import InputError

if TYPE_CHECKING:
    from rlx._core import Device

WEIGHTS = ("", "f16", "bf16")  # the names of rlx.ir.types.HALF_NAMES
COMPILES = ("jit", "aot")


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
    weights: "f16" or "bf16" holds the float32 weights of products and convolutions in half the
        memory; sums stay float32, and on CUDA what is multiplied with them is rounded alike. "":
        as the model has them.
    mode: how CUDA runs are done: "graph" records and replays them, "stream" launches each time,
        "multistream" is "graph" with independent nodes side by side on several streams, "eager"
        is "stream" and waits for each step, so that an error names its ONNX node.
    streams: how many "multistream" takes.
    compile: "jit" compiles GPU kernels when runs need them, "aot" when the model is loaded, see
        Session.prepare.
    log_fallback: say on stderr, once for each cause, why a CUDA library was passed over.
    dispatch_report, fusion_report: say on stderr, for new shapes, how each step runs and why, and
        what became of each ONNX node.
    verbose: say on stderr what the session does and how long it takes.
    trace: a file that gets a trace of each run (for ui.perfetto.dev), the last one staying; such
        runs are done step by step. See Session.profile for more than one run.
    ir_dump: a folder that gets the program's text as imported and after each pass.

    What is not given may come from environment variables, see rlx.environment.VARIABLES.
    """

    device: str = "auto"
    threads: int = 0
    disable: tuple[str, ...] = ()
    force: str = ""
    plan_cache_bytes: int = 64 << 20
    memory_limit: int = 0
    tf32: bool = True
    weights: str = ""
    mode: str = "graph"
    streams: int = 4
    compile: str = "jit"
    log_fallback: bool = False
    dispatch_report: bool = False
    fusion_report: bool = False
    verbose: bool = False
    trace: str = ""
    ir_dump: str = ""

    @property
    def lanes(self) -> int:
        """Streams of one run."""
        return max(self.streams, 1) if self.mode == "multistream" else 1

    def check_force(self, device: Device) -> None:
        """InputError where the device has no rung `force`."""
        if self.force and self.force not in device.rungs:
            raise InputError("option 'force' or RLX_KERNEL_DISPATCH names no rung of "
                             + device.name, expected=", ".join(device.rungs),
                             got=repr(self.force))

    def left_out(self, device: str) -> tuple[str, ...]:
        """Passes not to run: those of `disable`, and what gains nothing on the device."""
        # A GPU is quickest with floats and halves; there one product for three saves launches.
        idle = ("siblings",) if device == "cpu" else ("integers", "widen")
        return self.disable + idle + (() if self.weights else ("narrow",))

    @classmethod
    def of(cls, **given) -> Options:
        """Options from keyword arguments, else from the environment; InputError for an unknown
        name or a bad value."""
        known = {f.name: f.default for f in fields(cls)}
        given = environment.options(given) | given
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
        for name, known in (("mode", environment.MODES), ("weights", WEIGHTS),
                            ("compile", COMPILES)):
            if given.get(name, known[0]) not in known:
                raise InputError(f"option {name!r} is unknown",
                                 expected=" or ".join(filter(None, known)), got=given[name])
        for name, largest in environment.LIMITS.items():
            value = given.get(name, 0)
            if not 0 <= value <= largest:
                shown = value if abs(value) <= environment.LARGEST else "a number beyond 64 bits"
                raise InputError(f"option {name!r} is out of range", expected=f"0 to {largest}",
                                 got=shown)
        return cls(**given)


def gpu_ordinal(device: Any) -> int:
    """1 of "cuda:1", 0 of "cuda"; InputError for anything else."""
    kind, colon, number = str(device).partition(":")
    if kind != "cuda" or (colon and not number.isdecimal()):
        raise InputError("this is no GPU", expected="cuda or cuda:N", got=device)
    return int(number or 0)


def configure(**settings: Any) -> None:
    """Settings of the process, by keyword; None takes one back to its environment variable.

    kernel_cache: the folder of compiled GPU kernels, "off" for none (RLX_CUDA_PTX_CACHE).
    arena_pool: most bytes of free GPU memory that are kept for reuse (RLX_CUDA_ARENA_POOL).
    """
    variables = {v.option: v for v in environment.VARIABLES if v.of_process}
    for name, value in settings.items():
        if name not in variables:
            raise InputError(f"unknown setting {name!r}", expected=", ".join(variables))
        number = name == "arena_pool"
        if value is not None and (type(value) is not (int if number else str)
                                  or (number and not 0 <= value <= environment.LARGEST)):
            raise InputError(f"setting {name!r} has a bad value", got=repr(value),
                             expected="bytes" if number else "a folder or off")
    for name, value in settings.items():
        _core.override_variable(variables[name].name.removeprefix("RLX_"),
                                None if value is None else str(value))
