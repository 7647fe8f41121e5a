"""States: values that grow from run to run and stay in place, such as a decoder's past."""

from __future__ import annotations

from collections.abc import Mapping
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from rlx import _core
from rlx.errors import InputError, UnsupportedError
from rlx.live import Live, place

if TYPE_CHECKING:
    from rlx.session import Session


class State(Live):
    """The growing values of one conversation with a Session; see Session.state.

    Not for use from several threads at once; a Session may have many States.
    """

    _instead = "ask the Session of the process that needs it for a state"

    def __init__(self, session: Session, pairs: Mapping[str, str], axis: int, capacity: int):
        if not isinstance(pairs, Mapping):
            raise InputError("the pairs of a state are no dict", got=type(pairs).__name__,
                             expected="input name -> output name")
        axis, capacity = _whole("axis", axis), _whole("capacity", capacity)
        if not pairs or not 1 <= capacity < 2**63:
            raise InputError("a state needs pairs and a capacity", expected="at least 1 of each",
                             got=f"{len(pairs)} pairs, capacity {capacity}")
        inputs = {info.name: info for info in session.inputs}
        outputs = [info.name for info in session.outputs]
        self.session, self._capacity = session, capacity
        self._pairs = tuple((name, result, _checked_axis(inputs, outputs, name, result, axis))
                            for name, result in pairs.items())
        _check_once(pairs)
        self._denied: frozenset[str] = frozenset()
        self._core: Any = None
        self._filled = False  # by a run since the beginning or `clear`
        self._executable: Any = None
        self._facts: Any = None
        self._open()

    def __repr__(self) -> str:
        names = [name for name, _, _ in self._pairs]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return f"<State of {place(self.session)}: {', '.join(names[:3])}{more}>"

    def _open(self) -> None:
        """Compiles the model with the pairs as states, under the assumptions that hold."""
        compiler = self.session._compiler
        self._facts = compiler.Facts(denied=self._denied, states=self._pairs,
                                     capacity=self._capacity)
        with self.session._lock:
            try:
                self._executable = self.session._executable(self._facts)
            except compiler.Specialise as need:
                raise UnsupportedError(f"a state needs a model of fixed form: {need}") from need
        self._core = _core.State(self._executable)

    def run(self, given: dict[str, Any], out: Any = None) -> dict[str, Any]:
        """Session.run with this state; `given` is normalised already."""
        if self._executable not in self.session._facts_of:  # another has its place
            given = {**self._held(), **given}
            self._open()
        while True:
            try:
                result = self.session._run(self._executable, self._facts, given, out, self._core)
                self.session._current, self._filled = self._executable, True
                return result
            except _core.Respecialise as failed:
                if failed.args[0] in self._denied:
                    raise
                self._denied |= {failed.args[0]}
                given = {**self._held(), **given}
                self._open()

    def _held(self) -> dict[str, np.ndarray]:
        return {name: self.value(name) for name, _, _ in self._pairs} if self._filled else {}

    def value(self, name: str) -> np.ndarray:
        """A copy of what is held for the input `name`."""
        for i, (given, _, _) in enumerate(self._pairs):
            if given == name:
                return self._core.value(i)
        raise InputError(f"the state has no {name!r}",
                         expected=", ".join(given for given, _, _ in self._pairs))

    def counters(self) -> dict[str, int]:
        """What was done in runs with states of this form: see Session.counters."""
        return dict(self._executable.counters())

    def clear(self) -> None:
        """Forgets everything: the next run starts with empty values, in the same memory."""
        self._core.clear()
        self._filled = False


def _whole(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise InputError(f"the {name} of a state is no whole number", got=repr(value)) from None


def _check_once(pairs: Mapping[str, str]) -> None:
    """No output continues two inputs."""
    first: dict[str, str] = {}
    for name, result in pairs.items():
        if first.setdefault(result, name) != name:
            raise InputError(f"output {result!r} cannot continue two inputs",
                             got=f"{first[result]!r} and {name!r}")


def _checked_axis(inputs: Mapping, outputs: list[str], name: str, result: str, axis: int) -> int:
    """The axis, counted from the first, along which the pair grows."""
    if name not in inputs:
        raise InputError(f"there is no input {name!r}", expected=", ".join(inputs))
    if result not in outputs:
        raise InputError(f"there is no output {result!r}", expected=", ".join(outputs))
    shape = inputs[name].shape or ()
    if not -len(shape) <= axis < len(shape) or isinstance(shape[axis], int):
        raise InputError(f"input {name!r} cannot grow along axis {axis}", got=shape,
                         expected="an axis of open size")
    return axis % len(shape)
