"""The facts about a run's inputs that the import of its model needs, found in what is fed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rlx import feeds
from rlx.compiler import Facts, Specialise
from rlx.errors import InputError, UnsupportedError
from rlx.importer.loaded import LoadedGraph


class Needs:
    """(kind, value name) of each fact, in the order in which they can be found."""

    def __init__(self, graph: LoadedGraph) -> None:
        self._graph = graph
        self._needs: list[tuple[str, str]] = []

    def note(self, need: Specialise, at: int | None = None) -> None:
        """Lists a fact that imports need, before the one (at `at`) that takes it to be found."""
        fact = (need.kind, need.value.name)
        if fact in self._needs or not need.value.name:
            raise UnsupportedError(f"cannot specialise the model: {need}") from need
        self._needs.insert(len(self._needs) if at is None else at, fact)

    def facts(self, given: dict[str, Any], denied: frozenset[str],
              executable: Callable[[Facts, tuple[str, ...]], Any]) -> Facts:
        """What is known of these inputs; `denied` are assumptions that do not hold.

        executable: gives the _core.Executable for other outputs. Raises InputError, naming it, when
        an input is missing.
        """
        graph = self._graph
        known: dict[str, dict[str, Any]] = {"ranks": {}, "shapes": {}, "values": {}, "present": {}}
        fed = frozenset(name for name in graph.defaults if given.get(name) is not None)
        for i, (kind, name) in enumerate(self._needs):
            if kind == "presence":
                known["present"][name] = given.get(name) is not None
                continue
            if name not in graph.inputs:
                try:
                    computes = executable(Facts(**known, fed=fed, denied=denied), (name,))
                except Specialise as need:
                    self.note(need, i)
                    return self.facts(given, denied, executable)
                x = computes.run(given)[name]
            elif given.get(name) is not None:
                x = feeds.on_host(given[name]) if kind == "value" else given[name]
            elif ("presence", name) in self._needs or name in graph.defaults:
                continue  # an absent optional has none of them, a default knows its own
            else:
                raise InputError(f"input {name!r} is missing", expected=", ".join(graph.inputs))
            if isinstance(x, list):
                x = x[0] if x else np.zeros(0)
            if kind == "rank":
                known["ranks"][name] = x.ndim
            elif kind == "shape":
                known["shapes"][name] = x.shape
            else:
                known["values"][name] = x
        return Facts(**known, fed=fed, denied=denied)
