"""RegexFullMatch: an automaton over RE2's syntax, whose time is linear in the text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rlx.errors import UnsupportedError
from rlx.host.regex_syntax import is_word, parse

_MOST_STATES = 20_000

# A state is ("chars", test, next), ("assert", kind, next), ("split", next, next) or ("match",).


def full_match(pattern: str) -> Callable:
    """Strings -> whether each matches the pattern as a whole."""
    automaton = _Automaton(parse(pattern))
    matches = automaton.matches

    def run(x: np.ndarray) -> np.ndarray:
        found = [matches(text) for text in x.reshape(-1)]
        return np.array(found, np.bool_).reshape(x.shape)

    return run


class _Automaton:
    def __init__(self, tree):
        self.states: list[tuple] = [("match",)]
        self.start = self.add(tree, 0)

    def state(self, *parts) -> int:
        if len(self.states) >= _MOST_STATES:
            raise UnsupportedError("the regular expression is too large",
                                   expected=f"at most {_MOST_STATES} states")
        self.states.append(parts)
        return len(self.states) - 1

    def add(self, tree, then: int) -> int:
        """The first state of `tree`, which goes on to the state `then`."""
        kind = tree[0]
        if kind in ("chars", "assert"):
            return self.state(kind, tree[1], then)
        if kind == "cat":
            for part in reversed(tree[1]):
                then = self.add(part, then)
            return then
        if kind == "alt":
            first = self.add(tree[1][-1], then)
            for part in reversed(tree[1][:-1]):
                first = self.state("split", self.add(part, then), first)
            return first
        return self.repeat(*tree[1:], then)

    def repeat(self, tree, least: int, most: int | None, then: int) -> int:
        if most is None:
            loop = self.state("split", then, then)
            self.states[loop] = ("split", self.add(tree, loop), then)
            first = loop
        else:
            first = then
            for _ in range(most - least):
                first = self.state("split", self.add(tree, first), then)
        for _ in range(least):
            first = self.add(tree, first)
        return first

    def matches(self, text: str) -> bool:
        current = self.closure([self.start], text, 0)
        for i, char in enumerate(text):
            moved = [s[2] for s in map(self.states.__getitem__, current)
                     if s[0] == "chars" and s[1](char)]
            current = self.closure(moved, text, i + 1)
            if not current:
                return False
        return 0 in current

    def closure(self, pending: list[int], text: str, at: int) -> set[int]:
        """What is reached without reading a character."""
        seen: set[int] = set()
        while pending:
            i = pending.pop()
            if i in seen:
                continue
            seen.add(i)
            state = self.states[i]
            if state[0] == "split":
                pending += state[1:]
            elif state[0] == "assert" and _holds(state[1], text, at):
                pending.append(state[2])
        return seen


def _holds(kind: str, text: str, at: int) -> bool:
    if kind in ("begin", "line begin"):
        return at == 0 or (kind == "line begin" and text[at - 1] == "\n")
    if kind in ("end", "line end"):
        return at == len(text) or (kind == "line end" and text[at] == "\n")
    before, after = at > 0 and is_word(text[at - 1]), at < len(text) and is_word(text[at])
    return (before != after) == (kind == "word")
