"""Compiling before the first run: for this machine's GPU, or for others without having one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from rlx import _core, feeds
from rlx.errors import InputError, writing
from rlx.feeds import Info
from rlx.ir.types import DType
from rlx.session import Session

LENGTH = 16        # of free dims but the first
BATCHES = (1, 2)   # of a free first dim: a batch of 1 is another form of many kernels


class _Offline(Session):
    """A Session for a GPU that is not there: it binds and compiles, and runs nothing."""

    def __init__(self, model: Any, capability: int, libraries: bool, folder: str, **options: Any):
        self._target = capability, libraries, folder
        super().__init__(model, **options, device="cpu")  # nothing of a GPU is opened here

    def _make_device(self) -> Any:
        return _core.make_offline_device(*self._target, self.options.tf32,
                                         self.options.weights != "")


def prepare(session: Session, inputs: Any = None) -> None:
    """Session.prepare."""
    for each in _zeros(session) if inputs is None else (inputs,):
        _bind(session, feeds.normalise(each, session._model.graph, session.device != "cpu"))
    _core.finish_kernels(session._device)


def _bind(session: Session, given: dict[str, Any]) -> None:
    denied: frozenset[str] = frozenset()
    while True:
        try:
            session._specialise(given, denied)[1].prepare(given)
            return
        except _core.Respecialise as failed:
            if failed.args[0] in denied:
                raise
            denied |= {failed.args[0]}


def compile(model: Any, output: str | os.PathLike[str], inputs: Any = None, *,
            architectures: Iterable[str] = ("sm_90",), **options: Any) -> list[str]:
    """Compiles the GPU kernels of a model into the folder `output`; needs NVRTC and no GPU.

    The folder is a kernel cache: RLX_CUDA_PTX_CACHE names it on a machine with such a GPU and the
    same rlx and NVRTC, or its files are copied into that machine's own. Gives their names.
    inputs: as for Session.run, of the shapes to expect; zeros unless given, see Session.prepare.
    architectures: "sm_80", "sm_90" ... options: as for rlx.load, but device.
    Kernels are those for machines with cuBLAS and cuDNN and for those without. What is decided
    only while a model runs (bodies of loops, sizes that data decide) is compiled there.
    Raises ModelError, InputError or UnsupportedError as rlx.load and Session.run do.
    """
    from rlx import compiler
    capabilities = [_capability(name) for name in architectures]
    loaded = compiler.read(model)
    folder = Path(output)
    with writing("kernels", folder):
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()  # a cache that cannot be written is else done without
    for capability in capabilities:
        for libraries in (True, False):
            with _Offline(loaded, capability, libraries, str(folder), **options) as session:
                prepare(session, inputs)
    return sorted(path.name for path in folder.glob("*.cubin"))


def _capability(name: str) -> int:
    found = re.fullmatch(r"(?:sm_)?(\d{2,3})a?", name)
    if found is None:
        raise InputError("this is no GPU architecture", expected="sm_80, sm_90 ...", got=name)
    return int(found[1])


def _zeros(session: Session) -> list[dict[str, np.ndarray]]:
    """Inputs for each batch to prepare for; one when all shapes are known."""
    infos = [i for i in session.inputs if i.name not in session._model.graph.defaults]
    for info in infos:
        if info.shape is None or info.dtype.upper() not in DType.__members__:
            raise InputError(f"input {info.name!r} has no shape to prepare for",
                             remedy="session.prepare(inputs)", got=info.dtype)
    free = any(not isinstance(d, int) for info in infos for d in info.shape)
    return [{info.name: _zero(info, batch) for info in infos}
            for batch in (BATCHES if free else BATCHES[:1])]


def _zero(info: Info, batch: int) -> np.ndarray:
    shape = [d if isinstance(d, int) else LENGTH if axis else batch
             for axis, d in enumerate(info.shape)]
    dtype = DType[info.dtype.upper()]
    return np.full(shape, "", object) if dtype is DType.STRING else np.zeros(shape, dtype.numpy)
