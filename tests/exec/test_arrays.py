"""Arrays in and out of an Executable: dtypes, layouts, checks, out=."""

import numpy as np
import pytest

from rlx import _core, errors
from rlx.ir.types import DType
from tests.exec.programs import add, executable, identity, tensor


def sample(dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """Values that every element type can hold: 0 and 1 in turn."""
    if dtype is DType.STRING:
        return np.array(["", "eins", "größer", b"bytes"], object)[:np.prod(shape)].reshape(shape)
    return (np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", [d for d in DType if d is not DType.STRING])
@pytest.mark.parametrize("shape", [(2, 2), (), (0, 3)])
def test_every_dtype_passes_through(dtype, shape):
    x = sample(dtype, shape)
    y = identity(dtype, *shape).run({"x": x})["y"]
    assert isinstance(y, np.ndarray) and y.dtype == dtype.numpy and y.shape == shape
    assert y.tobytes() == x.tobytes() and not np.shares_memory(x, y)


@pytest.mark.parametrize("make", [np.asarray, lambda x: x.astype("U6"), lambda x: x.reshape(2, 2)],
                         ids=["object", "unicode", "matrix"])
def test_strings_pass_through(make):
    x = make(np.array(["", "eins", "größer", "x"], object))
    y = identity(DType.STRING, *x.shape).run({"x": x})["y"]
    assert y.dtype == object and y.tolist() == x.tolist()


def test_bytes_become_text():
    x = np.array([b"abc", "gr\u00f6\u00dfer".encode(), b"\xff\x00"], object)
    y = identity(DType.STRING, 3).run({"x": x})["y"]
    assert y.tolist()[:2] == ["abc", "größer"]
    assert y[2].encode("utf-8", "surrogateescape") == b"\xff\x00"
    again = identity(DType.STRING, 3).run({"x": y})["y"]
    assert again.tolist() == y.tolist()


def test_strings_must_be_text():
    with pytest.raises(errors.InputError, match="holds something else"):
        identity(DType.STRING, 2).run({"x": np.array(["a", 1], object)})


LAYOUTS = {
    "contiguous": lambda x: x.copy(),
    "fortran": np.asfortranarray,
    "transposed": lambda x: x.T.copy().T,
    "reversed": lambda x: x[::-1].copy()[::-1],
    "strided": lambda x: np.repeat(x, 2, 1)[:, ::2],
    "byte-swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
    "unaligned": lambda x: np.frombuffer(b"?" + x.tobytes(), np.uint8)[1:].view(x.dtype)
    .reshape(x.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_is_read(layout):
    x = LAYOUTS[layout](np.arange(6, dtype=np.float32).reshape(2, 3))
    x.flags.writeable = False
    y = add("n", 3).run({"a": x, "b": x})["y"]
    np.testing.assert_array_equal(y, 2 * x.astype(np.float32))


def test_outputs_are_fresh():
    exe = add(4)
    x = np.ones(4, np.float32)
    first, second = exe.run({"a": x, "b": x})["y"], exe.run({"a": x, "b": x})["y"]
    assert first.flags.owndata and not np.shares_memory(first, second)


def test_feeds_may_be_a_sequence_or_one_array():
    x = np.ones(4, np.float32)
    assert add(4).run([x, x])["y"].tolist() == [2] * 4
    assert add(4).run((x, x))["y"].tolist() == [2] * 4
    assert identity(DType.FLOAT32, 4).run(x)["y"].tolist() == [1] * 4
    with pytest.raises(errors.InputError, match="wrong number of inputs"):
        add(4).run([x])


GOOD = {"a": np.ones((2, 3), np.float32), "b": np.ones((2, 3), np.float32)}
WRONG = {
    "missing": ({"a": GOOD["a"]}, "input 'b' is missing"),
    "unknown": (GOOD | {"c": GOOD["a"]}, "no input named 'c'"),
    "misspelt": ({"a": GOOD["a"], "B": GOOD["b"]}, "no input named 'B'"),
    "dtype": (GOOD | {"b": np.ones((2, 3))}, "'b': wrong element type"),
    "odd dtype": (GOOD | {"b": np.ones((2, 3), "datetime64[s]")}, "no such element type"),
    "text": (GOOD | {"b": np.full((2, 3), "x")}, "'b': wrong element type"),
    "rank": (GOOD | {"b": np.ones(3, np.float32)}, "'b': wrong shape"),
    "fixed dim": (GOOD | {"b": np.ones((2, 4), np.float32)}, "'b': wrong shape"),
    "named dims": (GOOD | {"b": np.ones((5, 3), np.float32)}, "broadcast:sum"),
    "none": (GOOD | {"b": None}, "must be an array"),
    "list": (GOOD | {"b": [[1.0]]}, "must be an array"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_inputs_are_named(case):
    feeds, message = WRONG[case]
    exe = add("n", 3)
    for _ in range(2):
        with pytest.raises((errors.InputError, _core.Respecialise), match=message):
            exe.run(feeds)
        assert exe.run(GOOD)["y"].tolist() == [[2] * 3] * 2


def test_message_says_what_was_expected_and_got():
    with pytest.raises(errors.InputError) as caught:
        add("n", 3).run(GOOD | {"b": np.ones((2, 4), np.float32)})
    assert caught.value.expected == "float32[?, 3]" and caught.value.got == "float32[2, 4]"


def test_out_is_written_and_returned():
    exe = add("n", 3)
    out = {"y": np.zeros((2, 3), np.float32)}
    y = out["y"]
    assert exe.run(GOOD, out=out) is out
    assert out["y"] is y and y.tolist() == [[2] * 3] * 2


def test_out_may_hold_some_outputs():
    def build(b):
        x = tensor(b.graph, "x", DType.FLOAT32, 3)
        return {"x": x, "y": b.scalar("neg", x)}

    exe = executable(build)
    y = np.zeros(3, np.float32)
    got = exe.run({"x": np.arange(3, dtype=np.float32)}, {"y": y})
    assert got["y"] is y and y.tolist() == [0, -1, -2] and got["x"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("y, message", [
    (np.zeros((2, 3)), "does not fit"),
    (np.zeros((3, 2), np.float32), "does not fit"),
    (np.zeros((2, 6), np.float32)[:, ::2], "does not fit"),
    (np.broadcast_to(np.float32(0), (2, 3)), "does not fit"),
    ([0], "must be a NumPy array"),
], ids=["dtype", "shape", "strided", "read-only", "list"])
def test_out_must_fit(y, message):
    exe = add("n", 3)
    with pytest.raises(errors.InputError, match=message):
        exe.run(GOOD, {"y": y})
    with pytest.raises(errors.InputError, match="no output named 'z'"):
        exe.run(GOOD, {"z": y})
    assert exe.run(GOOD)["y"].tolist() == [[2] * 3] * 2


def test_out_may_not_share_memory():
    exe = add("n", 3)
    a = np.ones((4, 3), np.float32)
    with pytest.raises(errors.InputError, match="shares memory"):
        exe.run({"a": a[:2], "b": GOOD["b"]}, {"y": a[1:3]})
    assert exe.run({"a": a[:2], "b": GOOD["b"]}, {"y": a[2:]})["y"].tolist() == [[2] * 3] * 2


def test_call_is_checked():
    exe = add(4)
    with pytest.raises(TypeError, match="needs feeds"):
        exe.run()
    with pytest.raises(TypeError, match="state=None"):
        exe.run(GOOD, wrong=1)
    with pytest.raises(errors.InputError, match="out must be a dict"):
        exe.run(GOOD, out=[1])
