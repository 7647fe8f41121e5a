"""The cases that speed is guarded by, and the table of their ratios to onnxruntime's time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
import json
from pathlib import Path

from tests.bench import cases

TABLE = Path(__file__).with_name("baseline.json")
# Between two measurements of one build on a shared machine.
SLACK = 1.3


@dataclass(frozen=True)
class Case:
    make: Callable[[], cases.Pair]
    rounds: int
    calls: int
    large: bool = False


CASES = {
    "add of 4": Case(cases.add, 30, 200),
    "chain of 300 on 4": Case(partial(cases.chain, 4), 20, 20),
    "chain of 300 on 1000": Case(partial(cases.chain, 1000), 20, 20),
    **{name: Case(partial(cases.network, name), 12, 1, large=True) for name in cases.SIZES},
}


def stored() -> dict[str, float]:
    return json.loads(TABLE.read_text()) if TABLE.exists() else {}


def measure(name: str, pair: cases.Pair) -> float:
    """rlx's time over onnxruntime's."""
    case = CASES[name]
    return pair.ratio(case.rounds, case.calls)


def store(names: list[str]) -> None:
    """Measures the named cases (all when none is) anew and writes their ratios."""
    table = stored()
    for name, case in CASES.items():
        if not names or name in names:
            pair = case.make()
            pair.check()
            table[name] = round(measure(name, pair), 3)
            print(f"{name}: {table[name]}", flush=True)
            TABLE.write_text(json.dumps(dict(sorted(table.items())), indent=1) + "\n")
