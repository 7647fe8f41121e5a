"""rlx bench: how fast a model runs, and other runtimes beside it in the same process."""

from __future__ import annotations

import argparse
import time
from typing import Any

from rlx.cli import arguments as common

EXAMPLES = """  rlx bench model.onnx
  rlx bench model.onnx --dim batch=8 --threads 4 --seconds 10
  rlx bench model.onnx --vs onnxruntime,openvino
  rlx bench model.onnx --vs onnxruntime --runs 200 --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_model(parser)
    common.add_inputs(parser)
    parser.add_argument("--vs", default="", metavar="PEER,...",
                        help="onnxruntime, openvino, torch (through onnx2torch)")
    parser.add_argument("--seconds", type=common.seconds, default=3.0,
                        help="how long to measure (default 3)")
    parser.add_argument("--runs", type=common.positive, metavar="N",
                        help="measure so many runs of each instead")


def run(arguments: argparse.Namespace) -> int:
    import rlx
    from rlx.cli import inputs, peers, show
    start = time.perf_counter()
    with common.load(arguments) as session:
        loaded = time.perf_counter() - start
        given = inputs.gather(session, arguments)
        start = time.perf_counter()
        results = session.run(given)
        first = time.perf_counter() - start
        threads = session.options.threads or session._device.default_threads
        runners: dict[str, Any] = {"rlx": lambda: session.run(given)}
        versions, missing = {"rlx": rlx.__version__}, {}
        for name in filter(None, arguments.vs.split(",")):
            try:
                versions[name], runners[name] = peers.open_peer(name, arguments.model, given,
                                                                threads)
            except peers.Missing as error:
                missing[name] = str(error)
        with show.progress("measuring", None, arguments.json) as advance:
            times = peers.interleaved(runners, arguments.seconds, arguments.runs, advance)
        profile = session.profile(given, min(len(times["rlx"]), 50))
        rows = [_row(name, times[name], times["rlx"], versions[name],
                     None if name == "rlx" else _differences(results, runners[name]()))
                for name in runners]
        data = {"device": session.device, "threads": threads, "load_seconds": loaded,
                "first_run_seconds": first, "inputs": inputs.describe(given),
                "device_seconds": profile.in_steps,
                "host_seconds": max(profile.median - profile.in_steps, 0.0),
                "runtimes": rows, "missing": missing}
    show.print_json(data) if arguments.json else _print(data)
    wrong = any(row["right"] is False for row in rows)
    return 1 if wrong or missing else 0


def _row(name: str, times: Any, own: Any, version: str, apart: Any) -> dict[str, Any]:
    import numpy as np
    p50, p90, p99 = (float(np.percentile(times, q)) for q in (50, 90, 99))
    return {"name": name, "version": version, "runs": len(times), "p50": p50, "p90": p90,
            "p99": p99, "min": float(times.min()), "ratio": p50 / float(np.median(own)),
            "error": None if apart is None else apart.error,
            "right": None if apart is None else not apart.bad}


def _differences(results: dict[str, Any], other: dict[str, Any]) -> Any:
    """The worst Difference of the outputs that both have."""
    from rlx.diagnose.compare import difference
    found = [difference(x, other[name]) for name, x in results.items() if name in other]
    return max(found, key=lambda d: d.error - d.limit, default=None)


def _print(data: dict[str, Any]) -> None:
    from rlx.cli import show
    fed = ", ".join(f"{r['name']} {r['dtype']}{show.shape(r['shape'])}" for r in data["inputs"])
    rows = []
    for r in data["runtimes"]:
        beside = "" if r["right"] is None else \
            f"{r['error']:.1e} {'right' if r['right'] else 'WRONG'}"
        rows.append((r["name"], r["version"], r["runs"],
                     *(show.duration(r[k]) for k in ("p50", "p90", "p99", "min")),
                     "" if r["right"] is None else f"{r['ratio']:.2f}x", beside))
    show.table(f"{data['device']}, {data['threads']} threads, {fed}",
               ["runtime", "version", ">runs", ">p50", ">p90", ">p99", ">min",
                ">time / rlx", "results beside rlx"], rows)
    for name, why in data["missing"].items():
        show.line(f"{name}: {why}", "yellow")
    show.line(f"rlx: load {show.duration(data['load_seconds'])}, first run "
              f"{show.duration(data['first_run_seconds'])}; of a run "
              f"{show.duration(data['device_seconds'])} device, "
              f"{show.duration(data['host_seconds'])} host")
