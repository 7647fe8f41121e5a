"""Operators as opsets 1 to 9 have them, against their texts in NumPy, in float64."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import rlx
from rlx.errors import InputError, ModelError, UnsupportedError
from tests.tolerance import tolerance

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def run(op, inputs, opset, types=(FLOAT,), constant=(), **attributes) -> list[np.ndarray]:
    """One node; its inputs at `constant` are initializers, which old models list as inputs too."""
    arrays = {f"x{k}": np.asarray(v) for k, v in enumerate(inputs) if v is not None}
    names = [f"x{k}" if v is not None else "" for k, v in enumerate(inputs)]
    made = [f"y{k}" for k in range(len(types))]
    of = helper.np_dtype_to_tensor_dtype
    weights = [f"x{k}" for k in constant]
    graph = helper.make_graph(
        [helper.make_node(op, names, made, **attributes)], "g",
        [helper.make_tensor_value_info(n, of(v.dtype), v.shape) for n, v in arrays.items()],
        [helper.make_tensor_value_info(n, t, None) for n, t in zip(made, types)],
        [numpy_helper.from_array(arrays[n], n) for n in weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)
    given = {n: v for n, v in arrays.items() if n not in weights}
    return list(rlx.load(model, device="cpu").run(given).values())


def normal(*shape) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    return np.asarray(rng.standard_normal(shape)).astype(np.float32)


def close(found, expected):
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, **tolerance("rounded", "float32"))


X = normal(2, 3, 4, 5)


@pytest.mark.parametrize("opset", [1, 6])
def test_an_operand_placed_at_an_axis(opset):
    y = normal(3, 4)
    close(run("Add", [X, y], opset, broadcast=1, axis=1)[0], X + y[..., None])
    close(run("Add", [X, y], opset, broadcast=1, axis=-3)[0], X + y[..., None])
    one = normal(1, 1)
    close(run("Add", [X, one], opset, broadcast=1, axis=3)[0], X + one)
    with pytest.raises(ModelError, match="more axes than A has"):
        run("Add", [X, normal(4, 5)], opset, broadcast=1, axis=3)


@pytest.mark.parametrize("constant", [(), (1,)])
def test_split_1_takes_lengths_of_its_own_type(constant):
    lengths = np.array([1, 3], np.float32)
    found = run("Split", [X, lengths], 1, (FLOAT, FLOAT), constant, axis=2)
    assert [y.shape[2] for y in found] == [1, 3]
    np.testing.assert_array_equal(np.concatenate(found, 2), X)


@pytest.mark.parametrize("constant", [(), (1, 2)])
def test_tile_1_takes_numbers_of_its_own_type(constant):
    (y,) = run("Tile", [X, np.array([3], np.float32), np.array([2], np.float32)], 1,
               constant=constant)
    np.testing.assert_array_equal(y, np.tile(X, (1, 1, 3, 1)))


@pytest.mark.parametrize("p", [1.0, 2.0, 2.5, 3.0])
def test_lp_pools_of_any_order(p):
    powers = np.abs(X.astype(np.float64)) ** p
    close(run("GlobalLpPool", [X], 1, p=p)[0], powers.sum((2, 3), keepdims=True) ** (1 / p))
    padded = np.pad(powers, [(0, 0), (0, 0), (1, 0), (0, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2, 3), (2, 3)).sum((4, 5))
    close(run("LpPool", [X], 1, p=p, kernel_shape=[2, 3], pads=[1, 0, 0, 1])[0],
          windows ** (1 / p))


@pytest.mark.parametrize("p", [0.0, -1.0, float("inf"), float("nan")])
def test_orders_that_are_none(p):
    with pytest.raises(ModelError, match="p is out of range"):
        run("GlobalLpPool", [X], 1, p=p)
    with pytest.raises(ModelError, match="p is out of range"):
        run("LpPool", [X], 1, p=p, kernel_shape=[2, 3])


def test_clip_has_finite_defaults_in_opset_6_only():
    x = np.array([np.inf, -np.inf, np.nan, 1e30, -2], np.float32)
    largest = np.finfo(np.float32).max
    np.testing.assert_array_equal(run("Clip", [x], 6)[0],
                                  np.array([largest, -largest, np.nan, 1e30, -2], np.float32))
    np.testing.assert_array_equal(run("Clip", [x], 6, min=-1.0)[0],
                                  np.array([largest, -1, np.nan, 1e30, -1], np.float32))
    np.testing.assert_array_equal(run("Clip", [x], 1)[0], x)


def normalised(x, scale, bias, mean, var):
    return (x - mean) / np.sqrt(var + 1e-5) * scale + bias


def statistics(*shape):
    scale, bias, mean = (normal(*shape) + k for k in range(3))
    return scale, bias, mean, np.abs(normal(*shape)) + 0.5


@pytest.mark.parametrize("opset", [1, 6, 7])
def test_batch_norm_of_each_place(opset):
    each = statistics(3, 4, 5)
    more = {"is_test": 1} if opset < 7 else {}
    expected = normalised(X.astype(np.float64), *each)
    close(run("BatchNormalization", [X, *each], opset, spatial=0, **more)[0], expected)
    flat = [v.reshape(-1) for v in each]
    close(run("BatchNormalization", [X, *flat], opset, spatial=0, **more)[0], expected)


@pytest.mark.parametrize("spatial", [0, 1])
@pytest.mark.parametrize("opset", [1, 6, 7])
def test_batch_norm_trains_when_it_has_five_outputs(opset, spatial):
    scale, bias, mean, var = statistics(3) if spatial else statistics(3, 4, 5)
    found = run("BatchNormalization", [X, scale, bias, mean, var], opset, (FLOAT,) * 5,
                spatial=spatial, momentum=0.75)
    wide, axes = X.astype(np.float64), (0, 2, 3) if spatial else (0,)
    now, spread = wide.mean(axes), wide.var(axes)
    placed = [v.reshape(3, *v.shape[1:], *(1, 1) * spatial) for v in (scale, bias, now, spread)]
    expected = [normalised(wide, *placed), 0.75 * mean + 0.25 * now, 0.75 * var + 0.25 * spread,
                now, spread]
    for y, want in zip(found, expected):
        close(y, want)


def test_batch_norm_has_no_statistics_when_it_does_not_train():
    with pytest.raises(ModelError, match="in training only"):
        run("BatchNormalization", [X, *statistics(3)], 1, (FLOAT,) * 5, is_test=1)


def test_masks_of_dropout_had_its_own_type():
    for opset, more in ((1, {"is_test": 1}), (6, {"is_test": 1}), (7, {})):
        y, mask = run("Dropout", [X], opset, (FLOAT, FLOAT), **more)
        np.testing.assert_array_equal(y, X, strict=True)
        np.testing.assert_array_equal(mask, np.ones_like(X), strict=True)
    assert run("Dropout", [X], 10, (FLOAT, TensorProto.BOOL))[1].dtype == np.bool_
    for opset in (1, 6):
        with pytest.raises(UnsupportedError, match="set the attribute is_test to 1") as caught:
            run("Dropout", [X], opset)
        assert caught.value.message == "Dropout in training mode before opset 7"


def scan_8(states, x, lengths, constant=(), reverse=False):
    """Running sums of each sequence."""
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("Identity", ["t"], ["o"])],
        "body", [info("s", FLOAT, [2]), info("x", FLOAT, [2])],
        [info("t", FLOAT, [2]), info("o", FLOAT, [2])])
    return run("Scan", [np.asarray(lengths, np.int64), states, x], 8, (FLOAT, FLOAT), constant,
               body=body, num_scan_inputs=1, directions=[int(reverse)])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("constant", [(), (0,)])
@pytest.mark.parametrize("lengths", [(3, 3), (3, 2), (1, 3), (0, 2)])
def test_scan_8_over_sequences_of_other_lengths(lengths, constant, reverse):
    states, x = normal(2, 2), normal(2, 3, 2)
    last, sums = states.astype(np.float64), np.zeros((2, 3, 2))
    for row, n in enumerate(lengths):
        places = range(n)[::-1] if reverse else range(n)
        for k, place in enumerate(places):
            last[row] += x[row, place]
            sums[row, k] = last[row]
    for y, want in zip(scan_8(states, x, lengths, constant, reverse), (last, sums)):
        close(y, want)


@pytest.mark.parametrize("lengths", [(4, 2), (-1, 2), (2,), (1, 1, 1)])
def test_lengths_of_no_sequence_are_refused(lengths):
    with pytest.raises((InputError, ModelError), match="length"):
        scan_8(normal(2, 2), normal(2, 3, 2), lengths)


DROPPED = {
    "Affine": ({"alpha": 2.0, "beta": 0.5}, lambda x: 2 * x + 0.5),
    "Scale": ({"scale": 3.0}, lambda x: 3 * x),
    "ScaledTanh": ({"alpha": 2.0, "beta": 0.5}, lambda x: 2 * np.tanh(x / 2)),
    "ParametricSoftplus": ({"alpha": 2.0, "beta": 0.5}, lambda x: 2 * np.log1p(np.exp(x / 2))),
    "ThresholdedRelu": ({"alpha": 0.5}, lambda x: np.where(x > 0.5, x, 0)),
    "ImageScaler": ({"scale": 2.0, "bias": [1.0, 2.0, 3.0]},
                    lambda x: 2 * x + np.array([1, 2, 3])[:, None, None]),
    "Crop": ({"border": [1, 0, 2, 1]}, lambda x: x[:, :, :3, 1:3]),
}


@pytest.mark.parametrize("opset", [1, 9])
@pytest.mark.parametrize("op", DROPPED)
def test_operators_that_were_dropped(op, opset):
    attributes, function = DROPPED[op]
    close(run(op, [X], opset, **attributes)[0], function(X.astype(np.float64)))


@pytest.mark.parametrize("opset", [10, 23])
@pytest.mark.parametrize("op", [*sorted(DROPPED.keys() - {"ThresholdedRelu"}), "DynamicSlice"])
def test_they_are_unknown_from_opset_10_on(op, opset):
    attributes, inputs = ({}, [X, [0], [1]]) if op == "DynamicSlice" else (DROPPED[op][0], [X])
    with pytest.raises(UnsupportedError, match="removed it in opset 10") as caught:
        run(op, inputs, opset, **attributes)
    assert (caught.value.op, caught.value.opset) == (op, opset)


def test_a_function_of_the_model_may_have_the_name_of_one():
    body = helper.make_function("", "Affine", ["x"], ["y"], [helper.make_node("Neg", ["x"], ["y"])],
                                [helper.make_opsetid("", 23)])
    info = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node("Affine", ["x"], ["y"])], "g",
                              [info("x", FLOAT, X.shape)], [info("y", FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11,
                              functions=[body])
    np.testing.assert_array_equal(rlx.run(model, {"x": X}, device="cpu")["y"], -X)


def test_crop_to_a_size_and_dynamic_slice():
    close(run("Crop", [X], 1, border=[1, 2, 0, 0], scale=[2, 3])[0], X[:, :, 2:4, 1:4])
    with pytest.raises(ModelError, match="too small"):
        run("Crop", [X], 1, border=[1, 2, 0, 0], scale=[3, 3])
    starts, ends, axes = (np.array(v) for v in ([1, -3], [1000, -1], [1, 3]))
    close(run("DynamicSlice", [X, starts, ends, axes], 1)[0], X[:, 1:, :, -3:-1])
