"""The parameters of a kernel as the compiler spells them, and Python's values as theirs."""

from __future__ import annotations

from dataclasses import dataclass
import math
import re
import struct
from typing import Any

import numpy as np

from rlx.errors import InputError, UnsupportedError
from rlx.ir.types import DType

_SCALARS = {
    "float": DType.FLOAT32, "double": DType.FLOAT64, "bool": DType.BOOL,
    "char": DType.INT8, "signed char": DType.INT8, "unsigned char": DType.UINT8,
    "short": DType.INT16, "unsigned short": DType.UINT16, "int": DType.INT32,
    "unsigned int": DType.UINT32, "long": DType.INT64, "unsigned long": DType.UINT64,
    "long long": DType.INT64, "unsigned long long": DType.UINT64,
    "__half": DType.FLOAT16, "__nv_bfloat16": DType.BFLOAT16,
    "__nv_fp8_e4m3": DType.FLOAT8E4M3FN, "__nv_fp8_e5m2": DType.FLOAT8E5M2,
}
# How the struct module names them; its own order of bytes checks floats too, the native one not.
_CODES = {DType.FLOAT32: "f", DType.FLOAT64: "d", DType.FLOAT16: "e", DType.BOOL: "?",
          DType.INT8: "b", DType.UINT8: "B", DType.INT16: "h", DType.UINT16: "H", DType.INT32: "i",
          DType.UINT32: "I", DType.INT64: "q", DType.UINT64: "Q"}
# Bytes that are also something else elsewhere.
_BYTES = {"char": (DType.INT8, DType.UINT8, DType.BOOL), "unsigned char": (DType.UINT8, DType.BOOL)}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel.

    name: how messages call it. type: as C++ has it, typedefs resolved ("float const*",
    "unsigned long"). size: its bytes.
    dtypes: ONNX element types of the value, or of what a pointer may point to; empty for types
    that ONNX has not (structures, void), of which nothing is checked but the size.
    pointer: whether it takes an array. written: whether the kernel may write through it.
    """

    name: str
    type: str
    size: int
    dtypes: tuple[DType, ...]
    pointer: bool
    written: bool

    def operand(self, value: Any) -> Any:
        """The value as _core.CudaKernel.launch takes it; InputError when it does not fit."""
        if not self.pointer:
            return self._bytes(value)
        if value is None:
            return None
        if isinstance(value, (int, float, np.generic, bytes)):
            raise InputError(f"{self.name} is an array", expected="an array on the GPU, or None",
                             got=type(value).__name__)
        return self.name, value, self.dtypes, self.written

    def _bytes(self, value: Any) -> bytes:
        name = self.name
        if not self.dtypes:
            if not isinstance(value, (bytes, np.generic)):
                raise InputError(f"{name} is a structure", got=type(value).__name__,
                                 expected=f"bytes or a numpy scalar of {self.size} bytes")
            data = value if isinstance(value, bytes) else value.tobytes()
            if len(data) != self.size:
                raise InputError(f"{name} has another size", expected=f"{self.size} bytes",
                                 got=f"{len(data)} bytes")
            return data
        if isinstance(value, np.generic):
            dtype = self.dtypes[0].numpy
            if value.dtype != dtype:
                raise InputError(f"{name} is of another type", expected=dtype, got=value.dtype)
            return value.tobytes()
        return _converted(name, value, self.dtypes[0])


def _converted(name: str, value: Any, dtype: DType) -> bytes:
    """A Python number as the declared type, where that holds it."""
    fits = (bool,) if dtype is DType.BOOL else (int,) if dtype.is_integer else (int, float)
    if type(value) not in fits:
        kinds = " or ".join(kind.__name__ for kind in fits)
        raise InputError(f"{name} is of another type", got=type(value).__name__,
                         expected=f"a numpy {dtype.numpy} or a Python {kinds}")
    try:
        if dtype in _CODES:
            return struct.pack("<" + _CODES[dtype], value)
        made = np.array(float(value), dtype.numpy)
    except (OverflowError, struct.error):
        limits = np.iinfo(dtype.numpy) if dtype.is_integer else None
        raise InputError(f"{name} does not hold this number", got=value,
                         expected=limits and f"{limits.min} to {limits.max}") from None
    if not np.isfinite(made) and math.isfinite(value):
        raise InputError(f"{name} does not hold this number", got=value)
    return made.tobytes()


def parse(signature: str) -> tuple[Parameter, ...]:
    """Parameters out of "rlx_signature<void (float*, int), rlx_sizes<8ull, 4ull> >"."""
    found = re.fullmatch(r"rlx_signature<void \((.*)\), rlx_sizes<([^<>]*)>\s*>", signature)
    types = _split(found[1]) if found else []
    sizes = [int(size) for size in re.findall(r"\d+", found[2])] if found else []
    if found is None or len(types) != len(sizes):
        raise UnsupportedError("the types of the kernel's parameters cannot be told",
                               got=signature or "a name that cannot be read")
    for each in types:
        if each.endswith("&"):
            raise UnsupportedError("a kernel cannot be launched with a reference", got=each,
                                   expected="a value or a pointer")
    return tuple(_parameter(position, each, size)
                 for position, (each, size) in enumerate(zip(types, sizes)))


def _parameter(position: int, text: str, size: int) -> Parameter:
    pointer = text.endswith("*") or "(*) [" in text  # to an array
    target = text.removesuffix("*")
    written = pointer and not re.search(r"\bconst$", target)
    element = re.sub(r"( const| volatile)+$", "", target) if pointer else text
    dtypes = _BYTES.get(element) if pointer else None
    if dtypes is None:
        dtypes = (_SCALARS[element],) if element in _SCALARS else ()
    return Parameter(f"argument {position} ({text})", text, size, dtypes, pointer, written)


def _split(text: str) -> list[str]:
    """At the commas that stand in no brackets."""
    parts, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "(<[{") - (letter in ")>]}")
        if letter == "," and depth == 0:
            parts.append(text[begin:at].strip())
            begin = at + 1
    last = text[begin:].strip()
    return [*parts, last] if last else parts
