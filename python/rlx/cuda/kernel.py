"""A compiled kernel and its launches."""

from __future__ import annotations

from collections.abc import Generator, Sequence
import asyncio
import operator
import threading
from typing import Any

from rlx import _core
from rlx.cuda.parameters import Parameter, parse
from rlx.errors import Error, InputError
from rlx.live import Live
from rlx.streams import handle_of


class Launch:
    """A launch, which may be going on: poll it, wait for it, or await it.

    All three raise InputError for a launch that was captured into a graph.
    """

    def __init__(self, flight: Any):
        self._flight = flight

    def done(self) -> bool:
        """Whether the kernel has ended; raises DeviceError for what went wrong in it."""
        return self._flight.done()

    def synchronize(self) -> None:
        """Waits until the kernel has ended; raises DeviceError for what went wrong in it."""
        self._flight.synchronize()

    def __await__(self) -> Generator[Any, None, None]:
        return self._end().__await__()

    async def _end(self) -> None:
        pause = 20e-6  # asks again and again, for a thread that waits would be missed elsewhere
        while not self.done():
            await asyncio.sleep(pause)
            pause = min(2 * pause, 2e-3)


class Kernel(Live):
    """A kernel that rlx.cuda.compile has made; calling it launches it.

    `k(grid, block, *args, shared=0, stream=None)` puts it on a stream and gives a Launch.
    grid, block: an int, or up to three. shared: bytes of dynamic shared memory of a block.
    stream: a handle, or an object with one (PyTorch's, or with __cuda_stream__); CUDA's default
    stream unless given, on which PyTorch works too. What is put there later comes after.
    args: one for each parameter. A pointer takes a contiguous array on the GPU, by DLPack or
    __cuda_array_interface__, whose elements have the type that the kernel declares, or None; work
    that makes it on another stream is waited for. A number takes a NumPy scalar of its type, or a
    Python bool, int or float that it holds; a structure takes bytes or a NumPy scalar of its size.
    Arrays live until the kernel has ended, whatever becomes of them here. On a stream that is being
    captured the launch becomes part of that graph, with which its arrays and the kernel live; the
    Launch then has no end to ask for.

    Raises, before anything is launched, InputError for arguments, extents or shared memory that do
    not fit, and StaleHandleError after rlx.reset; DeviceError for what the GPU refuses.
    """

    _instead = "send its source, and compile it there"

    def __init__(self, program: Any, name: str, expressions: Sequence[str], ordinal: int,
                 load: bool):
        self.name = name
        self.parameters: tuple[Parameter, ...] = parse(program.signature)
        self._program = program
        self._lowered = dict(zip(expressions, program.lowered))
        self._ordinal = ordinal
        self._loaded: Any = None
        self._lock = threading.Lock()
        if load:
            self._load()

    def __call__(self, grid: Any, block: Any, *args: Any, shared: int = 0,
                 stream: Any = None) -> Launch:
        if len(args) != len(self.parameters):
            types = ", ".join(parameter.type for parameter in self.parameters)
            raise InputError(f"kernel {self.name!r} takes another number of arguments",
                             expected=f"{len(self.parameters)} ({types})", got=len(args))
        try:
            operands = [parameter.operand(value) for parameter, value
                        in zip(self.parameters, args)]
            shape = _extents("grid", grid), _extents("block", block), _size(shared)
            loaded = self._loaded or self._load()
            return Launch(loaded.launch(*shape, handle_of(stream), operands))
        except Error as error:
            error.contexts.append(f"launching kernel {self.name!r}")
            raise

    def _load(self) -> Any:
        """The kernel on its GPU, loaded when that is first needed."""
        with self._lock:
            if self._loaded is None:
                self._loaded = self._program.kernel(self.lowered_name(self.name), self.name,
                                                    self._ordinal)
            return self._loaded

    @property
    def arch(self) -> str:
        """What it was compiled for: "sm_90a", or "compute_90" when it is PTX only."""
        return self._program.architecture

    @property
    def key(self) -> str:
        """A digest of the source, headers, options, architecture and versions of the compilers."""
        return self._program.key

    @property
    def log(self) -> str:
        """What the compiler and the linker said: warnings, or nothing."""
        return self._program.log

    @property
    def cubin(self) -> bytes:
        """The code for the architecture; InputError when it was compiled to PTX only."""
        return self._program.cubin or self._missing("CUBIN", "an architecture sm_NN")

    @property
    def ptx(self) -> str:
        """The PTX; InputError when lto=True made a CUBIN."""
        return self._program.ptx.decode() or self._missing(
            "PTX", "lto=False, or an architecture compute_NN")

    def _missing(self, what: str, remedy: str) -> Any:
        raise InputError(f"kernel {self.name!r} has no {what}", remedy=remedy)

    def lowered_name(self, expression: str) -> str:
        """The symbol of a name that was compiled: `name` or one of `expressions`."""
        if expression not in self._lowered:
            raise InputError("this name was not compiled", got=repr(expression),
                             expected=" or ".join(map(repr, self._lowered)))
        return self._lowered[expression]

    @property
    def generation(self) -> int:
        """How often the GPU had been reset when the kernel was loaded there; it is stale once
        that has changed."""
        return self._load().generation

    @property
    def registers(self) -> int:
        """Registers of a thread. This and the next three load the kernel on the GPU."""
        return self._load().registers

    @property
    def shared_bytes(self) -> int:
        """Shared memory that a block has without asking."""
        return self._load().shared_bytes

    @property
    def local_bytes(self) -> int:
        """Local memory of a thread: spilled registers, and arrays that need addresses."""
        return self._load().local_bytes

    @property
    def max_threads(self) -> int:
        """The most threads that a block may have."""
        return self._load().max_threads

    def __repr__(self) -> str:
        types = ", ".join(parameter.type for parameter in self.parameters)
        return f"<Kernel {self.name}({types}) for {self.arch}>"


def _extents(name: str, value: Any) -> tuple[int, int, int]:
    if type(value) is int and 0 < value < 2**32:
        return value, 1, 1
    extents = value if isinstance(value, (tuple, list)) else (value,)
    try:
        if any(isinstance(extent, bool) for extent in extents):
            raise TypeError
        numbers = [operator.index(extent) for extent in extents]
    except TypeError:
        numbers = []
    if not 1 <= len(numbers) <= 3:
        raise InputError(f"{name} is no extent", expected="an int or up to three", got=repr(value))
    if min(numbers) < 1 or max(numbers) >= 2**32:
        raise InputError(f"{name} is out of range", expected="1 or more in each axis",
                         got=repr(value))
    x, y, z = numbers + [1] * (3 - len(numbers))
    return x, y, z


def _size(shared: Any) -> int:
    if isinstance(shared, bool) or not hasattr(shared, "__index__") or not (
            0 <= shared.__index__() < 2**31):
        raise InputError("shared is no number of bytes", got=repr(shared))
    return shared.__index__()
