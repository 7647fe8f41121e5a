"""Counts what one run of each model takes: steps, stages, host calls, re-entries, arena bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

import models
import rlx

TABLE = Path(__file__).with_name("counts.json")
# Variable that names a folder with one subfolder for each of the models below.
FOLDER = os.environ.get("RLX_MODELS", "")
# Sizes of the open dims that are fed, by the model's name for them or (input, axis).
REAL: dict[str, dict] = {
    "silero-vad-v6": {("input", 0): 1, ("input", 1): 576, ("state", 1): 1},
    "piper-nakdimon": {"unk__1915": 1, "unk__1916": 40},
    "piper-en-us-joe-medium": {"batch_size": 1, "phonemes": 41},
    "nudenet-320n": {"batch": 1, "height": 320, "width": 320},
    "ppocr-v4-rec": {("x", 0): 1, ("x", 2): 48, ("x", 3): 320},
    "minilm-l6-int8w": {"batch": 1, "sequence": 128},
    "magika-v3": {"unk__214": 1},
    "caustic-nmr": {"num_atoms": 300, "num_edges": 3000, "num_residues": 40},
}
VALUES = {"sr": 16000, "input_lengths": 41, "scales": [0, 1, 0]}  # elements, by input; else 1
DIGITS = Path(models.__file__).with_name("digits")

Case = Callable[[], tuple[rlx.Session, dict[str, np.ndarray]]]


def cases() -> dict[str, Case]:
    """Model -> how to load it and what to feed; real models only where their folder is known."""
    found: dict[str, Case] = {name: _builder(module) for name, module in models.BUILDERS.items()}
    found["digits"] = _digits
    for name in REAL if FOLDER else ():
        found[name] = _real(Path(FOLDER) / name)
    return found


def measure(case: Case) -> dict[str, Any]:
    """The counts of a first run and the re-entries of a second one."""
    session, given = case()
    with session:
        session.run(given)
        first = session.counters()
        session.run(given)
        second = session.counters()
        rows = session.explain()
    return {
        "steps": sum(len(row["steps"]) for row in rows),
        "nodes": len(rows),
        "stages": first["stage_binds"],
        "host_calls": first["host_calls"],
        "reentries": second["imports"] - first["imports"],
        "replans": second["stage_binds"] - first["stage_binds"],
        "arena_bytes": first["arena_bytes"],
    }


def _builder(module) -> Case:
    return lambda: (rlx.load(module.build(), threads=1), module.inputs())


def _digits() -> tuple[rlx.Session, dict[str, np.ndarray]]:
    session = rlx.load(DIGITS / "digits.onnx", threads=1)
    return session, {"image": np.load(DIGITS / "three.npy")}


def _real(folder: Path) -> Case:
    sizes = REAL[folder.name]

    def load() -> tuple[rlx.Session, dict[str, np.ndarray]]:
        session = rlx.load(next(iter(sorted(folder.rglob("*.onnx")))), threads=1)
        given = {}
        for info in session.inputs:
            shape = [d if isinstance(d, int) else sizes.get((info.name, axis)) or sizes[d]
                     for axis, d in enumerate(info.shape)]
            given[info.name] = np.full(shape, VALUES.get(info.name, 1), info.dtype)
        return session, given
    return load


def instruction_set() -> str:
    """What kernels choose their tiles by, and with them the bytes of workspaces."""
    flags = Path("/proc/cpuinfo").read_text().split() if Path("/proc/cpuinfo").exists() else []
    return next((isa for isa in ("avx512f", "avx2") if isa in flags), "other")


def stored() -> dict[str, dict[str, Any]]:
    return json.loads(TABLE.read_text())


def main(names: list[str]) -> Iterator[str]:
    """Measures the named models (all when none is) anew and stores their rows."""
    table = stored() if TABLE.exists() else {}
    for name, case in cases().items():
        if not names or name in names:
            table[name] = {**measure(case), "isa": instruction_set()}
            yield f"{name}: {table[name]}"
            TABLE.write_text(json.dumps(dict(sorted(table.items())), indent=1) + "\n")

