"""Finds the code blocks of the documentation and runs those of a page, as a reader would."""

from __future__ import annotations

from dataclasses import dataclass
import doctest
import os
from pathlib import Path
import re
import subprocess
import sys

RUN = ("python", "sh")
SHOWN = ("text", "console", "yaml", "toml", "cpp")  # not run: output, layouts, other languages
_FENCE = re.compile(r"^```(\w*)( [^\n]*)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SEPARATOR = "\x1e"


@dataclass
class Block:
    """A fenced block: its language, its text, the line of its fence, the output shown below it."""

    language: str
    text: str
    line: int
    output: str | None = None


def blocks(page: Path) -> list[Block]:
    """The blocks of a page; one of text entitled "output" belongs to the block above it."""
    found: list[Block] = []
    text = page.read_text()
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match[2] and 'title="output"' in match[2]:
            found[-1].output = match[3]
        else:
            found.append(Block(match[1], match[3], line))
    return found


def _program(page: Path, part: list[Block]) -> str:
    """One Python program of the page's Python blocks, lines as in the page, output separated."""
    lines: list[str] = []
    for block in part:
        lines += [""] * (block.line - len(lines) - 1)
        lines.append(f"print({_SEPARATOR!r}, end='')")
        lines += block.text.splitlines()
    return "\n".join(lines) + "\n"


def _commands(folder: Path, source: Path) -> dict[str, str]:
    """An environment in which `python` and `rlx` are those of this interpreter."""
    tools = folder / "bin"
    tools.mkdir()
    for name, arguments in (("python", ""), ("rlx", " -m rlx")):
        script = tools / name
        script.write_text(f'#!/bin/sh\nexec {sys.executable}{arguments} "$@"\n')
        script.chmod(0o755)
    path = [p for p in sys.path if p and Path(p) != source]
    return os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100",
                         "PYTHONPATH": os.pathsep.join([*path, str(folder / "work")])}


def run(page: Path, folder: Path, source: Path) -> list[str]:
    """Runs a page's blocks in order, in a folder that has the repository's models; complaints."""
    work = folder / "work"
    work.mkdir()
    (work / "models").symlink_to(source / "models")
    environment = _commands(folder, source)
    given = [b for b in blocks(page) if b.language in RUN]
    program = [b for b in given if b.language == "python"]
    complaints = []
    for block in (b for b in given if b.language == "sh"):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], cwd=work, text=True,
                              env=environment, capture_output=True, timeout=300)
        complaints += _judged(page, block, done.returncode, done.stdout, done.stderr)
    if program:
        script = folder / page.with_suffix(".py").name
        script.write_text(_program(page, program))
        done = subprocess.run([sys.executable, script], cwd=work, text=True, env=environment,
                              capture_output=True, timeout=300)
        shown = done.stdout.split(_SEPARATOR)[1:]
        if done.returncode or len(shown) != len(program):
            return [*complaints, f"{page.name}: {done.stderr}"]
        for block, output in zip(program, shown):
            complaints += _judged(page, block, 0, output, "")
    return complaints


def _judged(page: Path, block: Block, status: int, output: str, error: str) -> list[str]:
    if status:
        return [f"{page.name}:{block.line}: exit {status}: {error or output}"]
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    if block.output is None or doctest.OutputChecker().check_output(block.output, output, flags):
        return []
    return [f"{page.name}:{block.line}: shows\n{block.output}but prints\n{output}"]
