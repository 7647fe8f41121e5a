"""rlx cache: list, measure or clear the folder of compiled GPU kernels."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from rlx.errors import InputError

EXAMPLES = """  rlx cache               what is cached
  rlx cache size
  rlx cache clear
  RLX_CUDA_PTX_CACHE=/shared/kernels rlx cache list"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("list", "size", "clear"), default="list",
                        help="list (default), size or clear")


def folder() -> Path:
    """RLX_CUDA_PTX_CACHE, else rlx/kernels in XDG_CACHE_HOME, else in ~/.cache: as the core has
    it, which would open CUDA to answer."""
    chosen = os.environ.get("RLX_CUDA_PTX_CACHE")
    if chosen == "off":
        raise InputError("the cache is switched off by RLX_CUDA_PTX_CACHE=off")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "rlx" / "kernels"


def run(arguments: argparse.Namespace) -> int:
    from rlx.cli import show
    where = folder()
    files = _files(where)
    total = sum(size for _, size, _ in files)
    if arguments.action == "clear":
        for path, _, _ in files:
            try:
                path.unlink(missing_ok=True)  # another process may have been quicker
            except OSError as error:
                raise InputError(f"cannot clear the cache: {error}") from error
    data = {"folder": str(where), "files": len(files), "bytes": total}
    if arguments.json:
        entries = [{"name": str(p.relative_to(where)), "bytes": s, "modified": t}
                   for p, s, t in files]
        show.print_json({**data, "entries": entries} if arguments.action == "list" else data)
        return 0
    if arguments.action == "list" and files:
        import time
        show.table("", ["kernel", ">size", "written"], [
            (p.relative_to(where), show.size(s), time.strftime("%F %T", time.localtime(t)))
            for p, s, t in files])
    done = "cleared: " if arguments.action == "clear" else ""
    show.line(f"{where}: {done}{len(files)} files, {show.size(total)}")
    return 0


def _files(where: Path) -> list[tuple[Path, int, float]]:
    """Path, size and time of every kernel; links and other folders are left alone."""
    found = []
    for path in sorted(where.rglob("*")) if where.is_dir() else ():
        try:
            if path.is_file() and not path.is_symlink():
                stat = path.stat()
                found.append((path, stat.st_size, stat.st_mtime))
        except FileNotFoundError:  # removed meanwhile
            continue
    return found
