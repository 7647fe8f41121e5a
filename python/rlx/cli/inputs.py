"""The inputs of a run: from files and literals, random where none are given."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
import json
import os
from typing import Any
from zipfile import BadZipFile
import zlib

import numpy as np

from rlx.cli.media import picture, sound
from rlx.errors import InputError
from rlx.feeds import Info
from rlx.ir.types import DType

IMAGE_SIZE = 224
SAMPLES = 16000  # of a sound
LENGTH = 16
PICTURES = (".png", ".jpg", ".jpeg")


def gather(session: Any, arguments: argparse.Namespace) -> dict[str, Any]:
    """An array for every input that needs one. Raises InputError for what does not fit."""
    every = {info.name: info for info in session.inputs}
    defaults = session._model.graph.defaults
    infos = {name: info for name, info in every.items() if name not in defaults}
    dims = {k: _whole(v) for k, v in _pairs(arguments.dim, "--dim")}
    shapes = {k: _shape(v) for k, v in _pairs(arguments.shape, "--shape")}
    for name in shapes:
        _known(name, every, "--shape")
    given = {}
    for text in arguments.input:
        given |= _read(text, every, arguments)
    for name, x in given.items():
        _learn(every[name].shape, np.shape(x), dims)
    named = {d for info in every.values() for d in info.shape or () if isinstance(d, str)}
    for name in dims.keys() - named:
        raise InputError(f"--dim {name}: no input has this dim",
                         expected=", ".join(sorted(named)) or "no free dims")
    random = np.random.default_rng(arguments.seed)
    made = {name: _random(info, shapes.get(name), dims, random)
            for name, info in infos.items() if name not in given}
    arguments.made = ", ".join(f"{name} {x.dtype}{list(x.shape)}" for name, x in made.items())
    return given | made


def describe(inputs: dict[str, Any]) -> list[dict[str, Any]]:
    """Name, dtype and shape of each, as printed and as JSON."""
    return [{"name": name, "dtype": str(getattr(x, "dtype", type(x).__name__)),
             "shape": list(np.shape(x))} for name, x in inputs.items()]


def _pairs(texts: list[str], option: str) -> list[tuple[str, str]]:
    for text in texts:
        if "=" not in text:
            raise InputError(f"{option} {text}: no name", expected=f"{option} NAME=VALUE")
    return [tuple(text.rsplit("=", 1)) for text in texts]


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise InputError("a dim is no whole number", got=text)
    return int(text)


def _shape(text: str) -> tuple[int, ...]:
    return tuple(_whole(part) for part in text.replace(",", "x").split("x") if part)


def _known(name: str, infos: dict[str, Info], option: str) -> None:
    if name not in infos:
        raise InputError(f"{option}: the model has no input {name!r}",
                         expected=", ".join(infos) or "no inputs")


def _learn(declared: Any, actual: tuple[int, ...], dims: dict[str, int]) -> None:
    """Free dims have the extents that a given array shows."""
    if declared is not None and len(declared) == len(actual):
        for d, n in zip(declared, actual):
            if isinstance(d, str):
                dims.setdefault(d, n)


# -- given ------------------------------------------------------------------------------------


def _read(text: str, infos: dict[str, Info], arguments: argparse.Namespace) -> dict[str, Any]:
    name, equals, source = text.partition("=")
    if not equals or (name not in infos and os.path.exists(text)):
        name, source = "", text
    if source.lower().endswith(".npz"):
        return _archive(name, source, infos)
    if not name:
        if len(infos) != 1:
            raise InputError(f"--input {text}: which input is it for?",
                             expected="NAME=FILE with NAME of " + ", ".join(infos))
        name = next(iter(infos))
    _known(name, infos, "--input")
    return {name: _value(infos[name], source, arguments)}


def _value(info: Info, source: str, arguments: argparse.Namespace) -> Any:
    ending = os.path.splitext(source)[1].lower()
    if not os.path.exists(source):
        return _literal(info, source)
    if ending in PICTURES:
        return picture(source, info, arguments.mean, arguments.std)
    if ending == ".wav":
        return sound(source, info)
    return _load(source)


def _load(path: str) -> Any:
    """An array, or those of an archive by their names."""
    try:
        found = np.load(path, allow_pickle=False)
        return dict(found) if isinstance(found, Mapping) else found
    except (OSError, ValueError, EOFError, BadZipFile, zlib.error) as error:
        raise InputError(f"cannot read {path!r}: {error}",
                         expected="an .npy, .npz, .png, .jpg or .wav file") from error


def _archive(name: str, path: str, infos: dict[str, Info]) -> dict[str, Any]:
    arrays = _load(path)
    if not isinstance(arrays, dict):
        raise InputError(f"{path!r} is no archive of arrays", got="one array",
                         remedy="name it .npy")
    if not name:
        for key in arrays:
            _known(key, infos, f"--input {path}")
        return arrays
    _known(name, infos, "--input")
    if name not in arrays and len(arrays) != 1:
        raise InputError(f"{path!r} has no array {name!r}", got=", ".join(arrays))
    return {name: arrays[name] if name in arrays else next(iter(arrays.values()))}


def _literal(info: Info, text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InputError(f"there is no file {text!r}, and it is no number or list",
                         expected="a file, or a value as in --input sr=16000") from error
    try:
        made = np.asarray(value, _numpy_dtype(info))
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{text} does not fit input {info.name!r}: {error}",
                         expected=info.dtype) from error
    if info.shape is not None and made.size == 1:
        made = made.reshape((1,) * len(info.shape))
    return made


# -- random -----------------------------------------------------------------------------------


def _random(info: Info, shape: tuple[int, ...] | None, dims: dict[str, int], random: Any) -> Any:
    if info.shape is None and shape is None:
        raise InputError(f"input {info.name!r} has no declared shape", got=info.dtype,
                         remedy=f"give --shape {info.name}=... or --input {info.name}=...")
    shape = _extents(info, dims) if shape is None else shape
    _learn(info.shape, shape, dims)
    name = info.name.lower()
    dtype = _numpy_dtype(info)
    if dtype is object:
        raise InputError(f"input {info.name!r} is text: it cannot be random",
                         remedy=f"give --input {info.name}='[\"...\"]'")
    if dtype.kind == "b":
        return np.ones(shape, dtype) if "mask" in name else random.integers(0, 2, shape) > 0
    if dtype.kind in "iu":
        if "mask" in name:
            return np.ones(shape, dtype)
        if "position" in name and shape:
            return np.broadcast_to(np.arange(shape[-1]), shape).astype(dtype)
        if "index" in name or "indices" in name:
            return np.zeros(shape, dtype)
        return random.integers(0, 2, shape).astype(dtype)  # fit the smallest of vocabularies
    if dtype.kind == "c":
        return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype)
    return random.standard_normal(shape).astype(dtype)


def _extents(info: Info, dims: dict[str, int]) -> tuple[int, ...]:
    shape, rank = [], len(info.shape)
    last = rank == 4 and info.shape[3] in (1, 3, 4) and info.shape[1] not in (1, 3, 4)
    sides = ((1, 2) if last else (2, 3)) if rank == 4 else ()
    sound = rank > 1 and "float" in info.dtype and all(d == 1 for d in info.shape[1:-1])
    for axis, d in enumerate(info.shape):
        usual = IMAGE_SIZE if axis in sides else 1 if axis == 0 else SAMPLES if sound else LENGTH
        shape.append(d if isinstance(d, int) else dims.setdefault(d, usual) if d else usual)
    return tuple(shape)


def _numpy_dtype(info: Info) -> Any:
    if info.dtype.upper() not in DType.__members__:
        raise InputError(f"input {info.name!r} is no tensor", got=info.dtype,
                         remedy="use the Python API for it")
    if info.dtype == "string":
        return object
    return np.dtype(DType[info.dtype.upper()].numpy)
