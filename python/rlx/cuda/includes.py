"""What a source may include from the disk, as a digest: the key of a compilation has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import hashlib
import os
from pathlib import Path
import re

# A name that is included or asked about; a macro in its place cannot be followed.
_NAMED = re.compile(r'#\s*include\s*[<"]([^>"\n]+)[>"]|__has_include\s*\(\s*[<"]([^>"\n]+)[>"]')
_COMPUTED = re.compile(r'^\s*#\s*include\s+(?![<"])\w', re.MULTILINE)
_QUOTED = re.compile(r'"([^"\n]+)"')


def digest(text: str, headers: Mapping[str, str],
           include_paths: Iterable[str | os.PathLike[str]], program: str) -> str:
    """A digest of all files that the source can reach, "" if it reaches none.

    They lie below `include_paths` or beside `program`, the source's name in messages, where NVRTC
    looks for quoted names, or are named by their absolute paths. What the preprocessor would
    leave out counts too, and of several files with one name all do, so that the digest changes
    whenever the compiler could see something else. Where a macro is included, every file of the
    paths counts, and every file beside the source that the text names in quotes.
    """
    folders = [Path(path) for path in include_paths]
    beside = Path(program).parent
    texts = [(each, beside) for each in (text, *headers.values())]
    found: dict[Path, str] = {}
    while texts:
        current, folder = texts.pop()
        names = [match[1] or match[2] for match in _NAMED.finditer(current)]
        candidates = []
        if _COMPUTED.search(current):
            names += _QUOTED.findall(current)
            candidates += [f for path in folders for f in sorted(path.rglob("*"))]
        candidates += [place / name for place in (*folders, folder, beside) for name in names]
        for path in candidates:
            if path not in found and (read := _read(path)) is not None:
                found[path] = read
                texts.append((read, path.parent))
    if not found:
        return ""
    whole = hashlib.sha256()
    for path in sorted(found):
        contents = found[path].encode(errors="surrogateescape")
        whole.update(f"{path}\0{len(contents)}\0".encode(errors="surrogateescape"))
        whole.update(contents)
    return whole.hexdigest()


def _read(path: Path) -> str | None:
    """The text of a file; None for what is none, or cannot be read: no compiler can either."""
    try:
        return path.read_text(errors="surrogateescape") if path.is_file() else None
    except (OSError, ValueError):  # quotes may hold what is no name, or one that is too long
        return None
