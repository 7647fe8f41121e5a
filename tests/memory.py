"""What a plan says of its memory, beside what a run then takes and what a limit allows."""

import pytest

import rlx
from tests.models.test_builders import SIZES, inputs, narrow


def check_plan(device, name):
    """memory_plan() tells the arena to the byte; one byte less is refused before anything ran."""
    given = inputs(name, SIZES[name][0])
    with rlx.load(narrow(name), device=device) as session:
        session.run(given)
        needed = max(block["offset"] + block["bytes"] for block in session.memory_plan())
        arena = session.counters()["arena_bytes"]
        session.run(given)
        assert session.counters()["arena_bytes"] == arena
    assert 0 < needed == arena
    with rlx.load(narrow(name), device=device, memory_limit=needed) as session:
        session.run(given)
    with rlx.load(narrow(name), device=device, memory_limit=needed - 1) as session:
        with pytest.raises(rlx.MemoryLimitError, match="more memory than is allowed"):
            session.run(given)
        assert not session.counters().get("arena_bytes")
