"""rlx verify: compare a run with a reference; name the first bad node and what is to blame."""

from __future__ import annotations

import argparse
from typing import Any

from rlx.cli import arguments as common

EXAMPLES = """  rlx verify model.onnx
  rlx verify model.onnx --input inputs.npz
  rlx verify model.onnx --against onnxruntime
  rlx verify model.onnx --force onednn --tolerance 1e-4"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_model(parser)
    common.add_inputs(parser)
    parser.add_argument("--against", choices=("float64", "onnxruntime"), default="float64",
                        help="the reference: float64 evaluation of the primitives (default), "
                             "or another runtime")
    parser.add_argument("--tolerance", type=float, metavar="X",
                        help="largest error of float32 values, as a part of the largest value "
                             "(default 1e-3); other types keep their ratio to it")


def run(arguments: argparse.Namespace) -> int:
    from rlx.cli import inputs, show
    from rlx.diagnose.compare import WHOLE
    from rlx.diagnose.verify import verify
    options = common.session_options(arguments)
    with common.load(arguments) as session:
        given = inputs.gather(session, arguments)
    against = None
    if arguments.against != "float64":
        from rlx.cli import peers
        against = peers.references(arguments.model, given)
    scale = 1.0 if arguments.tolerance is None else arguments.tolerance / WHOLE["float32"]
    with show.progress("verifying", None, arguments.json) as advance:
        verdict = verify(arguments.model, given, options, against=against, scale=scale,
                         advance=advance)
    data = {"inputs": inputs.describe(given), "against": arguments.against, **verdict.to_dict()}
    show.print_json(data) if arguments.json else _print(verdict, arguments.against)
    return 0 if verdict.right else 1


def _print(verdict: Any, against: str) -> None:
    from rlx.cli import show
    show.table(f"Outputs beside {against}", ["output", ">error", ">limit", "", ""], [
        (o["name"], f"{o['error']:.2e}", f"{o['limit']:.0e}", "right" if o["right"] else "WRONG",
         "" if o["right"] else o["what"]) for o in verdict.outputs])
    for op in verdict.unchecked:
        show.line(f"{op} has no reference: its values were taken as they are", "yellow")
    if verdict.right:
        worst = f", the worst {verdict.worst['error']:.2e} at {verdict.worst['name']}" \
            if verdict.worst else ""
        if verdict.node is not None:
            worst = f", all but some inside that depend on rounding, from {verdict.node!r} on"
        show.line(f"right: {verdict.compared} values compared{worst}", "bold green")
        return
    fused = f", run together with {', '.join(verdict.fused)}" if verdict.fused else ""
    show.line(f"first bad node: {verdict.op} {verdict.node!r}{fused}", "bold red")
    show.line(f"  its value {verdict.value!r} has error {verdict.error}")
    show.line(f"to blame: {verdict.blame}", "bold red")
    show.line(f"  {verdict.why}")
    if verdict.cure:
        options = " ".join(f"--{k} {v}" for k, vs in verdict.cure.items()
                           for v in ([vs] if isinstance(vs, str) else vs))
        show.line(f"  the run is right with {options}")
