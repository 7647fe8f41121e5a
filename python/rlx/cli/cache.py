"""rlx cache: list, measure or clear the folder of compiled GPU kernels."""

from __future__ import annotations

import argparse

from rlx.errors import InputError

EXAMPLES = """  rlx cache               what is cached
  rlx cache size
  rlx cache clear
  RLX_CUDA_PTX_CACHE=/shared/kernels rlx cache list"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("list", "size", "clear"), default="list",
                        help="list (default), size or clear")


def run(arguments: argparse.Namespace) -> int:
    from rlx.cli import show
    from rlx.kernel_cache import cache_info
    info = cache_info()
    where, files = info.folder, info.files
    if where is None:
        raise InputError("the cache is switched off by RLX_CUDA_PTX_CACHE=off")
    if arguments.action == "clear":
        for file in files:
            try:
                file.path.unlink(missing_ok=True)  # another process may have been quicker
            except OSError as error:
                raise InputError(f"cannot clear the cache: {error}") from error
    data = {"folder": str(where), "files": len(files), "bytes": info.bytes}
    if arguments.json:
        entries = [{"name": f.path.name, "bytes": f.bytes,
                    "modified": f.modified} for f in files]
        show.print_json({**data, "entries": entries} if arguments.action == "list" else data)
        return 0
    if arguments.action == "list" and files:
        import time
        show.table("", ["kernel", ">size", "last used"], [
            (f.path.name, show.size(f.bytes),
             time.strftime("%F %T", time.localtime(f.modified))) for f in files])
    done = "cleared: " if arguments.action == "clear" else ""
    show.line(f"{where}: {done}{len(files)} files, {show.size(info.bytes)}")
    return 0
