"""What commands print: rich tables, progress on stderr, JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

WIDE = 200  # columns of output that goes to a file or a pipe


def console() -> Any:
    """The console of results; wide when nobody's terminal limits it."""
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # the command ends quietly, see main

    return Piped(width=None if sys.stdout.isatty() else WIDE, highlight=False)


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable[Any]],
          caption: str = "") -> None:
    """Prints a table; a column whose name begins with ">" is set to the right."""
    from rich.markup import escape
    from rich.table import Table
    made = Table(title=escape(title) or None, title_justify="left", title_style="bold",
                 caption=escape(caption) or None, caption_justify="left", show_edge=False,
                 header_style="bold cyan", pad_edge=False)
    for name in columns:
        right = name.startswith(">")
        made.add_column(name.lstrip(">"), justify="right" if right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(escape(str(cell)) for cell in row))
    console().print(made)


def line(text: str = "", style: str = "") -> None:
    """Prints a line as it is, in a style where there is a terminal."""
    from rich.text import Text
    console().print(Text(text, style=style), soft_wrap=True)


def print_json(data: Any) -> None:
    """One JSON document; NaN and infinities, which JSON lacks, are text."""
    print(json.dumps(_plain(data), indent=2, ensure_ascii=False))


def _plain(x: Any) -> Any:
    if isinstance(x, dict):
        return {str(k): _plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [_plain(v) for v in x]
    if hasattr(x, "tolist"):
        return _plain(x.tolist())
    if isinstance(x, float) and not math.isfinite(x):
        return str(x)
    if x is None or isinstance(x, (bool, int, float, str)):
        return x
    return str(x)


@contextmanager
def progress(what: str, total: int | None, quiet: bool = False) -> Iterator[Callable[..., None]]:
    """A bar on stderr while long work is done; call what it gives once for each piece, with a
    text that says which. total None: it is not known how much there is."""
    if quiet or not sys.stderr.isatty():
        yield lambda text="": None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)

        def advance(text: str = "") -> None:
            bar.update(task, advance=1, description=f"{what} {text}".strip())

        yield advance


def size(count: float) -> str:
    """Bytes for people: 1.5 MB."""
    for unit in ("B", "KB", "MB"):
        if abs(count) < 1000:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.2f} GB"


def duration(seconds: float) -> str:
    """A time for people: 1.25 ms."""
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}" if seconds < 1000 else f"{seconds:.0f} s"
    return f"{seconds * 1e9:.0f} ns"


def shape(dims: Iterable[Any] | None) -> str:
    """[batch, 3, ?]; "?" alone for a shape that is not known."""
    if dims is None:
        return "?"
    return f"[{', '.join('?' if d is None else str(d) for d in dims)}]"
