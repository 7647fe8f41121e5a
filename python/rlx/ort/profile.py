"""The events of a session in Chrome's trace format, for SessionOptions.enable_profiling."""

from __future__ import annotations

import json
import os
import threading
import time
from datetime import datetime
from types import TracebackType
from typing import Any


class Trace:
    """Times of loading and of runs; nothing is kept unless profiling is enabled."""

    def __init__(self, enabled: bool, prefix: str):
        self.started_ns = time.monotonic_ns() if enabled else 0
        self._enabled, self._prefix = enabled, prefix
        self._events: list[dict[str, Any]] = []

    def event(self, name: str) -> _Event:
        """`with trace.event(name):` times its body."""
        return _Event(self, name)

    def add(self, name: str, start_ns: int) -> None:
        """An event of the calling thread that began then and ends now."""
        if self._enabled:
            self._events.append({
                "cat": "Session", "pid": os.getpid(), "tid": threading.get_native_id(),
                "dur": (time.monotonic_ns() - start_ns) // 1000,
                "ts": (start_ns - self.started_ns) // 1000, "ph": "X", "name": name, "args": {}})

    def end(self) -> str:
        """Writes the file and stops; its name, "" when there was nothing to stop."""
        if not self._enabled:
            return ""
        self._enabled = False
        path = f"{self._prefix}_{datetime.now():%Y-%m-%d_%H-%M-%S_%f}.json"
        with open(path, "w") as file:
            json.dump(self._events, file)
        return path


class _Event:
    __slots__ = ("trace", "name", "start")

    def __init__(self, trace: Trace, name: str):
        self.trace, self.name = trace, name

    def __enter__(self) -> None:
        self.start = time.monotonic_ns()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.trace.add(self.name, self.start)
