"""Runs a program with rlx.ort in onnxruntime's place: python -m rlx.ort [-m] PROGRAM [ARGS...]."""

from __future__ import annotations

import os
import runpy
import sys

from rlx.ort import install


def main(arguments: list[str]) -> None:
    """Runs a script, or with -m a module, as Python itself would."""
    as_module = arguments[:1] == ["-m"]
    program = arguments[as_module:]
    if not program:
        sys.exit("usage: python -m rlx.ort [-m] PROGRAM [ARGS...]")
    install()
    sys.argv = program
    if as_module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(program[0])))
        runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
