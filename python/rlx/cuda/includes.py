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


def digest(text: str, headers: Mapping[str, str],
           include_paths: Iterable[str | os.PathLike[str]]) -> str:
    """A digest of all files below `include_paths` that the source can reach, "" without such.

    What the preprocessor would leave out counts too, and of several files with one name all do,
    so that the digest changes whenever the compiler could see something else. Where a macro is
    included, every file of the paths counts.
    """
    folders = [Path(path) for path in include_paths]
    if not folders:
        return ""
    texts = [(text, None), *((each, None) for each in headers.values())]
    found: dict[Path, str] = {}
    while texts:
        current, folder = texts.pop()
        if _COMPUTED.search(current):
            candidates = [f for path in folders for f in sorted(path.rglob("*"))]
        else:
            names = [match[1] or match[2] for match in _NAMED.finditer(current)]
            places = [*folders, *([folder] if folder else [])]
            candidates = [place / name for place in places for name in names]
        for path in candidates:
            if path not in found and path.is_file():
                found[path] = path.read_text(errors="surrogateescape")
                texts.append((found[path], path.parent))
    whole = hashlib.sha256()
    for path in sorted(found):
        contents = found[path].encode(errors="surrogateescape")
        whole.update(f"{path}\0{len(contents)}\0".encode(errors="surrogateescape"))
        whole.update(contents)
    return whole.hexdigest()
