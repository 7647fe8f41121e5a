"""Session.update_weights: initializers get other values, in compiled programs too."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rlx import _core, feeds
from rlx.errors import InputError
from rlx.importer.loaded import LoadedModel, Weight
from rlx.ir.types import DType

if TYPE_CHECKING:
    from rlx.session import Session

_updates = itertools.count()


def update(session: Session, arrays: Mapping[str, Any]) -> None:
    """See Session.update_weights.

    Each program is compiled again up to its constants, which runs what folding, fusing and rounding
    derive from the weights. Where the program is otherwise what it was, its executable takes the
    constants over; else, since a value had decided its form, it gets a new executable.
    """
    with session._lock:
        _update(session, _with_weights(session._model, arrays))


def _update(session: Session, model: LoadedModel) -> None:
    compiled = list(session._compiled.items())
    programs: list[Any] = []
    for (_, outputs), executable in compiled:
        facts = session._facts_of[executable]
        try:
            programs.append(session._program(facts, outputs, model))
        except session._compiler.Specialise:
            programs.append(None)  # other facts decide it now: the next run finds them
    kept = [(e, p) for (_, e), p in zip(compiled, programs) if p is not None]
    took = _core.update_weights([e for e, _ in kept], [p for _, p in kept])
    session._model = model
    current = {e for (e, _), done in zip(kept, took) if done}
    for (key, executable), program in zip(compiled, programs):
        if executable not in current:
            _renew(session, key, executable, program)


def _renew(session: Session, key: tuple, executable: Any, program: Any) -> None:
    """Puts a new executable, if there is a program for it, in the place of one."""
    facts = session._facts_of.pop(executable)
    made = None if program is None else session._make(program, facts)
    if made is None:
        del session._compiled[key]
    else:
        session._compiled[key] = made
    if session._fast is executable:
        session._fast = made
    if session._current is executable:
        session._current = made


def _with_weights(model: LoadedModel, arrays: Mapping[str, Any]) -> LoadedModel:
    """The model with these values of its initializers; InputError for what does not fit."""
    known = model.graph.initializers
    if not isinstance(arrays, Mapping):
        raise InputError("weights are given by name", expected="a dict", got=type(arrays).__name__)
    changed = {}
    for name, given in arrays.items():
        if name not in known:
            raise InputError(f"the model has no initializer {name!r}",
                             expected=", ".join(list(known)[:20]) or "none")
        changed[name] = _weight(known[name], feeds.on_host(given))
    graph = dataclasses.replace(model.graph, initializers=known | changed)
    return dataclasses.replace(model, graph=graph)


def _weight(old: Weight, given: Any) -> Weight:
    array = np.asarray(given)
    if old.dtype is DType.STRING or old.packed:
        raise InputError(f"initializer {old.name!r} cannot be updated: its type is "
                         f"{old.dtype.name.lower()}", remedy="load the changed model")
    if array.dtype != old.dtype.numpy or array.shape != tuple(old.dims):
        raise InputError(f"initializer {old.name!r} has another type or shape",
                         expected=f"{old.dtype.name.lower()}{list(old.dims)}",
                         got=f"{array.dtype}{list(array.shape)}")
    own = np.array(array, order="C")  # the caller may change the array afterwards
    own.flags.writeable = False
    return Weight(old.name, old.dtype, old.dims, own.reshape(-1).view(np.uint8),
                  source=f"update {next(_updates)}")
