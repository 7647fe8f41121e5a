"""Print "INCLUDE_DIR;LIBRARY;NOTICES" of the installed oneDNN wheels; exit with 1 if missing."""

from importlib import metadata
from pathlib import Path
import sys


def installed_file(distribution: str, name: str) -> Path | None:
    """The path of a distribution's file called `name`, the shortest if there are several."""
    try:
        files = metadata.files(distribution) or []
    except metadata.PackageNotFoundError:
        return None
    matches = sorted((f for f in files if f.name == name), key=lambda f: len(f.parts))
    return Path(matches[0].locate()).resolve() if matches else None


header = installed_file("onednn-devel-cpu-gomp", "dnnl.hpp")
library = installed_file("onednn-cpu-gomp", "libdnnl.so.3")
notices = installed_file("onednn-cpu-gomp", "THIRD-PARTY-PROGRAMS")
if header is None or library is None or notices is None:
    sys.exit(1)
print(f"{header.parent};{library};{notices.parent}")
