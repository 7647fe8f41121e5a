"""Every builder's network stays a valid graph after each pass and becomes a valid Program."""

import numpy as np
import pytest

import models
from rlx import _core
from rlx.emit import emit
from rlx.importer.importer import import_model
from rlx.importer.reader import read
from rlx.ir.verify import verify
from rlx.passes import PIPELINE

# Only these need the values of a run to bind: two Loops, and the count of boxes kept.
STAGES = {"tagger": ["Segment", "Loop", "Segment", "Loop", "Segment"],
          "yolo": ["Segment", "Segment"]}


@pytest.mark.parametrize("name", models.BUILDERS)
def test_graph_is_valid_after_each_pass(name):
    builder = models.BUILDERS[name]
    graph = import_model(read(builder.build(0, np.float32, **builder.NARROW)))
    verify(graph)
    for rewrite in PIPELINE.values():
        graph = rewrite(graph)
        verify(graph)
    program = emit(graph)
    kinds = [type(stage).__name__ for stage in program.stages]
    assert kinds == STAGES.get(name, ["Segment"])
    assert len(str(program).splitlines()) > len(program.inputs) + len(program.outputs)
    assert isinstance(program, _core.Program)
