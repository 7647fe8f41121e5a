"""Compares a run with a reference, names the first bad node and the decision to blame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from rlx import feeds
from rlx.diagnose.compare import WHOLE, Difference, difference
from rlx.diagnose.references import Alone, Given, Replay, Whole, captured
from rlx.errors import Error
from rlx.importer.importer import import_model
from rlx.ir.graph import Node
from rlx.passes import PIPELINE, run_pipeline
from rlx.session import Session


@dataclass(slots=True)
class Compared:
    """A named value, or a model output, beside its reference."""

    name: str
    node: Node | None
    difference: Difference


@dataclass(slots=True)
class Verdict:
    """What was found. `node` and `op` are of the ONNX node that is the first to be wrong; `fused`
    names the nodes that run together with it. `blame` is "pass NAME", "rung NAME" or what else
    is known; `cure` the options under which the run is right."""

    right: bool
    compared: int
    outputs: list[dict[str, Any]]
    worst: dict[str, Any] | None = None
    node: str | None = None
    op: str | None = None
    fused: tuple[str, ...] = ()
    value: str | None = None
    error: str | None = None
    blame: str | None = None
    why: str | None = None
    cure: dict[str, Any] | None = None
    unchecked: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


Against = Callable[[set[str]], dict[str, list[Any]]]


def verify(model: Any, inputs: Any, options: dict[str, Any], *, against: Against | None = None,
           scale: float = 1.0, advance: Callable[..., None] = lambda *_: None) -> Verdict:
    """Runs the model, compares every value that has an ONNX name, and looks for the cause.

    against: gives reference values of names; without it the primitives are evaluated in float64.
    scale widens the tolerances. advance is called for each piece of work, with a text.
    """
    return _Verify(model, inputs, options, against, scale, advance).run()


class _Verify:
    def __init__(self, model, inputs, options, against, scale, advance):
        self.model, self.options, self.against = model, options, against
        self.limits = {dtype: limit * scale for dtype, limit in WHOLE.items()}
        self.advance = advance
        self.session = Session(model, **options)
        self.given = feeds.normalise(inputs, self.session._model.graph)

    def run(self) -> Verdict:
        with self.session as session:
            facts, executable, _ = session._settle(self.given)
            imported = import_model(session._model, facts)
            final = run_pipeline(import_model(session._model, facts), session.left_out,
                                 session.options.weights)
            run, results = self.captured(session, executable, final)
            wanted = {v.name for g in run for v in g.node.outputs if v is not None and v.name}
            whole = Whole(wanted | set(results), run, lambda: self.advance("the reference"))
            outputs = whole.graph(imported, [self.given.get(v.name) for v in imported.inputs])
            self.expected = whole.values
            self.outputs = dict(zip(imported.output_names, outputs))
            if self.against is not None:
                self.expected = self.against(wanted | set(results))
                self.outputs = {name: self.expected[name][0] for name in results}
            compared = self.compare(run, results)
            bad = [c for c in compared if c.difference.bad]
            verdict = self.verdict(compared, results, sorted(whole.unchecked))
            if bad:
                self.locate(verdict, bad[0])
                self.blame(verdict, bad[0], run, final, whole)
                # A comparison on the edge may go either way, as long as no output shows it.
                sound = verdict.blame in ("rounding", "unknown")
                verdict.right = sound and all(o["right"] for o in verdict.outputs)
            return verdict

    def captured(self, session: Session, executable: Any,
                 graph: Any) -> tuple[list[Given], dict[str, Any]]:
        """What every node gives, and the outputs of the same run: random numbers are others in
        the next."""
        fed = {name: x for name, x in self.given.items() if x is not None}
        return captured(executable, fed, graph)

    # -- comparing -------------------------------------------------------------------------------

    def compare(self, run: list[Given], results: dict[str, Any]) -> list[Compared]:
        """Values in the order they were computed, then the outputs."""
        found = []
        for given in run:
            for v, x in zip(given.node.outputs, given.outputs):
                turns = self.expected.get(v.name, ()) if v is not None and x is not None else ()
                if given.turn < len(turns):
                    found.append(Compared(v.name, given.node, self.nearest(x, turns[given.turn])))
        for name, x in results.items():
            found.append(Compared(name, None, difference(x, self.outputs[name], self.limits)))
        return found

    def nearest(self, x: Any, expected: Any) -> Difference:
        """Of the layouts that the value may have: an image can be channels last."""
        forms = [np.asarray(expected)]
        if forms[0].ndim > 2:
            forms.append(np.moveaxis(forms[0], 1, -1))
        # A buffer that was planned for more elements than the node found holds them in front.
        return min((difference(x if x.size <= form.size else x.reshape(-1)[:form.size].reshape(
            form.shape), form, self.limits) for form in forms), key=lambda d: d.error)

    def verdict(self, compared: list[Compared], results: dict[str, Any],
                unchecked: list[str]) -> Verdict:
        outputs = [{"name": c.name, "error": c.difference.error, "limit": c.difference.limit,
                    "right": not c.difference.bad, "what": c.difference.what}
                   for c in compared[len(compared) - len(results):]]
        worst = max(compared, key=lambda c: c.difference.error - c.difference.limit, default=None)
        return Verdict(not any(c.difference.bad for c in compared), len(compared), outputs,
                       worst and {"name": worst.name, "error": worst.difference.error},
                       unchecked=unchecked)

    # -- what is to blame ------------------------------------------------------------------------

    def locate(self, verdict: Verdict, bad: Compared) -> None:
        verdict.value = bad.name
        verdict.error = f"{bad.difference.error:.3g} (at most {bad.difference.limit:.3g}); " \
                        f"{bad.difference.what}"
        self.name(verdict, bad.node or self.maker(bad.name))

    def maker(self, output: str) -> Node | None:
        return next((n for n in self.session._model.graph.nodes if output in n.output), None)

    @staticmethod
    def name(verdict: Verdict, node: Any) -> None:
        if isinstance(node, Node):
            verdict.node, verdict.op = node.origin.name, node.origin.op
            verdict.fused = node.origin.also
        elif node is not None:
            verdict.node, verdict.op = node.label, node.op_type

    def blame(self, verdict: Verdict, bad: Compared, run: list[Given], final: Any,
              whole: Whole) -> None:
        """A kernel that is wrong on its own inputs, else a pass or a rung without which the run
        is right."""
        replay = Replay(run, lambda: self.advance("each primitive on its own"))
        replay.graph(final, [self.given.get(v.name) for v in final.inputs])
        if replay.wrong:
            self.blame_rung(verdict, replay.wrong[0])
            return
        if whole.unchecked:
            verdict.blame = "unknown"
            verdict.why = "every kernel is right on its own inputs; other options draw other " \
                          "random numbers, which cannot be compared"
            return
        passes = [name for name in PIPELINE if name not in self.session.left_out]
        for names in (*([name] for name in passes), passes):
            if self.cures(disable=names):
                together = "several passes together" if len(names) > 1 else f"pass {names[0]}"
                verdict.blame, verdict.cure = together, {"disable": names}
                verdict.why = "every kernel is right on its own inputs, and without it the run " \
                              "is right"
                return
        for rung in self.session._device.rungs:
            if self.cures(force=rung):
                verdict.blame, verdict.cure = "a rung", {"force": rung}
                verdict.why = "with another rung the run is right"
                return
        if self.against is not None and self.reference_differs(whole, bad):
            verdict.blame = f"the import of {verdict.op}"
            verdict.why = "the primitives that it became, evaluated in float64, differ as well"
        else:
            verdict.blame = "rounding"
            verdict.why = "no kernel and no pass is wrong: the model magnifies rounding errors here"

    def blame_rung(self, verdict: Verdict, wrong: Alone) -> None:
        self.name(verdict, wrong.node)
        rows = [row for row in self.session.explain() if row["name"] == wrong.node.origin.name
                and row["prim"] == type(wrong.node.prim).__name__]
        rung = rows[0]["rung"] if rows else "unknown"
        verdict.blame = f"rung {rung}"
        verdict.why = f"this {type(wrong.node.prim).__name__} is {wrong.difference.error:.3g} " \
                      f"from its float64 reference on the same inputs, at most " \
                      f"{wrong.difference.limit:.3g} is right"
        for name in self.session._device.rungs:
            if not rung.startswith(name) and self.cures(force=name):
                verdict.cure = {"force": name}
                return

    def cures(self, disable: Sequence[str] = (), force: str = "") -> bool:
        """Whether the run is right with other decisions."""
        self.advance(f"without {' '.join(disable)}" if disable else f"with rung {force}")
        changed = dict(self.options)
        changed["disable"] = (*self.session.options.disable, *disable)
        changed["force"] = force or self.session.options.force
        try:
            with Session(self.model, **changed) as other:
                facts, executable, _ = other._settle(self.given)
                graph = run_pipeline(import_model(other._model, facts), other.left_out,
                                     other.options.weights)
                run, results = self.captured(other, executable, graph)
        except Error:  # this model needs the decision
            return False
        return not any(c.difference.bad for c in self.compare(run, results))

    def reference_differs(self, whole: Whole, bad: Compared) -> bool:
        own, other = whole.values.get(bad.name), self.expected.get(bad.name)
        return bool(own and other and difference(own[0], other[0], self.limits).bad)


