"""Arrays from NumPy's files and from literals, as an input takes them."""

from __future__ import annotations

import json
from typing import Any
import zipfile
import zlib

import numpy as np

from rlx.errors import InputError
from rlx.feeds import Info
from rlx.ir.types import DType

_BROKEN = (OSError, ValueError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error)


def numpy_dtype(info: Info) -> Any:
    """What holds the input's elements; object for text."""
    if info.dtype.upper() not in DType.__members__:
        raise InputError(f"input {info.name!r} is no tensor", got=info.dtype,
                         remedy="use the Python API for it")
    if info.dtype == "string":
        return object
    return np.dtype(DType[info.dtype.upper()].numpy)


def array(path: str, info: Info) -> Any:
    """The array of an .npy file, or of an archive the one that is named as the input is."""
    loaded = _load(path)
    if isinstance(loaded, dict):
        if info.name not in loaded and len(loaded) != 1:
            raise InputError(f"{path!r} has no array {info.name!r}",
                             got=", ".join(loaded) or "no arrays")
        loaded = loaded.get(info.name, next(iter(loaded.values())))
    return _typed(loaded, info)


def archive(path: str, infos: dict[str, Info]) -> dict[str, Any]:
    """The arrays of an .npz file for the inputs that they are named after."""
    loaded = _load(path)
    if not isinstance(loaded, dict):
        raise InputError(f"{path!r} is one array, no archive", remedy=f"give NAME={path}")
    for name in loaded:
        if name not in infos:
            raise InputError(f"--input {path}: the model has no input {name!r}",
                             expected=", ".join(infos) or "no inputs")
    return {name: _typed(x, infos[name]) for name, x in loaded.items()}


def _load(path: str) -> Any:
    """An array, or a dict of those in an archive."""
    try:
        with open(path, "rb") as file:  # which NumPy leaves open when an archive is broken
            loaded = np.load(file, allow_pickle=False)
            return dict(loaded) if isinstance(loaded, np.lib.npyio.NpzFile) else loaded
    except _BROKEN as error:
        raise InputError(f"cannot read {path!r}: {error}",
                         expected="an .npy, .npz, .png, .jpg or .wav file") from error


def _typed(x: Any, info: Info) -> Any:
    """NumPy's files keep bfloat16 and its like as bytes without a type: they are the input's."""
    if x.dtype.kind != "V" or x.dtype.names is not None:
        return x
    dtype = np.dtype(numpy_dtype(info))
    registered = dtype.isbuiltin == 2  # by ml_dtypes
    return x.view(dtype) if registered and dtype.itemsize == x.itemsize else x


def literal(info: Info, text: str) -> Any:
    """A JSON number, text or list, each element exactly what the input's type holds."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"there is no file {_short(text)!r}, and it is no number or list",
                         expected="a file, or a value as in --input sr=16000") from error
    dtype = numpy_dtype(info)
    try:
        given = np.asarray(value, object if dtype is object else None).astype(object)
        made = np.asarray(value, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{_short(text)} does not fit input {info.name!r}: {error}",
                         expected=info.dtype) from error
    if not all(_holds(info.dtype, x, y) for x, y in zip(given.flat, made.flat)):
        raise InputError(f"{_short(text)} does not fit input {info.name!r}", expected=info.dtype)
    if info.shape is not None and made.size == 1:
        made = made.reshape((1,) * len(info.shape))
    return made


def _holds(dtype: str, given: Any, made: Any) -> bool:
    """Whether an element is what was given; floats may be rounded."""
    if dtype == "string":
        return isinstance(given, str)
    if not isinstance(given, (bool, int, float)):
        return False
    if DType[dtype.upper()].is_float or dtype.startswith("complex"):
        return True
    return int(made) == given


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
