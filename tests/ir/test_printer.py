"""print_graph gives stable, complete text; programs print too."""

import numpy as np

from rlx.emit import emit
from rlx.ir.build import DType, apply
from rlx.ir.printer import print_graph
from tests.ir.toys import builder, summed, vector, with_if, with_loop


def small() -> str:
    b = builder("first")
    x = vector(b)
    b.guard(apply("lt", x.shape[0], 9), "x is long", "short")
    places = b.nonzero(x)
    y = b.scalar("mul", x, b.const(np.array(2.0, np.float32)))
    b.graph.outputs, b.graph.output_names = [places, y, x], ["places", "y", "same"]
    return print_graph(b.graph)


def test_text_of_a_small_graph():
    lines = small().splitlines()
    assert lines[0] == "graph -"
    assert lines[1] == "  input %x: float32[x.n]"
    assert lines[2] == "  const %3: float32[] = 2.0"
    assert lines[3] == "  guard lt(x.n, 9): x is long (assumes short)"
    assert lines[4].startswith("  %1: int64[1, count") and "= Sort(%x) {kind=nonzero" in lines[4]
    assert lines[4].endswith("; Toy node 'first'")
    assert lines[5].startswith("  %4: float32[x.n] = Region(%x, %3) {over [x.n]: 0 = load(0) ")
    assert "mul(0, 1) float32 -> [2]" in lines[5] and "reads [(0), ()]}" in lines[5]
    assert lines[-1] == "  output 'same' %x: float32[x.n]"


def test_numbering_does_not_depend_on_what_was_built_before():
    def without_counts(text: str) -> list[str]:
        # The builder names the symbol of a count after a number of its own.
        return [line for line in text.splitlines() if "count" not in line]

    assert without_counts(small()) == without_counts(small())


def test_child_graphs_are_indented():
    text = print_graph(with_if())
    assert "    then_graph:\n      graph -\n        input %captured: float32[captured.n]" in text
    assert "If(%c, " in text and "kind=prod" in text


def test_programs_print_every_stage():
    text = str(emit(with_if()))
    assert "stage 1: %" in text and "then:" in text and "Cumulate(%0) {kind=prod" in text
    assert "input 'x' %0: float32[x.n]" in text and "; Toy 'node'" in text
    text = str(emit(with_loop()))
    assert "Loop trips %" in text and "while - carried (%0) captures ()" in text
    b = builder()
    places = b.nonzero(vector(b, dtype=DType.BOOL))
    b.guard(apply("le", 1, b.graph.inputs[0].shape[0]), "x is empty", "some")
    flat = b.reshape(places, (places.shape[1],))
    b.graph.outputs, b.graph.states = [summed(b, flat), b.const(np.zeros(3))], [(0, 0, 0)]
    text = str(emit_without_states(b.graph))
    assert "alias %" in text and "constant %" in text
    assert "guard le(1, x.n): x is empty (assumes some)" in text


def emit_without_states(graph):
    graph.states = []
    return emit(graph)
