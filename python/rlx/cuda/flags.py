"""The options of a compilation as flags of NVRTC, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import os
from typing import Any

from rlx.errors import InputError

STANDARDS = (14, 17, 20)
# What has a keyword of its own, or would read files that the cache's key does not see.
_TAKEN = {"-arch": "arch", "--gpu-architecture": "arch", "-dlto": "lto", "--dlink-time-opt": "lto",
          "-std": "std", "--std": "std", "-I": "include_paths", "--include-path": "include_paths",
          "-include": "headers", "--pre-include": "headers"}
_PRECOMPILED = ("-pch", "--pch", "-use-pch", "--use-pch", "-create-pch", "--create-pch",
                "-pch-dir", "--pch-dir")


def flags(*, std: int = 17, fast_math: bool = False, ftz: bool | None = None,
          max_registers: int | None = None, defines: Any = (),
          include_paths: Iterable[str | os.PathLike[str]] = (),
          options: Iterable[str] = ()) -> list[str]:
    """NVRTC's flags for the options of rlx.cuda.compile, all but the architecture and lto."""
    found = [f"--std=c++{_standard(std)}"]
    found += ["--use_fast_math"] if _is(bool, "fast_math", fast_math) else []
    if ftz is not None:
        found.append(f"--ftz={str(_is(bool, 'ftz', ftz)).lower()}")
    if max_registers is not None:
        if _is(int, "max_registers", max_registers) < 1:
            raise InputError("option 'max_registers' is out of range", expected="1 or more",
                             got=max_registers)
        found.append(f"--maxrregcount={max_registers}")
    found += [f"-D{define}" for define in _defines(defines)]
    found += [f"-I{os.fspath(path)}" for path in texts("include_paths", include_paths)]
    for option in texts("options", options):
        name = option.partition("=")[0]
        keyword = _TAKEN.get(name) or ("include_paths" if name.startswith("-I") else None)
        if keyword:
            raise InputError(f"the flag {option!r} has a keyword of its own",
                             remedy=f"{keyword}=...")
        if name in _PRECOMPILED:
            raise InputError(f"the flag {option!r} is refused",
                             remedy="no precompiled headers: the kernel cache does not see them")
        if not option.startswith("-"):
            raise InputError("an entry of 'options' is no flag", got=repr(option),
                             expected="a flag with its value in one entry, as --prec-div=false")
        found.append(option)
    return found


def _standard(std: Any) -> int:
    number = std.removeprefix("c++") if isinstance(std, str) else std
    if str(number) not in map(str, STANDARDS):
        raise InputError("option 'std' is unknown", got=repr(std),
                         expected=" or ".join(map(str, STANDARDS)))
    return int(number)


def _defines(defines: Any) -> list[str]:
    """"NAME" or "NAME=VALUE" of a list of those or of a mapping, whose None gives "NAME"."""
    if isinstance(defines, Mapping):
        return [name if value is None else f"{name}={int(value) if value is True else value}"
                for name, value in defines.items()]
    return texts("defines", defines)


def texts(name: str, values: Any) -> list[Any]:
    """Texts or paths; one alone is a mistake that would be taken letter by letter."""
    if isinstance(values, (str, os.PathLike)) or not isinstance(values, Iterable):
        raise InputError(f"option {name!r} is a list", got=repr(values))
    found = list(values)
    for value in found:
        if not isinstance(value, (str, os.PathLike)):
            raise InputError(f"option {name!r} has an entry that is no text", got=repr(value))
    return found


def _is(kind: type, name: str, value: Any) -> Any:
    if type(value) is not kind:
        raise InputError(f"option {name!r} has the wrong type", expected=kind.__name__,
                         got=repr(value))
    return value
