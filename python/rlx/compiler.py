"""From a model to its Program: reader, importer, passes, emit, one after the other.

Session imports this module when the first model is loaded, so that `import rlx` stays quick.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlx.emit import emit
from rlx.host import function_of
from rlx.importer.importer import Facts, import_model
from rlx.importer.loaded import LoadedModel
from rlx.importer.reader import read
from rlx.ir.build import Specialise
from rlx.ir.graph import Graph
from rlx.passes import run_pipeline


def compile_model(model: LoadedModel, facts: Facts, outputs: tuple[str, ...] | None,
                  disable: tuple[str, ...], maps: dict[str, tuple] | None = None,
                  weights: str = "", seen: Callable[[str, Graph], object] | None = None) -> Any:
    """The _core.Program of a model under `facts`; outputs names other values of it to give.

    `disable` and `weights` are those of run_pipeline.
    `maps` gets the keys of the outputs that are sequences of maps; `seen` is called with each
    graph, "imported" and then by the names of the passes.
    Raises Specialise when a further fact is needed, ModelError or UnsupportedError.
    """
    graph = import_model(model, facts, outputs, maps)
    if seen is not None:
        seen("imported", graph)
    return emit(run_pipeline(graph, disable, weights, seen),
                lambda prim: function_of(prim.function, dict(prim.attributes)))


def convolves(model: LoadedModel) -> bool:
    """Whether the model will ask for a library of convolutions."""
    return any("Conv" in node.op_type for node in model.graph.nodes)


__all__ = ["Facts", "Specialise", "compile_model", "convolves", "read"]
