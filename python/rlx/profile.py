"""What a profiled run did: times of steps and nodes, the arena over time, a trace, a page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from rlx.errors import writing
from rlx.live import model_name

if TYPE_CHECKING:
    from rlx.session import Session

RUN, PLAN, NODE, STEP, DEPTH, BEGIN, END = range(7)  # columns of Executable.profile's events


@dataclass(slots=True, eq=False)
class StepTime:
    """One step of the program, or the executor's own work in a Loop, If, Scan, sequence or host
    stage (`kind` "stage"). `seconds` has the time of each run, calls inside a loop added up."""

    node: str
    op: str
    also: tuple[str, ...]
    prim: str
    rung: str
    kind: str
    path: str
    seconds: np.ndarray
    calls: int = 0  # in one run

    @property
    def median(self) -> float:
        """Seconds, the median over the runs."""
        return float(np.median(self.seconds))


@dataclass(slots=True, eq=False)
class NodeTime:
    """One ONNX node with its steps; `also` names the nodes that are fused into it."""

    name: str
    op: str
    path: str
    also: tuple[str, ...]
    steps: list[StepTime] = field(default_factory=list)
    share: float = 0.0  # of the time in all steps

    @property
    def seconds(self) -> np.ndarray:
        """Seconds of each run."""
        return np.sum([s.seconds for s in self.steps], axis=0)

    @property
    def median(self) -> float:
        """Seconds, the median over the runs."""
        return float(np.median(self.seconds))


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one run: seconds from its begin, nested `depth` deep."""

    name: str
    step: StepTime | None  # None: a whole stage
    depth: int
    begin: float
    end: float
    arena: int             # bytes of the arena that hold something meanwhile


@dataclass(frozen=True, slots=True)
class Block:
    """A block of the arena while it is in use, in one run."""

    values: tuple[str, ...]  # empty: a workspace, of `node`
    node: str
    offset: int
    bytes: int
    begin: float
    end: float


class Profile:
    """Times of one or more runs of a Session, made by Session.profile.

    steps: StepTimes in the order they run. nodes: NodeTimes, the slowest first. runs: seconds of
    each run, from the call to its arrays. device, threads: where it ran. arena_bytes: its size.
    """

    def __init__(self, session: Session, measured: dict[str, Any], plan: list[dict[str, Any]]):
        self.device = session.device
        self.threads = session.options.threads or session._device.default_threads
        self.model = session._model.path or session._model.graph.name
        begins, ends = np.array(measured["begins"]), np.array(measured["ends"])
        self.runs = (ends - begins) / 1e9
        self.arena_bytes = session.counters()["arena_bytes"]
        self._begins = begins
        self._plans, self._events = measured["plans"], measured["events"]
        self._memory = plan
        self._by_key: dict[tuple[int, int, int], StepTime] = {}
        self.steps = self._gather()
        self.nodes = self._nodes()

    def __repr__(self) -> str:
        return f"<Profile of {model_name(self.model)} on {self.device}: {len(self.runs)} runs, " \
               f"median {1e3 * self.median:.3g} ms>"

    @property
    def in_steps(self) -> float:
        """Seconds of a run spent in steps, the median over the runs: the device's part."""
        return float(np.median(np.sum([s.seconds for s in self.steps], axis=0))) \
            if self.steps else 0.0

    @property
    def median(self) -> float:
        """Seconds of a run, the median over the runs."""
        return float(np.median(self.runs))

    def _gather(self) -> list[StepTime]:
        """Steps by what they are: plans that differ in dims only, as in loops, are added up."""
        found: dict[tuple, StepTime] = {}
        open_times: list[tuple[int, int]] = []  # (begin, length) not yet inside a stage
        for run, plan, node, step, _, begin, end in self._events.tolist():
            length = end - begin
            if node < 0:
                while open_times and open_times[-1][0] >= begin:
                    length -= open_times.pop()[1]
                open_times.append((begin, end - begin))
                if self._plans[plan]["report"]["prim"] == "Segment":
                    continue  # the walk from step to step: part of the run outside steps
            else:
                open_times.append((begin, length))
            time = self._step(found, plan, node, step)
            time.seconds[run] += length / 1e9
            time.calls += run == 0
        return list(found.values())

    def _step(self, found: dict[tuple, StepTime], plan: int, node: int, step: int) -> StepTime:
        known = self._by_key.get((plan, node, step))
        if known is not None:
            return known
        made = self._plans[plan]
        row = made["nodes"][node] if node >= 0 else made["report"]
        kind = row["steps"][step] if 0 <= step < len(row["steps"]) and node >= 0 else \
            "stage" if node < 0 else "launch"
        identity = (made["path"], made["stage"], node, step)
        time = found.get(identity)
        if time is None:
            time = found[identity] = StepTime(
                row["name"], row["op"], tuple(row["also"]), row["prim"], row["rung"], kind,
                made["path"], np.zeros(len(self.runs)))
        self._by_key[plan, node, step] = time
        return time

    def _nodes(self) -> list[NodeTime]:
        found: dict[tuple[str, str, str], NodeTime] = {}
        for step in self.steps:
            key = (step.path, step.node, step.op)
            node = found.setdefault(key, NodeTime(step.node, step.op, step.path, ()))
            node.also = tuple(dict.fromkeys(node.also + step.also))
            node.steps.append(step)
        total = sum(node.median for node in found.values())
        for node in found.values():
            node.share = node.median / total if total else 0.0
        return sorted(found.values(), key=lambda n: -n.median)

    def spans(self, run: int = -1) -> list[Span]:
        """The stages and steps of one run (the last, unless told) in order of their begins."""
        run = range(len(self.runs))[run]
        start = int(self._begins[run])
        found = []
        for r, plan, node, step, depth, begin, end in self._events.tolist():
            if r != run:
                continue
            made = self._plans[plan]
            time = self._by_key.get((plan, node, step))
            name = time.node if time is not None and time.node else made["report"]["prim"]
            found.append(Span(name, time if node >= 0 else None, depth, (begin - start) / 1e9,
                              (end - start) / 1e9, self._live(made["path"], made["stage"], node)))
        return sorted(found, key=lambda s: (s.begin, s.depth))

    def _live(self, path: str, stage: int, node: int) -> int:
        return sum(b["bytes"] for b in self._memory
                   if b["path"] == path and b["stage"] == stage and b["first"] <= node <= b["last"])

    def blocks(self, run: int = -1) -> list[Block]:
        """The arena of one run: what lay where, from its first step to the step after its last.
        What a later stage reads stays until something else takes its place, or to the end.
        Subgraphs are left out."""
        run = range(len(self.runs))[run]
        times: dict[int, dict[int, list[float]]] = {}  # stage -> node -> [begin, end]
        start = int(self._begins[run])
        for r, plan, node, _, _, begin, end in self._events.tolist():
            if r == run and node >= 0 and not self._plans[plan]["path"]:
                stage = times.setdefault(self._plans[plan]["stage"], {})
                stage.setdefault(node, [(begin - start) / 1e9, 0.0])[1] = (end - start) / 1e9
        found, kept = [], []
        for b in self._memory:
            nodes = times.get(b["stage"], {}) if not b["path"] else {}
            inside = [t for n, t in nodes.items() if b["first"] <= n <= b["last"]]
            if inside and b["bytes"]:
                later = [t[0] for n, t in nodes.items() if n > b["last"]]
                block = Block(tuple(b["values"]), b["node"], b["offset"], b["bytes"],
                              min(inside)[0], min(later, default=max(inside)[1]))
                (kept if b["last"] > max(nodes) else found).append(block)
        every = found + kept
        return found + [replace(k, end=min(
            (b.begin for b in every if b.begin >= k.end and b.offset < k.offset + k.bytes
             and k.offset < b.offset + b.bytes), default=float(self.runs[run]))) for k in kept]

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """The figures as plain data, for JSON; top: only so many nodes."""
        return {
            "model": self.model, "device": self.device, "threads": self.threads,
            "runs": self.runs.tolist(), "median": self.median, "in_steps": self.in_steps,
            "arena_bytes": self.arena_bytes,
            "nodes": [{"name": n.name, "op": n.op, "path": n.path, "also": list(n.also),
                       "median": n.median, "share": n.share,
                       "steps": [{"prim": s.prim, "rung": s.rung, "kind": s.kind,
                                  "median": s.median, "calls": s.calls} for s in n.steps]}
                      for n in self.nodes[:top]]}

    def to_chrome(self, path: str | PathLike[str]) -> None:
        """Writes a trace that chrome://tracing and ui.perfetto.dev open: every run, its stages and
        steps, and the arena's occupancy as a counter."""
        events = [{"ph": "M", "pid": 1, "tid": 1, "name": "process_name",
                   "args": {"name": f"rlx {self.model}"}},
                  {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name",
                   "args": {"name": self.device}}]
        for run in range(len(self.runs)):
            events += self._trace(run)
        _write(path, json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}))

    def _trace(self, run: int) -> Iterator[dict[str, Any]]:
        start = (int(self._begins[run]) - int(self._begins[0])) / 1e3
        place = {"pid": 1, "tid": 1}
        yield {"ph": "X", "name": f"run {run}", "cat": "run", "ts": start,
               "dur": self.runs[run] * 1e6, **place}
        for span in self.spans(run):
            step, at = span.step, start + span.begin * 1e6
            entry = {"ph": "X", "name": span.name, "cat": step.prim if step else "stage",
                     "ts": at, "dur": (span.end - span.begin) * 1e6, **place}
            if step is not None:
                entry["args"] = {"op": step.op, "primitive": step.prim, "rung": step.rung,
                                 "fused": ", ".join(step.also), "subgraph": step.path}
                yield {"ph": "C", "name": "arena bytes", "ts": at, "args": {"bytes": span.arena},
                       **place}
            yield entry
        yield {"ph": "C", "name": "arena bytes", "args": {"bytes": 0}, **place,
               "ts": start + self.runs[run] * 1e6}

    def to_html(self, path: str | PathLike[str]) -> None:
        """Writes one self-contained page: time line, arena over time, slowest nodes."""
        from rlx.profile_html import page
        _write(path, page(self))


def _write(path: str | PathLike[str], text: str) -> None:
    with writing("the profile", path), open(path, "w", encoding="utf-8") as file:
        file.write(text)
