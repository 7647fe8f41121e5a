"""States: values that grow from run to run and stay in place, such as a decoder's past."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rlx._load import load_core
from rlx.errors import InputError, UnsupportedError

if TYPE_CHECKING:
    from rlx.session import Session

_core = load_core()


class State:
    """The growing values of one conversation with a Session; see Session.state.

    Not for use from several threads at once; a Session may have many States.
    """

    def __init__(self, session: Session, pairs: Mapping[str, str], axis: int, capacity: int):
        graph = session._model.graph
        for name, result in pairs.items():
            for known, missing, what in ((graph.inputs, name, "input"),
                                         (graph.outputs, result, "output")):
                if missing not in known:
                    raise InputError(f"there is no {what} named {missing!r}",
                                     expected=", ".join(known))
        if not pairs or capacity < 1:
            raise InputError("a state needs pairs and a capacity", expected="at least 1 of each",
                             got=f"{len(pairs)} pairs, capacity {capacity}")
        self._session, self._capacity = session, capacity
        self._pairs = tuple((name, result, axis) for name, result in pairs.items())
        self._denied: frozenset[str] = frozenset()
        self._core: Any = None
        self._executable: Any = None
        self._open()

    def _open(self) -> None:
        """Compiles the model with the pairs as states, under the assumptions that hold."""
        compiler = self._session._compiler
        facts = compiler.Facts(denied=self._denied, states=self._pairs, capacity=self._capacity)
        with self._session._lock:
            try:
                self._executable = self._session._executable(facts)
            except compiler.Specialise as need:
                raise UnsupportedError(f"a state needs a model of fixed form: {need}") from need
        self._core = _core.State(self._executable)

    def run(self, given: dict[str, Any], out: Any = None) -> dict[str, Any]:
        """Session.run with this state; `given` is normalised already."""
        while True:
            try:
                result = self._executable.run(given, out, self._core)
                self._session._current = self._executable
                return result
            except _core.Respecialise as failed:
                if failed.args[0] in self._denied:
                    raise
                self._denied |= {failed.args[0]}
                given = {**self._held(), **given}
                self._open()

    def _held(self) -> dict[str, np.ndarray]:
        return {} if self._empty else {name: self.value(name) for name, _, _ in self._pairs}

    @property
    def _empty(self) -> bool:
        return not self._core.filled

    def value(self, name: str) -> np.ndarray:
        """A copy of what is held for the input `name`."""
        for i, (given, _, _) in enumerate(self._pairs):
            if given == name:
                return self._core.value(i)
        raise InputError(f"the state has no {name!r}",
                         expected=", ".join(given for given, _, _ in self._pairs))

    def clear(self) -> None:
        """Forgets everything: the next run starts with empty values, in the same memory."""
        self._core.clear()
