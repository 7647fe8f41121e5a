"""From CUDA C++ to a Kernel: one way for the two functions and for `rlx compile-kernel`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import os
from pathlib import Path
from typing import Any

from rlx import _core
from rlx.background import RunFuture, submit
from rlx.cuda import includes
from rlx.cuda.flags import flags, texts
from rlx.cuda.kernel import Kernel
from rlx.errors import InputError
from rlx.options import gpu_ordinal


def compile(source: str | os.PathLike[str], name: str, *, arch: str | int | None = None,
            std: int = 17, fast_math: bool = False, ftz: bool | None = None,
            max_registers: int | None = None, defines: Any = (),
            headers: Mapping[str, str] | None = None,
            include_paths: Iterable[str | os.PathLike[str]] = (), options: Iterable[str] = (),
            expressions: Iterable[str] = (), lto: bool = False, program: str | None = None,
            device: str = "cuda") -> Kernel:
    """Compiles a kernel of CUDA C++ by NVRTC.

    source: the text, or a path whose folder is then searched for what it includes.
    name: the kernel, as C++ names it: "axpy", "ns::axpy", or "axpy<float, 4>", which is
        instantiated. It need not be extern "C".
    arch: "sm_90", "sm_90a", 90 ... for code of that architecture, "compute_90" for PTX that a
        driver compiles for its GPU. That of `device` unless given. With it no GPU is needed, until
        the kernel is called.
    std: of C++, 14, 17 or 20. fast_math: faster, less exact mathematics. ftz: denormal floats
        become zero. max_registers: of a thread. defines: {"N": 4, "FLAG": None}, or a list of
        "N=4". options: further flags of NVRTC.
    headers: texts by the names that the source includes. include_paths: folders with such; what
        the source can reach there, beside `program` or by an absolute path is part of the
        cache's key.
    expressions: further kernels to instantiate, for Kernel.lowered_name.
    lto: optimise when linking, by nvJitLink; the result is the CUBIN alone, for "compute_90" the
        PTX.
    program: the name of the source in messages, "kernel.cu" unless given or a path.
    device: where it is launched.

    An equal compilation is done once: for the process, and for others through the kernel cache
    (see rlx.cache_info). Raises InputError for options, an architecture that this NVRTC has not,
    and for a source that does not compile, with NVRTC's log; DeviceError without NVRTC, without
    the GPU that is needed, or with an nvJitLink that is missing, old or of another CUDA;
    UnsupportedError for a kernel that takes references.
    """
    if not isinstance(name, str) or not name.strip():
        raise InputError("name is no name of a kernel", got=repr(name))
    wanted = [name, *(each for each in texts("expressions", expressions) if each != name)]
    ordinal = gpu_ordinal(device)
    made = compile_program(
        source, wanted, arch=arch, lto=lto, program=program, headers=headers, typed=True,
        include_paths=include_paths, ordinal=ordinal, std=std, fast_math=fast_math, ftz=ftz,
        max_registers=max_registers, defines=defines, options=options)
    return Kernel(made, name, wanted, ordinal, load=arch is None)


def compile_async(source: str | os.PathLike[str], name: str, **options: Any) -> RunFuture:
    """compile() on another thread: a Future of the Kernel, which may also be awaited.

    Launches of other kernels go on meanwhile. The caches are those of compile().
    """
    return submit(lambda: compile(source, name, **options))


def compile_program(source: str | os.PathLike[str], expressions: list[str], *,
                    arch: str | int | None, lto: bool = False, program: str | None = None,
                    headers: Mapping[str, str] | None = None, typed: bool = False,
                    include_paths: Iterable[str | os.PathLike[str]] = (), ordinal: int = 0,
                    **options: Any) -> Any:
    """The _core.CudaProgram of a source; the options are those of compile().

    typed: whether the parameters of the first of `expressions` are wanted.
    """
    paths = [os.fspath(path) for path in include_paths] if not isinstance(
        include_paths, (str, os.PathLike)) else include_paths
    if isinstance(source, os.PathLike):
        program = program or os.fspath(source)
        text, paths = _read(Path(source)), [str(Path(source).parent), *paths]
    else:
        text = source
    headers = dict(headers or {})
    given = flags(include_paths=paths, **options)
    if not isinstance(text, str) or not all(
            isinstance(each, str) for each in (*headers, *headers.values(), *expressions)):
        raise InputError("sources, headers and names are texts", got=type(text).__name__)
    target = _core.cuda_architecture(None if arch is None else str(arch), ordinal)
    program = program or "kernel.cu"
    return _core.cuda_compile(program, text, list(headers.items()),
                              includes.digest(text, headers, paths, program), target, given,
                              expressions, typed, bool(lto))


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the source cannot be read: {error}") from error
