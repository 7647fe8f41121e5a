"""Arguments that several commands share, and what they become."""

from __future__ import annotations

import argparse
import math
from typing import Any


def add_model(parser: argparse.ArgumentParser, runs: bool = True) -> None:
    """The model, how it is compiled, and where it runs, if it does."""
    parser.add_argument("model", metavar="MODEL", help="the .onnx file")
    group = parser.add_argument_group("options of the session")
    if runs:
        group.add_argument("--device", help="auto (default), cpu or cuda[:N]")
    group.add_argument("--threads", type=int, metavar="N",
                       help="CPU threads; 0 (default) takes what the machine allows")
    group.add_argument("--disable", action="append", metavar="PASS",
                       help="leave out a pass; may be repeated")
    group.add_argument("--force", metavar="RUNG",
                       help="insist on a rung where it applies (see rlx explain)")
    group.add_argument("--mode", help="of CUDA runs: graph (default), stream, multistream, eager")
    group.add_argument("--weights", help="f16 or bf16: hold float32 weights in half the memory")
    group.add_argument("--no-tf32", dest="tf32", action="store_false", default=None,
                       help="float32 products on CUDA are not rounded to TF32")
    group.add_argument("--memory-limit", type=int, metavar="BYTES",
                       help="refuse plans whose arena is larger")


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """What the model is fed."""
    group = parser.add_argument_group("inputs")
    group.add_argument("--input", action="append", default=[], metavar="[NAME=]FILE",
                       help="an .npy, .npz, PNG, JPEG or WAV file, or a literal as in sr=16000; "
                            "inputs without one are random")
    group.add_argument("--seed", type=natural, default=0, help="of the random inputs (default 0)")
    group.add_argument("--dim", action="append", default=[], metavar="NAME=N",
                       help="extent of a free dim; else the first axis has 1, height and width "
                            "of a picture 224, a sound 16000 samples, others 16")
    group.add_argument("--shape", action="append", default=[], metavar="NAME=2x3x4",
                       help="shape of a random input")
    group.add_argument("--mean", type=_numbers, default=[], metavar="R,G,B",
                       help="subtracted from pictures in 0..1")
    group.add_argument("--std", type=_divisors, default=[], metavar="R,G,B",
                       help="pictures are divided by it")


def session_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The keywords of rlx.load that were given."""
    names = ("device", "threads", "disable", "force", "mode", "weights", "tf32", "memory_limit")
    given = {name: getattr(arguments, name, None) for name in names}
    return {name: value for name, value in given.items() if value is not None}


def load(arguments: argparse.Namespace) -> Any:
    """The Session that the arguments ask for."""
    import os
    import rlx
    from rlx.cli import show
    with show.progress(f"loading {os.path.basename(arguments.model)}", None, arguments.json):
        return rlx.load(arguments.model, **session_options(arguments))


def natural(text: str) -> int:
    """An argparse type: a whole number from 0 on."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return value


def positive(text: str) -> int:
    """An argparse type: a whole number from 1 on."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return value


def seconds(text: str) -> float:
    """An argparse type: a length of time."""
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no length of time")
    return value


def _numbers(text: str) -> list[float]:
    numbers = [float(part) for part in text.split(",")]
    if not all(map(math.isfinite, numbers)):
        raise argparse.ArgumentTypeError(f"{text} is no finite number")
    return numbers


def _divisors(text: str) -> list[float]:
    numbers = _numbers(text)
    if 0 in numbers:
        raise argparse.ArgumentTypeError("nothing is divided by 0")
    return numbers
