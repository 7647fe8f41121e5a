"""Runs in the background: a Future that can also be awaited, and the threads behind it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None


class RunFuture(Future):
    """A concurrent.futures.Future whose result may also be awaited in asyncio code."""

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.wrap_future(self).__await__()


def submit(call: Callable[[], Any]) -> RunFuture:
    """Calls it on a thread of the process's pool; cancel() works until it has begun."""
    future = RunFuture()

    def work() -> Any:
        return call() if future.set_running_or_notify_cancel() else None

    def done(inner: Future) -> None:
        error = inner.exception()
        if future.cancelled():
            return
        if error is None:
            future.set_result(inner.result())
        else:
            future.set_exception(error)

    _threads().submit(work).add_done_callback(done)
    return future


def _threads() -> ThreadPoolExecutor:
    global _pool
    with _lock:
        if _pool is None:
            # As many as run at once on all cores; a run divides its own work among threads too.
            _pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)), "rlx-run")
        return _pool


def _forget() -> None:
    """A forked child has none of the parent's threads: it starts its own."""
    global _lock, _pool
    _lock, _pool = threading.Lock(), None


os.register_at_fork(after_in_child=_forget)
