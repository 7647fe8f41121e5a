"""Fail if code for AVX2 or AVX-512 could be linked in place of a function of baseline code.

An inline function or template that several files use is emitted by each and the linker keeps any
one copy. If that copy comes from a file compiled for a newer instruction set, older machines stop
with an illegal instruction. Usage: check_isa.py NM OBJECT...
"""

from collections import defaultdict
from pathlib import Path
import re
import subprocess
import sys


def instruction_set(name: str) -> str:
    """What the convention for file names says an object was compiled for."""
    found = re.search(r"_(avx2|avx512)\.cpp\.o$", name)
    return found[1] if found else "baseline"


def weak_functions(nm: str, obj: str) -> list[str]:
    """Functions that an object defines for the linker to choose from."""
    listing = subprocess.run([nm, "--defined-only", obj], check=True, text=True,
                             capture_output=True).stdout
    entries = (line.split() for line in listing.splitlines())
    return [entry[-1] for entry in entries if len(entry) == 3 and entry[1] == "W"]


def main(nm: str, objects: list[str]) -> int:
    objects = [obj for obj in objects if obj.endswith(".o")]  # precompiled headers are listed too
    if all(instruction_set(obj) == "baseline" for obj in objects):
        return 0
    where: dict[str, dict[str, str]] = defaultdict(dict)
    for obj in objects:
        for symbol in weak_functions(nm, obj):
            where[symbol].setdefault(instruction_set(obj), Path(obj).name)
    shared = {symbol: sets for symbol, sets in where.items() if len(sets) > 1}
    for symbol, sets in sorted(shared.items()):
        print(f"{symbol} is emitted by {' and '.join(sorted(sets.values()))}")
    if shared:
        print("Put what these files share into an anonymous namespace, make it always inline, or "
              "give it a template parameter for the instruction set.")
    return bool(shared)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
