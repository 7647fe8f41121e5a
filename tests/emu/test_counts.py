"""Kernels whose results have a size that they find, or a stream that they continue."""

import numpy as np
from onnx import helper
import pytest

import rlx
from rlx.errors import InputError
from rlx.ir.prims import Gather, NonMaxSuppression
from rlx.ir.reference.order import non_max_suppression
from rlx.ir.types import dtype_of
from tests.emu.case import F32, emulated, typed, values
from tests.kernels.run_prim import run_prim
from tests.tolerance import tolerance

KERNELS = {"compact", "unique", "nms", "random"}
DEVICES = ["emu", "emu:descending"]


@pytest.fixture(params=DEVICES)
def device(request):
    emulated(request.param)
    return request.param


def run_node(device, op, inputs, outputs, **attributes):
    """The outputs of a model of one node."""
    infos = [helper.make_tensor_value_info(f"x{k}", dtype_of(x.dtype).value, x.shape)
             for k, x in enumerate(inputs)]
    names = [f"y{k}" for k in range(outputs)]
    node = helper.make_node(op, [i.name for i in infos], names, **attributes)
    results = [helper.make_empty_tensor_value_info(n) for n in names]
    model = helper.make_model(helper.make_graph([node], "g", infos, results),
                              opset_imports=[helper.make_opsetid("", 21)])
    made = rlx.Session(model, device=device).run({i.name: x for i, x in zip(infos, inputs)})
    return [made[n] for n in names]


def test_nonzero(device):
    x = np.random.default_rng(0).random((30, 7, 20)) < 0.3
    np.testing.assert_array_equal(run_node(device, "NonZero", [x], 1)[0], np.nonzero(x))


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_compress(device, axis):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((6, 9)).astype(np.float32)
    condition = rng.random(x.shape[axis] if axis is not None else 40) < 0.5
    attributes = {} if axis is None else {"axis": axis}
    got, = run_node(device, "Compress", [x, condition], 1, **attributes)
    np.testing.assert_array_equal(got, np.compress(condition, x, axis))


@pytest.mark.parametrize("ordered", [0, 1])
@pytest.mark.parametrize("axis", [None, 0])
def test_unique(device, axis, ordered):
    x = np.random.default_rng(2).integers(0, 3, (30, 2)).astype(np.int64)
    attributes = {"sorted": ordered} | ({} if axis is None else {"axis": axis})
    y, first, inverse, counts = run_node(device, "Unique", [x], 4, **attributes)
    want = list(np.unique(x, True, True, True, axis=axis))
    if not ordered:
        order = np.argsort(want[1])
        number = np.argsort(order)
        want = [np.take(want[0], order, axis or 0), want[1][order], number[want[2].reshape(-1)],
                want[3][order]]
    for got, true in zip((y, first, inverse, counts), want):
        np.testing.assert_array_equal(got, true.reshape(got.shape))


def test_suppression(device):
    rng = np.random.default_rng(3)
    corners = rng.random((1, 40, 2, 2)).astype(np.float32)
    boxes = np.concatenate([corners.min(2), corners.max(2)], -1)
    scores = rng.random((1, 2, 40)).astype(np.float32)
    inputs = [boxes, scores, np.array([5]), np.array([0.3], np.float32),
              np.array([0.2], np.float32)]
    found, = run_node(device, "NonMaxSuppression", inputs, 1)
    np.testing.assert_array_equal(
        found, non_max_suppression(NonMaxSuppression(), inputs, [], lambda d: d)[0])


@pytest.mark.parametrize("op", ["RandomUniform", "RandomNormal"])
def test_random_is_the_stream_of_the_cpu(device, op):
    got = run_node(device, op, [], 1, shape=[5, 7], seed=3.0)[0]
    np.testing.assert_allclose(got, run_node("cpu", op, [], 1, shape=[5, 7], seed=3.0)[0],
                               **tolerance("rounded", "float32"))


def test_unseeded_draws_differ(device):
    first, second = (run_node(device, "RandomUniform", [], 1, shape=[50])[0] for _ in range(2))
    assert not np.array_equal(first, second)
    assert 0 <= first.min() and first.max() < 1


def test_a_bad_index_is_reported_and_harmless(device):
    made = emulated(device)
    for _ in range(2):
        with pytest.raises(InputError, match="index"):
            run_prim(Gather("axis"), [values((4, 3)), np.array([0, 4])], [typed(F32, 2, 3)],
                     device=made)
    run_prim(Gather("axis"), [values((4, 3)), np.array([0, 3])], [typed(F32, 2, 3)], device=made)
