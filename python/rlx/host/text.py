"""String functions of host steps: casts, normalising, joining, splitting, unique strings."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from rlx.errors import InputError

_SPECIAL = {"nan": "NaN", "inf": "INF", "-inf": "-INF"}  # as the text of Cast spells them


def _strings(items: Iterable[str], shape: tuple[int, ...]) -> np.ndarray:
    made = np.empty(shape, object)
    made.reshape(-1)[:] = list(items)
    return made


def format_numbers() -> Callable:
    """Numbers as the shortest text that gives them back."""

    def run(x: np.ndarray) -> np.ndarray:
        if x.dtype.kind in "biu" or "int" in x.dtype.name:
            return _strings(map(str, x.reshape(-1).tolist()), x.shape)
        # float16 and larger know their shortest text; the smaller floats are shown as float32.
        known = x if x.dtype.kind == "f" else x.astype(np.float32)
        return _strings((_SPECIAL.get(t := str(v), t) for v in known.reshape(-1)), x.shape)

    return run


def parse_numbers(dtype: np.dtype) -> Callable:
    """Text to numbers of `dtype`; plain and scientific notation, NaN and INF in any case."""
    whole = dtype.kind in "iu" or "int" in dtype.name
    truth = {"true": 1, "1": 1, "false": 0, "0": 0}

    def number(text: str):
        word = text.strip()
        try:
            if "_" in word:
                raise ValueError("an underscore is no digit")
            if dtype.kind == "b":
                return truth[word.lower()]
            return _whole(word) if whole else float(word)
        except (KeyError, OverflowError, ValueError) as error:
            raise InputError(f"a string is no number of type {dtype}", got=repr(text[:60]),
                             expected="such as 3, -0.25, 1e-5, NaN or INF") from error

    def run(x: np.ndarray) -> np.ndarray:
        numbers = [number(t) for t in x.reshape(-1)]
        try:
            wide = np.array(numbers, object if whole else np.float64)
            return wide.astype(dtype).reshape(x.shape)
        except (OverflowError, ValueError) as error:
            raise InputError(f"a string's number does not fit {dtype}") from error

    return run


def _whole(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        return int(float(word))  # which a cast from float would truncate too


def normalise(action: str, case_sensitive: bool, stopwords: tuple[str, ...]) -> Callable:
    """StringNormalizer: drops stop words, then changes case; [C] or [1, C]."""
    change = {"LOWER": str.lower, "UPPER": str.upper, "NONE": str}[action]
    compare = str if case_sensitive else str.lower
    dropped = {compare(w) for w in stopwords}

    def run(x: np.ndarray) -> np.ndarray:
        kept = [change(t) for t in x.reshape(-1) if compare(t) not in dropped] or [""]
        return _strings(kept, (*x.shape[:-1], len(kept)))

    return run


def concat() -> Callable:
    """StringConcat, with broadcasting."""

    def run(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(np.add(x, y, dtype=object), object)

    return run


def split(delimiter: str, maxsplit: int | None) -> Callable:
    """StringSplit -> (substrings padded with "", their numbers); "" splits at white space."""
    limit = -1 if maxsplit is None else maxsplit

    def run(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts = [t.split(delimiter or None, limit) for t in x.reshape(-1)]
        counts = np.array([len(p) for p in parts], np.int64).reshape(x.shape)
        longest = int(counts.max(initial=0))
        padded = (s for p in parts for s in (*p, *[""] * (longest - len(p))))
        return _strings(padded, (*x.shape, longest)), counts

    return run


def unique(axis: int | None) -> Callable:
    """Unique of strings in the order of their code points -> y, first indices, inverse, counts."""

    def run(x: np.ndarray) -> tuple[np.ndarray, ...]:
        if axis is None:
            keys = x.reshape(-1).tolist()
        else:
            lines = np.moveaxis(x, axis, 0)
            keys = [tuple(line.reshape(-1).tolist()) for line in lines]
        first: dict = {}
        counts: dict = {}
        for i, key in enumerate(keys):
            first.setdefault(key, i)
            counts[key] = counts.get(key, 0) + 1
        order = sorted(first)
        place = {key: i for i, key in enumerate(order)}
        at = np.array([first[key] for key in order], np.int64)
        y = x.reshape(-1)[at] if axis is None else np.take(x, at, axis)
        inverse = np.array([place[key] for key in keys], np.int64)
        return y, at, inverse, np.array([counts[key] for key in order], np.int64)

    return run
