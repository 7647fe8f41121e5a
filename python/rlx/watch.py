"""What a Session tells while it works: lines on stderr, a trace of its last run, its programs."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from rlx import _core
from rlx.errors import writing

if TYPE_CHECKING:
    from rlx.ir.graph import Graph
    from rlx.options import Options
    from rlx.session import Session


class Watch:
    """Made for a Session whose options ask for something to be told; sees all that it does."""

    def __init__(self, session: Session):
        self._session, self._options = session, session.options
        self._lock = threading.Lock()
        self._plans: dict[Any, int] = {}  # of each executable: how many were told about
        self._programs = 0
        if self._options.verbose:
            _say(f"a session on {session.device}")

    @staticmethod
    def of(session: Session) -> Watch | None:
        """A Watch, if the session's options need one."""
        return Watch(session) if _wanted(session.options) else None

    def compiling(self) -> _Compilation:
        """Tells about a program that is being made; called with each of its graphs."""
        with self._lock:
            self._programs += 1
            return _Compilation(self._options, self._programs)

    def run(self, executable: Any, facts: Any, *arguments: Any) -> dict[str, Any]:
        """Executable.run(*arguments), told about. With a trace the device works step by step."""
        if not self._options.trace:
            results = executable.run(*arguments)
            with self._lock:
                self._tell(executable, facts)
            return results
        profiler = _core.Profiler()
        results = executable.run(*arguments, profiler=profiler)
        from rlx.profile import Profile
        with self._lock:
            self._tell(executable, facts)
            self._session._current = executable
            Profile(self._session, profiler.measured(executable),
                    executable.memory_plan()).to_chrome(self._options.trace)
        return results

    def _tell(self, executable: Any, facts: Any) -> None:
        """What was decided, if this run made new plans."""
        counters = executable.counters()
        if self._plans.get(executable) == counters["plans"]:
            return
        self._plans[executable] = counters["plans"]
        rows = executable.explain()
        if self._options.verbose:
            _say(f"plan {counters['plans']}: {len(rows)} nodes, {counters['arena_bytes']} bytes of "
                 f"arena, {counters['bind_ns'] / 1e9:.3f} s in all for plans")
        if self._options.dispatch_report:
            for row in rows:
                why = f": {row['reason']}" if row["reason"] else ""
                _say(f"dispatch {row['name']!r} ({row['op']}): {row['prim']}, "
                     f"{row['rung'] or 'no step'}{why}")
        if self._options.fusion_report:
            from rlx.diagnose.decisions import decisions
            self._session._current = executable
            for row in decisions(self._session, facts):
                why = f": {row['why']}" if row["why"] else ""
                _say(f"fusion {row['node']!r} ({row['op']}): {row['decision']}{why}")


class _Compilation:
    """Called with the graph after import, "imported", and after each pass; then told of the end."""

    def __init__(self, options: Options, number: int):
        self._options, self._number = options, number
        self._began = time.perf_counter()
        self._nodes: list[int] = []

    def __call__(self, name: str, graph: Graph) -> None:
        self._nodes.append(len(graph.nodes))
        folder = self._options.ir_dump
        if not folder:
            return
        from rlx.ir.printer import print_graph
        path = os.path.join(folder, f"program{self._number}-{len(self._nodes) - 1:02d}-{name}.txt")
        with writing("the program", path):
            os.makedirs(folder, exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(print_graph(graph))

    def end(self) -> None:
        if self._options.verbose:
            _say(f"program {self._number}: {self._nodes[0]} nodes, {self._nodes[-1]} after the "
                 f"passes, {time.perf_counter() - self._began:.3f} s")


def _wanted(options: Options) -> bool:
    return bool(options.trace or options.dispatch_report or options.fusion_report
                or options.verbose or options.ir_dump)


def _say(text: str) -> None:
    print(f"rlx: {text}", file=sys.stderr)
