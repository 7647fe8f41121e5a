"""References of Sort, NonMaxSuppression, Gather, Scatter, Reduce, casts and Recurrent on cases
that the official data leaves open."""

import numpy as np
import pytest

from rlx.errors import InputError
from rlx.ir.evaluate import reference
from rlx.ir.prims import (
    AxisMap, Gather, NonMaxSuppression, Recurrent, Reduce, Region, RegionOp, Scatter, Sort,
)
from rlx.ir.reference import REFERENCES
from rlx.ir.types import DType, TensorType, dtype_of
from tests.tolerance import tolerance

NAN = np.nan


def run(prim, *inputs, types=()):
    """The outputs where only their element types matter."""
    types = [TensorType(d, ()) for d in types] or [TensorType(dtype_of(inputs[0].dtype), ())]
    return REFERENCES[type(prim)](prim, list(inputs), types, int)


@pytest.mark.parametrize("largest, places", [(True, [1, 3, 0, 4]), (False, [2, 0, 4, 3])])
def test_topk_takes_the_lower_index_of_equals_and_nan_as_largest(largest, places):
    x = np.array([2.0, NAN, -1.0, 5.0, 2.0])
    values, indices = run(Sort("topk", 0, 4, largest), x)
    np.testing.assert_array_equal(indices, places)
    np.testing.assert_array_equal(values, x[places])


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint64, np.int64])
def test_topk_at_the_limits_of_integers(dtype):
    info = np.iinfo(dtype)
    x = np.array([info.min, info.max, info.max - 1, info.min], dtype)
    assert run(Sort("topk", 0, 4), x)[1].tolist() == [1, 2, 0, 3]
    assert run(Sort("topk", 0, 4, False), x)[1].tolist() == [0, 3, 2, 1]


def test_unique_by_value_and_by_first_place():
    x = np.array([3, 1, 3, 2, 1])
    y, first, inverse, counts, count = run(Sort("unique"), x)
    assert (y.tolist(), first.tolist(), inverse.tolist(), counts.tolist(), count.tolist()) == (
        [1, 2, 3], [1, 3, 0], [2, 0, 2, 1, 0], [2, 1, 2], [3])
    y, first, inverse, counts, _ = run(Sort("unique", sorted=False), x)
    assert (y.tolist(), first.tolist(), inverse.tolist(), counts.tolist()) == (
        [3, 1, 2], [0, 1, 3], [0, 1, 0, 2, 1], [2, 2, 1])
    rows = run(Sort("unique", 0), np.array([[2, 1], [1, 9], [2, 1]]))
    assert rows[0].tolist() == [[1, 9], [2, 1]] and rows[2].tolist() == [1, 0, 1]


def test_nonzero_and_compress():
    places, count = run(Sort("nonzero"), np.array([[0, 2], [3, 0]]))
    assert places.tolist() == [[0, 1], [1, 0]] and count.tolist() == [2]
    x = np.arange(6).reshape(2, 3)
    assert run(Sort("compress", 1), x, np.array([False, True]))[0].tolist() == [[1], [4]]
    assert run(Sort("compress"), x, np.array([True, False, True]))[0].tolist() == [0, 2]


def test_suppression_keeps_ties_by_index_and_respects_the_limits():
    boxes = np.array([[[0, 0, 1, 1], [1, 1, 0, 0], [0, 2, 1, 3], [0, 2, 1, 3.5]]], np.float32)
    scores = np.array([[[0.5, 0.5, 0.2, 0.9]]], np.float32)
    nms = NonMaxSuppression()
    most = np.array([10])
    picked, count = run(nms, boxes, scores, most, np.array([0.5]), np.array([0.3]))
    assert picked.tolist() == [[0, 0, 3], [0, 0, 0]] and count.tolist() == [2]
    assert run(nms, boxes, scores, np.array([1]), np.array([0.5]))[0].tolist() == [[0, 0, 3]]
    assert run(nms, boxes, scores)[0].shape == (0, 3)


def test_indices_out_of_range_are_refused_and_never_folded():
    data, wrong = np.arange(3.0), np.array([3])
    for prim, inputs in ((Gather("axis"), [data, wrong]), (Gather("elements"), [data, -wrong - 1]),
                         (Gather("nd"), [data, wrong]),
                         (Scatter("elements"), [data, wrong, data[:1]]),
                         (Scatter("nd"), [data, wrong, np.float64(1)])):
        with pytest.raises(InputError, match="out of range"):
            run(prim, *inputs)
        assert reference(prim, inputs, [TensorType(DType.FLOAT64, (1,))]) is None


def test_negative_indices_count_from_the_end():
    data = np.arange(6.0).reshape(2, 3)
    assert run(Gather("axis", 1), data, np.array([-1]))[0].tolist() == [[2], [5]]
    assert run(Gather("nd"), data, np.array([[-1, -3]]))[0].tolist() == [3]
    y = run(Scatter("elements", 1, "add"), data, np.array([[-1, -1]]), np.array([[1.0, 2.0]]))[0]
    assert y.tolist() == [[0, 1, 5], [3, 4, 5]]


EMPTY = {"sum": 0, "prod": 1, "max": -np.inf, "min": np.inf, "l1": 0, "l2": 0, "sum_square": 0,
         "log_sum": -np.inf, "log_sum_exp": -np.inf}


@pytest.mark.parametrize("kind", EMPTY)
def test_reductions_of_nothing(kind):
    (y,) = run(Reduce(kind, (1,), False), np.zeros((2, 0)))
    assert y.tolist() == [EMPTY[kind]] * 2


def test_extremes_of_nothing_in_other_types():
    assert run(Reduce("max", (0,), False), np.zeros(0, np.int8))[0] == -128
    assert run(Reduce("min", (0,), False), np.zeros(0, np.uint16))[0] == 65535
    bools = np.array([[False, False], [True, False], [True, True]])
    assert run(Reduce("max", (1,), False), bools)[0].tolist() == [False, True, True]
    assert run(Reduce("min", (1,), False), bools)[0].tolist() == [False, False, True]


def cast(x, target, mode=1):
    source = dtype_of(x.dtype)
    ops = (RegionOp("load", source, (0,)), RegionOp("cast", target, (0,), mode))
    region = Region(x.shape, ((AxisMap(0),),), ops, (1,))
    return run(region, x, types=[target])[0]


def test_casts_of_floats_to_integers_truncate_and_saturate():
    x = np.array([1.9, -1.9, 300.0, -300.0, np.inf, -np.inf, NAN])
    assert cast(x, DType.INT8).tolist() == [1, -1, 127, -128, 127, -128, 0]
    assert cast(x, DType.UINT8).tolist() == [1, 0, 255, 0, 255, 0, 0]
    big = np.array([2.0**63, 2.0**64, -(2.0**63), 2.0**62])
    assert cast(big, DType.INT64).tolist() == [2**63 - 1, 2**63 - 1, -(2**63), 2**62]
    assert cast(big, DType.UINT64).tolist() == [2**63, 2**64 - 1, 0, 2**62]


def test_casts_between_integers_keep_the_low_bits():
    assert cast(np.array([300, -1]), DType.UINT8).tolist() == [44, 255]
    assert cast(np.array([7, 8, -9, 16]), DType.INT4).astype(int).tolist() == [7, -8, 7, 0]


@pytest.mark.parametrize("mode, expected", [
    (1, [2.0**-127, 1, 4, 4, 4, 2.0**127, 2.0**127]),
    (3, [2.0**-127, 1, 2, 2, 2, 2.0**127, 2.0**127]),
    (5, [2.0**-127, 1, 2, 4, 4, 2.0**127, 2.0**127]), (4, [NAN, 1, 2, 4, 4, NAN, NAN])])
def test_casts_to_powers_of_two(mode, expected):
    x = np.array([0.0, 1.0, 2.5, 3.0, 3.5, 2.0**127 * 1.5, np.inf])
    np.testing.assert_array_equal(cast(x, DType.FLOAT8E8M0, mode).astype(np.float64), expected)


def test_casts_to_float8_saturate_when_asked():
    x = np.array([448.0, 1e6, -np.inf, NAN], np.float32)
    found = cast(x, DType.FLOAT8E4M3FN).astype(np.float64)
    np.testing.assert_array_equal(found, [448, 448, -448, NAN])
    found = cast(x, DType.FLOAT8E4M3FN, 0).astype(np.float64)
    np.testing.assert_array_equal(found, [448, NAN, NAN, NAN])


def test_a_number_as_text_has_the_digits_of_its_type():
    assert cast(np.array([0.1], np.float32), DType.STRING).tolist() == ["0.1"]


@pytest.mark.parametrize("kind, gates", [("lstm", 4), ("gru", 3), ("rnn", 1)])
def test_short_rows_end_early_in_both_directions(kind, gates):
    """A row of length n gives what it gives alone, and zeros behind it."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 2, 3))
    w, r = rng.normal(size=(2, gates * 4, 3)), rng.normal(size=(2, gates * 4, 4))
    prim = Recurrent(kind, 4, "bidirectional")
    double = [DType.FLOAT64] * (3 if kind == "lstm" else 2)
    y, h, *_ = run(prim, x, w, r, None, np.array([5, 2]), types=double)
    alone, last, *_ = run(prim, x[:2, 1:], w, r, types=double)
    exact = tolerance("exact order", "float64")
    np.testing.assert_allclose(y[:2, :, 1:], alone, **exact)
    np.testing.assert_allclose(h[:, 1:], last, **exact)
    assert not y[2:, :, 1].any()
