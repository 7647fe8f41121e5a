"""The functions of the package: run, load, devices."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import Any

import numpy as np

from rlx import _core
from rlx.errors import InputError
from rlx.options import gpu_ordinal
from rlx.session import Session

SESSIONS = 8  # models that rlx.run keeps ready

_sessions: OrderedDict[tuple, Session] = OrderedDict()
_lock = threading.Lock()


def load(model: Any, **options: Any) -> Session:
    """Loads a model for repeated runs.

    model: a path, bytes, onnx.ModelProto or binary file object. options: see rlx.Options.
    Raises ModelError, UnsupportedError or DeviceError, naming the node and the reason.
    """
    return Session(model, **options)


def run(model: Any, inputs: Any, *, out: dict[str, np.ndarray] | None = None,
        **options: Any) -> dict[str, Any]:
    """Runs a model once: output name -> ndarray.

    model and options as for `load`, inputs and out as for Session.run. The last few models given by
    path or as bytes stay loaded. Each call looks whether the file is the same, or hashes the bytes,
    which a Session spares; an onnx.ModelProto or file object is loaded anew each time.
    """
    key = _identity(model)
    if key is None:
        with Session(model, **options) as session:
            return session.run(inputs, out)
    return _session(key, model, options).run(inputs, out)


def _session(key: tuple, model: Any, options: dict[str, Any]) -> Session:
    key = (*key, tuple((k, type(v), tuple(v) if isinstance(v, list) else v)
                       for k, v in sorted(options.items())))
    try:
        hash(key)
    except TypeError:
        return Session(model, **options)  # which says what is wrong with the option
    with _lock:
        found = _sessions.get(key)
        if found is not None and found._model.is_current():
            _sessions.move_to_end(key)
            return found
    made = Session(model, **options)
    with _lock:
        other = _sessions.get(key)
        if other is not None and other is not found:  # another thread was quicker
            return other
        _sessions[key] = made
        _sessions.move_to_end(key)
        while len(_sessions) > SESSIONS:
            _sessions.popitem(last=False)
    return made


def _identity(model: Any) -> tuple | None:
    """What stays equal as long as the model is the same; None when it cannot be told."""
    if isinstance(model, (str, os.PathLike)):
        path = os.path.realpath(model)
        try:
            stat = os.stat(path)
        except OSError:
            return None  # Session says what is wrong
        return ("file", path, stat.st_ino, stat.st_size, stat.st_mtime_ns)
    if isinstance(model, (bytes, bytearray, memoryview)):
        import hashlib  # takes as long to import as all of this package that `load` needs
        return ("bytes", hashlib.blake2b(model, digest_size=16).digest())
    return None


def empty_cache() -> None:
    """Gives the GPU memory that rlx keeps for reuse back to the driver."""
    _core.cuda_empty_cache()


def reset(device: str = "cuda", *, force: bool = False) -> None:
    """Destroys a GPU's context, with all that the process has on that GPU, and begins anew.

    Sessions and arrays on that GPU raise StaleHandleError from then on. Other libraries of the
    process share the context (PyTorch does), so this asks for force=True. DeviceError where CUDA
    does not permit it, as after an illegal address on any GPU: then only a new process helps.
    """
    ordinal = gpu_ordinal(device)
    if not force:
        raise InputError("a reset takes the GPU from every library of this process",
                         remedy="rlx.reset(device, force=True)")
    with _lock:
        _sessions.clear()
    _core.cuda_reset(ordinal)


def devices() -> list[str]:
    """The devices that models can run on here, best first: "cuda:0" ..., "cpu"."""
    return list(_core.devices())
