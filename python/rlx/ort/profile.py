"""The events of a session in Chrome's trace format, for SessionOptions.enable_profiling."""

from __future__ import annotations

import json
import os
import threading
import time
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlx.session import Session


class Trace:
    """Times of loading and of runs; nothing is kept unless profiling is enabled."""

    def __init__(self, enabled: bool, prefix: str):
        self.started_ns = time.monotonic_ns() if enabled else 0
        self.enabled, self._prefix = enabled, prefix
        self.last: dict[str, Any] | None = None  # inputs of the last run
        self.provider = ""
        self._events: list[dict[str, Any]] = []

    def event(self, name: str) -> _Event:
        """`with trace.event(name):` times its body."""
        return _Event(self, name)

    def add(self, name: str, start_ns: int) -> None:
        """An event of the calling thread that began then and ends now."""
        if self.enabled:
            self._events.append({
                "cat": "Session", "pid": os.getpid(), "tid": threading.get_native_id(),
                "dur": (time.monotonic_ns() - start_ns) // 1000,
                "ts": (start_ns - self.started_ns) // 1000, "ph": "X", "name": name, "args": {}})

    def end(self, session: Session) -> str:
        """Writes the file and stops; its name, "" when there was nothing to stop.

        Nodes are those of one more run on the last inputs: a run cannot tell their times unless
        it measures them, which would slow down all the others.
        """
        if not self.enabled:
            return ""
        if self.last is not None:
            self._add_nodes(session)
        self.enabled, self.last = False, None
        path = f"{self._prefix}_{datetime.now():%Y-%m-%d_%H-%M-%S_%f}.json"
        with open(path, "w") as file:
            json.dump(self._events, file)
        return path

    def _add_nodes(self, session: Session) -> None:
        start = (time.monotonic_ns() - self.started_ns) // 1000
        for span in session.profile(self.last, runs=1).spans():
            if span.step is not None:
                self._events.append({
                    "cat": "Node", "pid": os.getpid(), "tid": threading.get_native_id(),
                    "dur": round((span.end - span.begin) * 1e6),
                    "ts": start + round(span.begin * 1e6), "ph": "X",
                    "name": f"{span.name}_kernel_time",
                    "args": {"op_name": span.step.op, "provider": self.provider,
                             "fused": ", ".join(span.step.also), "rung": span.step.rung}})


class _Event:
    __slots__ = ("trace", "name", "start")

    def __init__(self, trace: Trace, name: str):
        self.trace, self.name = trace, name

    def __enter__(self) -> None:
        self.start = time.monotonic_ns()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.trace.add(self.name, self.start)
