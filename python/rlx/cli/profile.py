"""rlx profile: where the time of a run goes: a table, a trace, a picture."""

from __future__ import annotations

import argparse
from typing import Any

from rlx.cli import arguments as common

EXAMPLES = """  rlx profile model.onnx
  rlx profile model.onnx --html profile.html       a page to look at
  rlx profile model.onnx --chrome trace.json       for ui.perfetto.dev
  rlx profile model.onnx --runs 100 --top 30 --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_model(parser)
    common.add_inputs(parser)
    parser.add_argument("--runs", type=common.positive, default=20, help="(default 20)")
    parser.add_argument("--top", type=common.positive, default=20, metavar="N",
                        help="show the N slowest nodes (default 20)")
    parser.add_argument("--html", metavar="FILE", help="write a page with the time line here")
    parser.add_argument("--chrome", metavar="FILE", help="write a Chrome or Perfetto trace here")


def run(arguments: argparse.Namespace) -> int:
    from rlx.cli import inputs, show
    with common.load(arguments) as session:
        given = inputs.gather(session, arguments)
        with show.progress("profiling", None, arguments.json):
            profile = session.profile(given, arguments.runs)
    if arguments.html:
        profile.to_html(arguments.html)
    if arguments.chrome:
        profile.to_chrome(arguments.chrome)
    if arguments.json:
        show.print_json({"inputs": inputs.describe(given), **profile.to_dict(arguments.top)})
    else:
        _print(profile, arguments)
    return 0


def _print(profile: Any, arguments: argparse.Namespace) -> None:
    from rlx.cli import show
    show.table("", ["ONNX node", "op", "runs as", ">calls", ">median", ">share"], [
        (n.path + n.name, n.op, ", ".join(dict.fromkeys(f"{s.prim}: {s.rung}" for s in n.steps)),
         max(s.calls for s in n.steps), show.duration(n.median), f"{n.share:.1%}")
        for n in profile.nodes[:arguments.top]])
    more = len(profile.nodes) - arguments.top
    if more > 0:
        show.line(f"and {more} nodes more", "dim")
    show.line(f"median of {len(profile.runs)} runs {show.duration(profile.median)}, "
              f"{show.duration(profile.in_steps)} in steps; arena {show.size(profile.arena_bytes)}"
              f"; {profile.device}, {profile.threads} threads")
    for path in filter(None, (arguments.html, arguments.chrome)):
        show.line(f"written to {path}", "dim")
