"""The errors: their text, fields, kinds and gathered context."""

import pickle
import re

import pytest

import rlx
from rlx import errors

KINDS = {
    errors.ModelError: errors.Error, errors.ModelNotFoundError: FileNotFoundError,
    errors.UnsupportedError: NotImplementedError, errors.InputError: ValueError,
    errors.DeviceError: RuntimeError, errors.MemoryLimitError: MemoryError,
    errors.StaleHandleError: RuntimeError, errors.InternalError: RuntimeError,
}


@pytest.mark.parametrize("kind, builtin", KINDS.items())
def test_kinds(kind, builtin):
    error = kind("no", node="n", op="Add", expected=1, got=2, remedy="less")
    assert isinstance(error, errors.Error) and isinstance(error, builtin)
    for same in (error, pickle.loads(pickle.dumps(error))):
        assert str(same) == "[Add] no\n  node: 'n'\n  expected: 1\n  got: 2\n  try: less"
        assert (same.message, same.node, same.op, same.expected) == ("no", "n", "Add", 1)


def test_every_kind_is_public_and_in_the_guide(source):
    page = (source / "docs/guides/errors.md").read_text()
    kinds = {name for name, kind in vars(errors).items()
             if isinstance(kind, type) and issubclass(kind, errors.Error)}
    assert kinds <= set(rlx.__all__)
    assert kinds - {"Error"} <= set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))


def test_text_of_what_is_known():
    assert str(errors.ModelError("cyclic")) == "cyclic"
    error = errors.ModelError("bad", node="n", domain="d", opset=3)
    assert str(error) == "bad\n  node: 'n' (domain d, opset 3)"


def test_at_fills_in_what_is_missing():
    error = errors.InputError("bad", node="inner").at(node="outer", op="If", opset=18)
    assert (error.node, error.op, error.opset, error.domain) == ("inner", "If", 18, None)


def test_contexts_gather_from_the_inside_out():
    with pytest.raises(errors.ModelError) as caught:
        with errors.context("reading", 1), errors.context("importing", "node", 2):
            raise errors.ModelError("bad")
    assert caught.value.contexts == ["importing node 2", "reading 1"]
    assert str(caught.value) == "bad\n  while importing node 2\n  while reading 1"


def test_context_leaves_other_errors_and_costs_no_text():
    class Untold:
        def __str__(self):
            raise AssertionError("text made without need")

    with errors.context("never", Untold()):
        pass
    with pytest.raises(KeyError), errors.context("never", Untold()):
        raise KeyError
