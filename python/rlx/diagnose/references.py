"""Float64 references of a run: of every named value, and of each primitive on its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlx.diagnose.compare import ALONE, Difference, difference
from rlx.emit.schedule import schedule
from rlx.errors import UnsupportedError
from rlx.host import function_of
from rlx.ir.evaluate import Evaluator
from rlx.ir.graph import Graph, Host, If, Loop, Node, Scan
from rlx.ir.reference import REFERENCES

Place = tuple[str, int, int]  # path of the subgraph, stage, node: as Executable.capture names them


@dataclass(frozen=True, slots=True)
class Given:
    """What one node of the program gave in one of its runs."""

    node: Node
    turn: int  # 0, or the iteration of a loop
    outputs: list[Any]


def captured(executable: Any, feeds: dict[str, Any],
             graph: Graph) -> tuple[list[Given], dict[str, Any]]:
    """One run node by node, and its outputs; `graph` is the program's, after its passes."""
    nodes = dict(_places(graph, ""))
    turns: dict[Place, int] = {}
    found = []
    rows, results = executable.capture(feeds)
    for path, stage, index, outputs in rows:
        place = (path, stage, index)
        turns[place] = turns.get(place, -1) + 1
        found.append(Given(nodes[place], turns[place], outputs))
    return found, results


def _places(graph: Graph, path: str) -> Iterator[tuple[Place, Node]]:
    for s, stage in enumerate(schedule(graph)):
        if isinstance(stage, list):
            yield from (((path, s, i), node) for i, node in enumerate(stage))
            continue
        prim, inner = stage.prim, f"{path}{type(stage.prim).__name__} {s}"
        if isinstance(prim, If):
            yield from _places(prim.then_graph, f"{inner} then / ")
            yield from _places(prim.else_graph, f"{inner} else / ")
        elif isinstance(prim, (Loop, Scan)):
            yield from _places(prim.body, f"{inner} / ")


class _Float64(Evaluator):
    """Evaluates in float64; host steps run their function, which is its own reference."""

    def __init__(self, advance: Callable[..., None]):
        super().__init__(double=True)
        self.advance = advance

    def primitive(self, node: Node, inputs: list, number: Any) -> list:
        if not isinstance(node.prim, Host):
            return super().primitive(node, inputs, number)
        results = function_of(node.prim.function, dict(node.prim.attributes))(*inputs)
        several = isinstance(results, (tuple, list)) and len(node.outputs) != 1
        return list(results) if several else [results]


class Whole(_Float64):
    """Evaluates a graph in float64 and keeps the values of some names, one for each turn.

    What has no reference (random numbers) is taken from the run, by the name of its output.
    """

    def __init__(self, wanted: set[str], run: list[Given], advance: Callable[..., None]):
        super().__init__(advance)
        self.wanted = wanted
        self.values: dict[str, list[Any]] = {}
        self.unchecked: set[str] = set()  # operators without a reference
        self.drawn = {v.name: x for given in run if type(given.node.prim) not in REFERENCES
                      for v, x in zip(given.node.outputs, given.outputs) if v is not None}

    def node(self, node: Node, env: dict[int, Any], number: Any) -> None:
        super().node(node, env, number)
        for v in node.outputs:
            if v is not None and v.name in self.wanted:
                self.values.setdefault(v.name, []).append(env[v.id])
        self.advance()

    def primitive(self, node: Node, inputs: list, number: Any) -> list:
        names = [v.name for v in node.outputs if v is not None]
        drawn = type(node.prim) not in REFERENCES and not isinstance(node.prim, Host)
        if drawn and all(name in self.drawn for name in names):
            self.unchecked.add(node.origin.op)
            return [None if v is None else self.enter(v, self.drawn[v.name])
                    for v in node.outputs]
        return super().primitive(node, inputs, number)


@dataclass(frozen=True, slots=True)
class Alone:
    """A node of the program whose results are not what its primitive gives on its inputs."""

    node: Node
    difference: Difference


class Replay(_Float64):
    """Evaluates each primitive on the inputs that it had in the run, and goes on with what the
    run gave: an error is seen where it is made, and nowhere after it."""

    def __init__(self, run: list[Given], advance: Callable[..., None]):
        super().__init__(advance)
        self.wrong: list[Alone] = []
        self.given: dict[int, deque[list[Any]]] = {}
        for given in run:
            self.given.setdefault(id(given.node), deque()).append(given.outputs)

    def primitive(self, node: Node, inputs: list, number: Any) -> list:
        self.advance()
        if isinstance(node.prim, Host):
            return super().primitive(node, inputs, number)
        given = self.given[id(node)].popleft()
        try:
            expected = super().primitive(node, inputs, number)
        except UnsupportedError:  # it has no reference
            expected = given
        results = []
        for v, found, wanted in zip(node.outputs, given, expected):
            if v is None or found is None:
                results.append(None if v is None else wanted)
                continue
            found = _as_found(found, np.shape(wanted))
            apart = difference(found, wanted, ALONE)
            if apart.bad:
                self.wrong.append(Alone(node, apart))
            results.append(self.enter(v, found))
        return results


def _as_found(x: Any, shape: tuple[int, ...]) -> Any:
    """Without the rest of a buffer that was planned for more elements than were found."""
    size = int(np.prod(shape, dtype=np.int64))
    return x if x.shape == shape or x.size < size else x.reshape(-1)[:size].reshape(shape)
