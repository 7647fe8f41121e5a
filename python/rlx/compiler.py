"""From a model to its Program: reader, importer, passes, emit, one after the other.

Session imports this module when the first model is loaded, so that `import rlx` stays quick.
"""

from __future__ import annotations

import gc
import os
import threading
from typing import Any

from rlx import _core
from rlx.emit import emit
from rlx.host import function_of
from rlx.importer.importer import Facts, import_model
from rlx.importer.loaded import LoadedModel
from rlx.importer.reader import read
from rlx.ir.build import Specialise
from rlx.ir.types import HALF_NAMES
from rlx.options import Options
from rlx.passes import run_pipeline


def compile_model(model: LoadedModel, facts: Facts, outputs: tuple[str, ...] | None,
                  disable: tuple[str, ...], maps: dict[str, tuple] | None = None,
                  weights: str = "", seen: Any = None) -> Any:
    """The _core.Program of a model under `facts`; outputs names other values of it to give.

    `disable` and `weights` are those of run_pipeline.
    `maps` gets the keys of the outputs that are sequences of maps; `seen` is called with each
    graph, "imported" and then by the names of the passes, and ended.
    Raises Specialise when a further fact is needed, ModelError or UnsupportedError.
    """
    with _uncollected:
        graph = import_model(model, facts, outputs, maps)
        if seen is not None:
            seen("imported", graph)
        program = emit(run_pipeline(graph, disable, weights, seen),
                       lambda prim: function_of(prim.function, dict(prim.attributes)))
    if seen:
        seen.end()
    return program


class _Uncollected:
    """Without Python's collector, which would walk a growing graph in which nothing is garbage.

    It is the process's: the first of the threads that are inside turns it off, the last on again.
    """

    def __init__(self) -> None:
        self._enabled = False
        self._begin()
        os.register_at_fork(after_in_child=self._forget)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0

    def _forget(self) -> None:
        """A forked child has none of the threads that were inside but perhaps the one that forked,
        which has nothing to turn off any more."""
        if self._inside and self._enabled:
            gc.enable()
        self._begin()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._enabled = gc.isenabled()
                gc.disable()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside = max(self._inside - 1, 0)
            if self._inside == 0 and self._enabled:
                gc.enable()


_uncollected = _Uncollected()


def executable(program: Any, device: Any, packs: Any, options: Options) -> Any:
    """The _core.Executable of a Program."""
    return _core.Executable(program, device, packs, threads=options.threads, force=options.force,
                            plan_cache_bytes=options.plan_cache_bytes,
                            memory_limit=options.memory_limit,
                            record=options.mode not in ("stream", "eager"),
                            stepwise=options.mode == "eager", lanes=options.lanes)


def begin_libraries(model: LoadedModel, options: Options) -> None:
    """Has the GPU's libraries made ready that the model will ask for, while it is imported."""
    halves = HALF_NAMES.values()
    half = options.weights != "" or any(w.dtype in halves
                                        for w in model.graph.initializers.values())
    wanted = ("Conv", "Attention", "Softmax") if half else ("Conv",)  # float32 attention is ours
    dnn = any(name in node.op_type for node in model.graph.nodes for name in wanted)
    _core.begin_libraries(options.device, half=half, dnn=dnn)


__all__ = ["Facts", "Specialise", "begin_libraries", "compile_model", "executable", "read"]
