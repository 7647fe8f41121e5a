"""The errors rlx raises: one base class, its kinds, and the context they gather on the way up.

An error states what is wrong, at which node, what was expected and got, and what to try.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
import os
from types import TracebackType


class Error(Exception):
    """Base of all rlx errors.

    The text is `message` with the fields that are known below it. `got` and `expected` may be
    anything with a readable str(). `contexts` lists what rlx was doing, innermost first.
    """

    def __init__(
        self,
        message: str,
        *,
        node: str | None = None,
        op: str | None = None,
        domain: str | None = None,
        opset: int | None = None,
        expected: object = None,
        got: object = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.node = node
        self.op = op
        self.domain = domain
        self.opset = opset
        self.expected = expected
        self.got = got
        self.remedy = remedy
        self.contexts: list[str] = []

    def at(
        self,
        *,
        node: str | None = None,
        op: str | None = None,
        domain: str | None = None,
        opset: int | None = None,
    ) -> Error:
        """Fill in where it happened, keeping what is already known; returns the error."""
        self.node = node if self.node is None else self.node
        self.op = op if self.op is None else self.op
        self.domain = domain if self.domain is None else self.domain
        self.opset = opset if self.opset is None else self.opset
        return self

    def __str__(self) -> str:
        lines = [f"[{self.op}] {self.message}" if self.op else self.message]
        if self.node is not None:
            lines.append(f"node: {self.node!r}{self._operator()}")
        for title in ("expected", "got"):
            value = getattr(self, title)
            if value is not None:
                lines.append(f"{title}: {value}")
        if self.remedy:
            lines.append(f"try: {self.remedy}")
        lines += [f"while {what}" for what in self.contexts]
        return "\n  ".join(lines)

    def _operator(self) -> str:
        parts = [f"domain {self.domain}"] if self.domain else []
        if self.opset is not None:
            parts.append(f"opset {self.opset}")
        return f" ({', '.join(parts)})" if parts else ""


class ModelError(Error):
    """The model is malformed: cyclic, truncated, ambiguous, reaching outside its folder..."""


class ModelNotFoundError(ModelError, FileNotFoundError):
    """There is no file at the model's path, or at that of its external weights."""


class UnsupportedError(Error, NotImplementedError):
    """The model asks for an operator, attribute, type or version that rlx does not have."""


class InputError(Error, ValueError):
    """An argument does not fit: its name, rank, element type, shape, or a guard of the model."""


class DeviceError(Error, RuntimeError):
    """A device is missing, lacks a library, or failed."""


class MemoryLimitError(Error, MemoryError):
    """The memory needed exceeds the limit that was set, or what the machine has."""


class StaleHandleError(Error, RuntimeError):
    """A handle or buffer belongs to a context that has been reset."""


class InternalError(Error, RuntimeError):
    """rlx contradicts itself: a bug in rlx, not in the model or its inputs."""


class context:
    """`with context("importing", what):` adds a line to any rlx error that passes through.

    The text is only made when an error passes, so this may stand in a loop over nodes.
    """

    __slots__ = ("parts",)

    def __init__(self, *parts: object) -> None:
        self.parts = parts

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, Error):
            error.contexts.append(" ".join(str(part) for part in self.parts))


@contextmanager
def writing(what: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """`with writing("the outputs", path):` gives InputError, with the path, for what cannot be
    written there; the system names no file when a disk is full."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {what} to {os.fspath(path)!r}: "
                         f"{error.strerror or error}") from error
