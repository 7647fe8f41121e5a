"""Parses RE2's regular expressions, without look-around and back references as RE2 has none.

A tree node is a tuple: ("chars", test), ("assert", kind), ("cat", nodes), ("alt", nodes),
("repeat", node, least, most or None). `test` tells whether a character is in a class.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from rlx.errors import ModelError, UnsupportedError

Test = Callable[[str], bool]
_OCTAL = frozenset("01234567")
_MOST_REPEATS = 1000  # RE2's
_DEEPEST = 200

_DIGITS, _LOWER, _UPPER = "0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_WORD = frozenset(_DIGITS + _LOWER + _UPPER + "_")
_POSIX = {
    "alnum": _DIGITS + _LOWER + _UPPER, "alpha": _LOWER + _UPPER, "digit": _DIGITS,
    "ascii": "".join(map(chr, range(128))), "blank": "\t ", "lower": _LOWER, "upper": _UPPER,
    "cntrl": "".join(map(chr, [*range(32), 127])), "graph": "".join(map(chr, range(33, 127))),
    "print": "".join(map(chr, range(32, 127))), "punct": _PUNCTUATION, "space": "\t\n\v\f\r ",
    "word": "".join(_WORD), "xdigit": _DIGITS + "abcdefABCDEF",
}
_PERL = {"d": frozenset(_DIGITS), "s": frozenset("\t\n\f\r "), "w": _WORD}
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ASSERTIONS = {"A": "begin", "z": "end", "b": "word", "B": "not word"}
_POSSIBLE = {"L", "M", "N", "P", "S", "Z", "C"}  # first letters of general categories


def is_word(char: str) -> bool:
    """What \\w and \\b mean: ASCII only."""
    return char in _WORD


def parse(pattern: str):
    """The tree of a pattern; ModelError where it is malformed."""
    return _Parser(pattern).whole()


class _Parser:
    def __init__(self, pattern: str):
        self.text, self.at, self.depth = pattern, 0, 0
        self.flags: frozenset[str] = frozenset()

    def whole(self):
        node = self.alternatives()
        if self.at < len(self.text):
            raise self.error("unmatched )")
        return node

    def error(self, why: str) -> ModelError:
        return ModelError(f"the pattern is no regular expression: {why}", got=repr(self.text),
                          expected=f"RE2's syntax, at character {self.at}")

    def peek(self, word: str) -> bool:
        return self.text.startswith(word, self.at)

    def take(self, word: str) -> bool:
        found = self.peek(word)
        self.at += len(word) if found else 0
        return found

    def next(self) -> str:
        if self.at >= len(self.text):
            raise self.error("it ends too soon")
        self.at += 1
        return self.text[self.at - 1]

    def until(self, end: str) -> str:
        stop = self.text.find(end, self.at)
        if stop < 0:
            raise self.error(f"{end!r} is missing")
        found, self.at = self.text[self.at:stop], stop + len(end)
        return found

    # -- structure ---------------------------------------------------------------------------

    def alternatives(self):
        branches = [self.sequence()]
        while self.take("|"):
            branches.append(self.sequence())
        return branches[0] if len(branches) == 1 else ("alt", branches)

    def sequence(self):
        nodes: list = []
        while self.at < len(self.text) and not self.peek("|") and not self.peek(")"):
            if self.take("\\Q"):
                stop = self.text.find("\\E", self.at)
                stop = len(self.text) if stop < 0 else stop
                nodes += [self.literal(c) for c in self.text[self.at:stop]]
                self.at = min(stop + 2, len(self.text))
                continue
            atom = self.atom()
            if atom is not None:
                nodes.append(self.repeated(atom))
        return ("cat", nodes)

    def repeated(self, node):
        bounds = self.bounds()
        if bounds is None:
            return node
        self.take("?")  # as few as possible: the same strings match as a whole
        if self.bounds() is not None:  # RE2 refuses x** and x{2}{3} as mistakes
            raise self.error("a repetition is repeated")
        return ("repeat", node, *bounds)

    def bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(sign):
                return bounds
        if not self.peek("{"):
            return None
        start, inside = self.at, self.text.find("}", self.at)
        low, comma, high = self.text[start + 1:inside].partition(",")
        if inside < 0 or not low.isascii() or not low.isdigit() or not (high == "" or (
                high.isascii() and high.isdigit())):
            return None  # a literal brace
        self.at = inside + 1
        least, most = int(low), int(high) if high else None if comma else int(low)
        if max(least, most or 0) > _MOST_REPEATS or (most is not None and most < least):
            raise self.error(f"a repetition of {low}{comma}{high}")
        return least, most

    def atom(self):
        char = self.next()
        if char == "(":
            return self.group()
        if char == "[":
            return ("chars", self.bracket())
        if char == ".":
            return ("chars", bool if "s" in self.flags else lambda c: c != "\n")
        if char in "^$":
            line = "m" in self.flags
            return ("assert", {"^": "line begin" if line else "begin",
                               "$": "line end" if line else "end"}[char])
        if char in "*+?":
            raise self.error("nothing to repeat")
        return self.escape() if char == "\\" else self.literal(char)

    def group(self):
        outer = self.flags
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error("groups are nested too deeply")
        if self.take("?P<") or (self.peek("?<") and not self.peek("?<=") and not self.peek("?<!")
                                and self.take("?<")):
            if not self.until(">").isidentifier():
                raise self.error("a group's name is no name")
        elif self.take("?"):
            if self.set_flags():
                self.depth -= 1
                return None  # (?flags) holds up to the end of the group around it
        node = self.alternatives()
        if not self.take(")"):
            raise self.error(") is missing")
        self.flags = outer
        self.depth -= 1
        return node

    def set_flags(self) -> bool:
        """Reads flags after "(?"; True when they stand alone and False before a group."""
        on = True
        while True:
            char = self.next()
            if char == "-" and on:
                on = False
            elif char in "imsU":
                self.flags = self.flags | {char} if on else self.flags - {char}
            elif char in ":)":
                return char == ")"
            else:
                raise self.error("look-around and the like do not exist")

    # -- characters --------------------------------------------------------------------------

    def literal(self, char: str):
        return ("chars", self.folded(char.__eq__))

    def folded(self, test: Test) -> Test:
        if "i" not in self.flags:
            return test
        return lambda c: test(c) or test(c.lower()) or test(c.upper())

    def escape(self):
        if self.peek("z") or self.peek("A") or self.peek("b") or self.peek("B"):
            return ("assert", _ASSERTIONS[self.next()])
        return ("chars", self.escaped_class() or self.folded(self.escaped_char().__eq__))

    def escaped_class(self) -> Test | None:
        char = self.text[self.at:self.at + 1]
        if char.lower() in _PERL and char:
            self.at += 1
            return _inverted(_PERL[char.lower()].__contains__, char.isupper())
        if char not in ("p", "P"):
            return None
        self.at += 1
        name = self.until("}") if self.take("{") else self.next()
        negated = name.startswith("^") != (char == "P")
        name = name.lstrip("^")
        if name[:1] not in _POSSIBLE or len(name) > 2:
            raise UnsupportedError("of Unicode classes only general categories are known",
                                   expected="such as \\pL or \\p{Lu}", got=f"\\p{{{name}}}")
        return _inverted(lambda c: unicodedata.category(c).startswith(name), negated)

    def escaped_char(self) -> str:
        char = self.next()
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char == "x":
            digits = self.until("}") if self.take("{") else self.next() + self.next()
            return self.code(digits, 16)
        if char == "0" or (char in _OCTAL and self.text[self.at:self.at + 1] in _OCTAL):
            while len(char) < 3 and self.text[self.at:self.at + 1] in _OCTAL:
                char += self.next()
            return self.code(char, 8)
        if char.isascii() and char.isalnum():
            raise self.error(f"\\{char} has no meaning")
        return char

    def code(self, digits: str, base: int) -> str:
        try:
            return chr(int(digits, base))
        except (OverflowError, ValueError):
            raise self.error(f"{digits!r} is no character") from None

    def bracket(self) -> Test:
        negated, tests, first = self.take("^"), [], True
        while first or not self.peek("]"):
            first = False
            tests.append(self.bracket_item())
        self.take("]")
        found = self.folded(lambda c: any(test(c) for test in tests))
        return _inverted(found, negated)

    def bracket_item(self) -> Test:
        if self.take("[:"):
            name = self.until(":]")
            members = _POSIX.get(name.lstrip("^"))
            if members is None:
                raise self.error(f"there is no class [:{name}:]")
            return _inverted(members.__contains__, name.startswith("^"))
        low = self.next()
        if low == "\\":
            known = self.escaped_class()
            if known is not None:
                return known
            low = self.escaped_char()
        if not self.peek("-") or self.peek("-]"):
            return low.__eq__
        self.take("-")
        high = self.next()
        high = self.escaped_char() if high == "\\" else high
        if high < low:
            raise self.error(f"the range {low}-{high} is empty")
        return lambda c: low <= c <= high


def _inverted(test: Test, negated: bool) -> Test:
    return (lambda c: not test(c)) if negated else test
