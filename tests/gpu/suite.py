"""Run the official cases on a device, in several processes: python -m tests.gpu.suite [--json F].

A case that breaks the GPU's context takes its process with it: a new one goes on.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
import json
import multiprocessing
import time

WORDS = 300  # characters of a message that are kept


def run_operator(operator: str, device: str) -> list[tuple[str, str, str]]:
    """(case, outcome, message) for each case of the operator: ok, unsupported, wrong or error.

    Those that the CPU's test leaves out, with its reasons, are left out here too.
    """
    from rlx import backend
    from rlx.errors import UnsupportedError
    from tests.onnx.official import cases_by_operator, check
    from tests.onnx.test_official import EXCEPTIONS
    rows = []

    def run(model, inputs):
        return list(backend.prepare(model, device).run(inputs))

    for case in cases_by_operator().get(operator, []):
        if case.name in EXCEPTIONS:
            continue
        outcome, text = "ok", ""
        try:
            check(case, run)
        except UnsupportedError as error:
            outcome, text = "unsupported", str(error)
        except AssertionError as error:
            outcome, text = "wrong", str(error)
        except Exception as error:  # noqa: BLE001 - every failure is listed
            outcome, text = "error", f"{type(error).__name__}: {error}"
        rows.append((case.name, outcome, text.replace("\n", " | ")[:WORDS]))
        if "lost CUDA for this process" in text or "CUDA is lost to this one" in text:
            break
    return rows


def run_all(operators: list[str], device: str, jobs: int, seconds: float) -> dict[str, list]:
    """Outcomes by operator; operators that did not finish in time are missing."""
    done: dict[str, list] = {}
    deadline = time.time() + seconds
    spawn = multiprocessing.get_context("spawn")
    waiting = list(operators)
    while waiting and time.time() < deadline:
        # Few operators to a pool, so that a lost context costs little.
        batch, waiting = waiting[:4 * jobs], waiting[4 * jobs:]
        with ProcessPoolExecutor(jobs, mp_context=spawn, max_tasks_per_child=4) as pool:
            futures = {name: pool.submit(run_operator, name, device) for name in batch}
            for name, future in futures.items():
                try:
                    done[name] = future.result(timeout=max(1.0, deadline - time.time()))
                except BrokenProcessPool:
                    done[name] = [(name, "error", "the process died")]
                except TimeoutError:
                    done[name] = [(name, "error", "took too long")]
    return done


def main() -> None:
    from tests.onnx.official import OPERATORS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operators", nargs="*", default=OPERATORS)
    parser.add_argument("--device", default="CUDA")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--json")
    given = parser.parse_args()
    done = run_all(given.operators, given.device, given.jobs, given.seconds)
    rows = [row for found in done.values() for row in found]
    if given.json:
        with open(given.json, "w") as file:
            json.dump(rows, file, indent=0)
    for case, outcome, text in rows:
        if outcome != "ok":
            print(f"{outcome:12} {case}: {text}")
    counts = {o: sum(row[1] == o for row in rows) for o in ("ok", "wrong", "error", "unsupported")}
    missing = len(given.operators) - len(done)
    print("official cases on", given.device, counts, f"operators not reached: {missing}")


if __name__ == "__main__":
    main()
