"""Types of the compiled module: one entry for each name that cpp/bindings exposes."""

from types import ModuleType
from typing import Any

from rlx.errors import InputError

__version__: str

def build_info() -> dict[str, Any]: ...

# The structs of cpp/program, field for field: primitives, and what a Program is made of.
prims: ModuleType
program: ModuleType

class Respecialise(Exception): ...
class NotArray(InputError): ...

def devices() -> list[str]: ...
def begin_device(name: str) -> None: ...
def begin_libraries(name: str, half: bool, dnn: bool) -> None: ...
def make_device(name: str, tf32: bool = True, log_fallback: bool = False,
                half_activations: bool = False) -> Device: ...
def make_offline_device(capability: int, libraries: bool, folder: str, tf32: bool,
                        half_activations: bool) -> Device: ...
def finish_kernels(device: Device) -> None: ...
def update_weights(executables: list[Executable], programs: list[Program]) -> list[bool]: ...
def cuda_probe() -> dict[str, Any]: ...
def cuda_statistics() -> list[dict[str, Any]]: ...
def cuda_empty_cache() -> None: ...
def cuda_cache_folder() -> str: ...
def override_variable(name: str, value: str | None) -> None: ...
def cuda_reset(ordinal: int) -> None: ...
def cuda_compile_kernel(file: str, entry: str, defines: list[str], capability: int,
                        generated: list[tuple[str, str]] = ...) -> bytes: ...
def cuda_compile(name: str, text: str, headers: list[tuple[str, str]], included: str,
                 architecture: str, options: list[str], expressions: list[str], typed: bool,
                 lto: bool) -> CudaProgram: ...
def cuda_architecture(name: str | None, ordinal: int) -> str: ...
def cuda_to_device(array: Any, ordinal: int) -> DeviceArray: ...
def cuda_kernel_files() -> list[str]: ...
def faulty_device(device: Device, rung: str) -> Device: ...

class Device:
    name: str
    default_threads: int
    rungs: list[str]

class DeviceArray:
    """A tensor in GPU memory; any DLPack library can take it."""

    shape: tuple[int, ...]
    ndim: int
    dtype: Any
    def numpy(self) -> Any: ...

class CudaProgram:
    """What NVRTC made of a source."""

    key: str
    architecture: str
    log: str
    lowered: list[str]
    signature: str
    cubin: bytes
    ptx: bytes
    def kernel(self, symbol: str, name: str, ordinal: int) -> CudaKernel: ...

class CudaKernel:
    """An entry of a program on one GPU."""

    generation: int
    registers: int
    shared_bytes: int
    local_bytes: int
    max_threads: int
    def launch(self, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int,
               stream: int, operands: list[Any]) -> CudaLaunch: ...

class CudaLaunch:
    """A launch that may be going on."""

    def done(self) -> bool: ...
    def synchronize(self) -> None: ...

class PackCache:
    """Packed weights, shared by Executables."""

    count: int
    bytes: int

class Executable:
    """A Program ready to run on a Device; safe to use from many threads."""

    def __init__(self, program: Program, device: Device, packs: PackCache | None = None, *,
                 threads: int = 0, force: str = "", plan_cache_bytes: int = ...,
                 memory_limit: int = 0, max_contexts: int = 0,
                 check_memory: bool = False, record: bool = True,
                 stepwise: bool = False, lanes: int = 1) -> None: ...
    def run(self, feeds: Any, out: dict[str, Any] | None = None,
            state: State | None = None, outputs: str | None = None,
            stream: int | None = None,
            profiler: Profiler | None = None) -> dict[str, Any]: ...
    def prepare(self, feeds: Any) -> None: ...
    def counters(self) -> dict[str, int]: ...
    def explain(self) -> list[dict[str, Any]]: ...
    def memory_plan(self) -> list[dict[str, Any]]: ...
    def profile(self, feeds: Any, runs: int) -> dict[str, Any]: ...
    def capture(self, feeds: Any) -> tuple[list[tuple[str, int, int, list[Any]]],
                                           dict[str, Any]]: ...

class Profiler:
    """Measures the run that it is given to."""

    def measured(self, executable: Executable) -> dict[str, Any]: ...

class State:
    """The growing values that a program keeps between runs."""

    def __init__(self, executable: Executable) -> None: ...
    def clear(self) -> None: ...
    def value(self, pair: int) -> Any: ...

class Program:
    """An immutable program; the keywords are its fields."""

    def __init__(self, **fields: Any) -> None: ...
    constants: list[Any]
    exprs: list[Any]
    guards: list[Any]
    input_names: list[str]
    inputs: list[int]
    origins: list[Any]
    output_names: list[str]
    outputs: list[int]
    stages: list[Any]
    states: list[Any]
    strings: list[str]
    symbols: list[Any]
    values: list[Any]
