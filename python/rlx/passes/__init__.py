"""The passes between importer and emit: PIPELINE, one visible ordered list."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rlx.errors import InputError
from rlx.ir.graph import Graph
from rlx.passes.attention import attention
from rlx.passes.dedupe import dedupe
from rlx.passes.dims import dims
from rlx.passes.epilogues import epilogues
from rlx.passes.fold import fold
from rlx.passes.integers import integers
from rlx.passes.layout import layout
from rlx.passes.packed import packed
from rlx.passes.pads import pads
from rlx.passes.patterns import patterns
from rlx.passes.precision import halves, narrow
from rlx.passes.prune import prune
from rlx.passes.regions import regions
from rlx.passes.rows import rows
from rlx.passes.siblings import siblings
from rlx.passes.widen import widen

# name -> pass; each takes a Graph and gives it back rewritten, narrow by the option `weights`.
PIPELINE: dict[str, Callable[..., Graph]] = {
    "dims": dims,
    "integers": integers,
    "packed": packed,
    "halves": halves,
    "fold": fold,
    "dedupe": dedupe,
    "pads": pads,
    "widen": widen,
    "patterns": patterns,
    "rows": rows,
    "regions": regions,
    "attention": attention,
    "epilogues": epilogues,
    "layout": layout,
    "prune": prune,
    "siblings": siblings,
    "narrow": narrow,
}


def run_pipeline(graph: Graph, disable: Iterable[str] = (), weights: str = "",
                 seen: Callable[[str, Graph], object] | None = None) -> Graph:
    """The graph after every pass that is not disabled by name; InputError for unknown names.

    weights: what the pass "narrow" makes of the float32 weights that are left, or "".
    `seen` is called with each pass's name and what it gave.
    """
    unknown = set(disable) - set(PIPELINE)
    if unknown:
        raise InputError("option 'disable' names no pass", expected=", ".join(PIPELINE),
                         got=", ".join(sorted(unknown)))
    for name, rewrite in PIPELINE.items():
        if name not in disable:
            graph = rewrite(graph, weights) if name == "narrow" else rewrite(graph)
            if seen is not None:
                seen(name, graph)
    return graph


__all__ = ["PIPELINE", "run_pipeline"]
