"""rlx explain: what was decided for every ONNX node, and why; the program; the memory plan."""

from __future__ import annotations

import argparse
from typing import Any

from rlx.cli import arguments as common

EXAMPLES = """  rlx explain model.onnx
  rlx explain model.onnx --dim batch=8 --memory
  rlx explain model.onnx --ir
  rlx explain model.onnx --disable regions --ir"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_model(parser)
    common.add_inputs(parser)
    parser.add_argument("--ir", nargs="?", const="final", choices=("final", "imported"),
                        help="print the program instead: after the passes, or before them")
    parser.add_argument("--memory", action="store_true",
                        help="print the arena instead: what lies where, and how long")


def run(arguments: argparse.Namespace) -> int:
    from rlx.cli import inputs, show
    from rlx.diagnose.decisions import decisions
    with common.load(arguments) as session:
        given = inputs.gather(session, arguments)
        facts, executable, _ = session._settle(given)
        if arguments.ir:
            text = _program(session, facts, arguments.ir == "final")
            show.print_json({"ir": text}) if arguments.json else print(text, end="")
            return 0
        if arguments.memory:
            return _memory(session, executable.memory_plan(), arguments)
        rows = decisions(session, facts)
        known = {row["node"] for row in rows}
        extra = [row for row in session.explain() if row["name"] not in known]
        data = {"device": session.device, "inputs": inputs.describe(given), "nodes": rows,
                "other_steps": extra}
    show.print_json(data) if arguments.json else _nodes(data)
    return 0


def _program(session: Any, facts: Any, final: bool) -> str:
    from rlx.importer.importer import import_model
    from rlx.ir.printer import print_graph
    from rlx.passes import run_pipeline
    graph = import_model(session._model, facts)
    if final:
        graph = run_pipeline(graph, session.left_out, session.options.weights)
    return print_graph(graph)


def _nodes(data: dict[str, Any]) -> None:
    from rlx.cli import show
    lines = []
    for row in data["nodes"]:
        steps = row["steps"]
        lines.append((row["node"], row["op"], row["decision"],
                      " ".join(dict.fromkeys(s["prim"] for s in steps)),
                      "; ".join(dict.fromkeys(s["rung"] for s in steps)), row["why"]))
    fed = ", ".join(f"{r['name']} {r['dtype']}{show.shape(r['shape'])}" for r in data["inputs"])
    show.table(f"on {data['device']} with {fed}",
               ["ONNX node", "op", "decision", "primitive", "rung", "why"], lines)
    counts = {d: sum(r["decision"] == d for r in data["nodes"])
              for d in ("runs", "fused", "alias", "removed", "imported", "expanded")}
    steps = sum(len(s["steps"]) for r in data["nodes"] for s in r["steps"])
    steps += sum(len(s["steps"]) for s in data["other_steps"])
    show.line(f"{len(data['nodes'])} nodes, {steps} steps: "
              + ", ".join(f"{n} {d}" for d, n in counts.items() if n))


def _memory(session: Any, plan: list[dict[str, Any]], arguments: argparse.Namespace) -> int:
    from rlx.cli import show
    counters = session.counters()
    arena, apart = counters["arena_bytes"], sum(block["bytes"] for block in plan)
    if arguments.json:
        show.print_json({"arena_bytes": arena, "bytes_without_reuse": apart,
                         "packed_weight_bytes": counters["pack_bytes"], "blocks": plan})
        return 0
    show.table("", ["stage", ">offset", ">size", "nodes", "holds"], [
        (f"{b['path']}{b['stage']}", b["offset"], show.size(b["bytes"]),
         f"{b['first']}..{b['last']}",
         " = ".join(v or "?" for v in b["values"]) or f"workspace of {b['node']}")
        for b in sorted(plan, key=lambda b: (b["path"], b["stage"], b["first"], b["offset"]))])
    show.line(f"arena {show.size(arena)}; {show.size(apart)} without reuse; packed weights "
              f"{show.size(counters['pack_bytes'])}")
    return 0
