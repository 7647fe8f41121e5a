"""Image operators beside the official cases: opsets, types, sizes known when run, refusals."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import rlx
from rlx.errors import InputError, ModelError, UnsupportedError
from tests.tolerance import tolerance

FLOAT = TensorProto.FLOAT


def session(op, inputs, opset, output=None, dynamic=(), **attributes):
    """A Session of one node; `dynamic` names the inputs whose dims are open."""
    infos = []
    for name, x in inputs.items():
        shape = [f"{name}{k}" for k in range(x.ndim)] if name in dynamic else x.shape
        infos.append(helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(x.dtype), shape))
    first = next(iter(inputs.values())).dtype
    out = output or helper.np_dtype_to_tensor_dtype(first)
    graph = helper.make_graph([helper.make_node(op, list(inputs), ["y"], **attributes)], "g",
                              infos, [helper.make_tensor_value_info("y", out, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return rlx.load(model, device="cpu")


def run(op, opset, *, output=None, dynamic=(), inputs, **attributes):
    return session(op, inputs, opset, output, dynamic, **attributes).run(inputs)["y"]


def close(y, expected, dtype="float32"):
    assert y.shape == expected.shape
    np.testing.assert_allclose(y.astype(np.float64), expected.astype(np.float64),
                               **tolerance("norm", dtype))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def shifted(x, dy, dx):
    """x moved by whole pixels with zeros around, and the grid that asks for it."""
    h, w = x.shape[2:]
    y = np.zeros_like(x)
    y[:, :, max(-dy, 0):h - max(dy, 0), max(-dx, 0):w - max(dx, 0)] = \
        x[:, :, max(dy, 0):h - max(-dy, 0), max(dx, 0):w - max(-dx, 0)]
    v, u = np.meshgrid((2 * (np.arange(h) + dy) + 1) / h - 1, (2 * (np.arange(w) + dx) + 1) / w - 1,
                       indexing="ij")
    return y, np.broadcast_to(np.stack([u, v], -1), (x.shape[0], h, w, 2))


@pytest.mark.parametrize("opset, mode", [(16, "bilinear"), (16, "bicubic"), (16, "nearest"),
                                         (20, "linear"), (20, "cubic"), (22, "nearest")])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32, np.uint8])
def test_grid_sample_moves_whole_pixels(rng, opset, mode, dtype):
    """The size is a power of two: the coordinates of pixels are exact."""
    x = rng.integers(1, 100, (2, 10, 8, 16)).astype(dtype)
    for dy, dx in ((0, 0), (3, -2), (-1, 5)):
        expected, grid = shifted(x, dy, dx)
        inputs = {"x": x, "grid": grid.astype(np.float32)}
        y = run("GridSample", opset, inputs=inputs, dynamic=("x", "grid"), mode=mode)
        np.testing.assert_array_equal(y, expected)


def test_grid_sample_of_bools_and_other_types(rng):
    x = rng.integers(0, 2, (1, 3, 4, 4)).astype(bool)
    expected, grid = shifted(x, 1, 1)
    inputs = {"x": x, "grid": grid.astype(np.float64)}
    np.testing.assert_array_equal(run("GridSample", 20, inputs=inputs, mode="nearest"), expected)
    z = (x * (1 + 2j)).astype(np.complex64)
    expected, _ = shifted(z, 1, 1)
    inputs["x"] = z
    np.testing.assert_array_equal(run("GridSample", 20, inputs=inputs, mode="nearest"), expected)
    with pytest.raises(UnsupportedError, match="GridSample in mode linear"):
        run("GridSample", 20, inputs=inputs)


def test_grid_sample_refusals(rng):
    x, grid = np.ones((2, 1, 4, 4), np.float32), np.zeros((2, 3, 3, 2), np.float32)
    with pytest.raises(rlx.Error, match="mode"):
        run("GridSample", 20, inputs={"x": x, "grid": grid}, mode="bilinear")
    loaded = session("GridSample", {"x": x, "grid": grid}, 20, dynamic=("x", "grid"))
    with pytest.raises(InputError, match="wrong shape"):
        loaded.run({"x": x, "grid": np.zeros((2, 3, 3, 3), np.float32)})
    with pytest.raises(InputError, match="batches"):
        loaded.run({"x": x, "grid": grid[:1]})
    with pytest.raises(InputError, match="no pixels"):
        loaded.run({"x": x[:, :, :0], "grid": grid})
    assert loaded.run({"x": x, "grid": grid})["y"].shape == (2, 1, 3, 3)
    assert loaded.run({"x": x, "grid": grid[:, :0]})["y"].shape == (2, 1, 0, 3)


def test_roi_align_of_old_opsets(rng):
    """Before opset 16 no half pixel is taken away: a region of whole pixels and a linear image."""
    v, u = np.mgrid[:12, :10].astype(np.float32)
    x = np.stack([v, u, v + 2 * u])[None]
    rois = np.array([[1, 2, 7, 8], [0, 0, 4, 2]], np.float32)
    inputs = {"x": x, "rois": rois, "i": np.zeros(2, np.int64)}
    sizes = {"output_height": 2, "output_width": 3, "sampling_ratio": 2}
    for opset, half in ((10, 0.0), (16, 0.5), (22, 0.5)):
        y = run("RoiAlign", opset, inputs=inputs, dynamic=("x", "rois", "i"), **sizes)
        for r, (x1, y1, x2, y2) in enumerate(rois - half):
            down = y1 + (np.arange(2) + 0.5) * (y2 - y1) / 2
            across = x1 + (np.arange(3) + 0.5) * (x2 - x1) / 3
            expected = np.stack(np.meshgrid(down, across, indexing="ij"))
            if r == 0:  # the other one reaches over the border with a half pixel
                close(y[r, :2], expected)
                close(y[r, 2], expected[0] + 2 * expected[1])


def test_roi_align_without_regions_or_with_wrong_ones():
    x = np.ones((1, 2, 4, 4), np.float32)
    inputs = {"x": x, "rois": np.zeros((0, 4), np.float32), "i": np.zeros(0, np.int64)}
    loaded = session("RoiAlign", inputs, 16, dynamic=("x", "rois", "i"), output_height=2)
    assert loaded.run(inputs)["y"].shape == (0, 2, 2, 1)
    rois = np.array([[0, 0, 2, 2]], np.float32)
    with pytest.raises(InputError, match="batch index is out of range"):
        loaded.run({"x": x, "rois": rois, "i": np.array([1])})
    with pytest.raises(InputError, match="wrong shape"):
        loaded.run({"x": x, "rois": np.zeros((1, 5), np.float32), "i": np.array([0])})
    close(loaded.run({"x": x, "rois": rois, "i": np.array([0])})["y"], np.ones((1, 2, 2, 1)))
    with pytest.raises(ModelError, match="output_height"):
        session("RoiAlign", inputs, 16, output_height=0)


def test_max_roi_pool():
    x = np.arange(36, dtype=np.float32).reshape(1, 1, 6, 6)
    rois = np.array([[0, 0, 0, 5, 5], [0, 1, 1, 3, 4], [0, 2.4, 2.5, 2.6, 2.4]], np.float32)
    y = run("MaxRoiPool", 22, inputs={"x": x, "rois": rois}, pooled_shape=[2, 2])
    image = x[0, 0]
    np.testing.assert_array_equal(y[0, 0], [[image[2, 2], image[2, 5]], [image[5, 2],
                                                                         image[5, 5]]])
    np.testing.assert_array_equal(y[1, 0], [[image[2, 2], image[2, 3]], [image[4, 2],
                                                                         image[4, 3]]])
    # Rounded to one row and two columns: rows repeat.
    np.testing.assert_array_equal(y[2, 0], [[image[3, 2], image[3, 3]]] * 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64, np.uint8])
def test_col2im_undoes_windows(rng, dtype):
    """Blocks cut from an image add up to the image times how often each pixel was cut."""
    image = rng.integers(0, 9, (2, 3, 7, 36)).astype(dtype)
    kernel, stride, pad = (3, 2), (2, 1), (1, 0)
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (0, 0)))
    rows, columns = 4, 35
    blocks = np.zeros((2, 3, *kernel, rows, columns), dtype)
    times = np.zeros_like(padded)
    for i in range(rows):
        for j in range(columns):
            at = (..., slice(i * 2, i * 2 + 3), slice(j, j + 2))
            blocks[..., i, j] = padded[at]
            times[at] += 1
    inputs = {"x": blocks.reshape(2, 18, -1), "image": np.array([7, 36]),
              "block": np.array(kernel)}
    y = run("Col2Im", 18, inputs=inputs, strides=stride, pads=[*pad, *pad])
    np.testing.assert_array_equal(y, (padded * times)[:, :, 1:8])


def test_col2im_of_sizes_that_do_not_fit():
    inputs = {"x": np.ones((1, 4, 9), np.float32), "image": np.array([4, 4]),
              "block": np.array([2, 2])}
    loaded = session("Col2Im", inputs, 18)
    assert loaded.run(inputs)["y"].shape == (1, 1, 4, 4)
    for image, block in (([4, 5], [2, 2]), ([4, 4], [2, 3]), ([4, 4], [0, 2]), ([-4, 4], [2, 2])):
        with pytest.raises(InputError):
            loaded.run(inputs | {"image": np.array(image), "block": np.array(block)})


@pytest.mark.parametrize("opset", [9, 11, 22])
def test_max_unpool_undoes_max_pool(rng, opset):
    x = rng.permutation(64).reshape(1, 2, 4, 8).astype(np.float32)
    pooled = x.reshape(1, 2, 2, 2, 4, 2).max((3, 5))
    places = np.array([int(np.flatnonzero(x == v)[0]) for v in pooled.reshape(-1)])
    inputs = {"x": pooled, "i": places.reshape(pooled.shape)}
    y = run("MaxUnpool", opset, inputs=inputs, kernel_shape=[2, 2], strides=[2, 2])
    np.testing.assert_array_equal(y, np.where(np.isin(x, pooled), x, 0))
    inputs["s"] = np.array([1, 2, 5, 9])
    y = run("MaxUnpool", opset, inputs=inputs, kernel_shape=[2, 2], strides=[2, 2])
    np.testing.assert_array_equal(
        y, np.pad(np.where(np.isin(x, pooled), x, 0), ((0, 0), (0, 0), (0, 1), (0, 1))))
    inputs["i"] = inputs["i"] + 64
    with pytest.raises(InputError, match="out of range"):
        run("MaxUnpool", opset, inputs=inputs, kernel_shape=[2, 2], strides=[2, 2])


@pytest.mark.parametrize("group, offset_group", [(1, 1), (2, 1), (1, 2), (2, 4)])
def test_deform_conv_without_offsets_is_conv(rng, group, offset_group):
    x = rng.standard_normal((2, 4, 7, 6)).astype(np.float32)
    w = rng.standard_normal((6, 4 // group, 3, 2)).astype(np.float32)
    bias = rng.standard_normal(6).astype(np.float32)
    where = {"strides": [2, 1], "pads": [1, 0, 1, 1], "dilations": [1, 2], "group": group}
    expected = run("Conv", 22, inputs={"x": x, "w": w, "b": bias}, **where)
    offset = np.zeros((2, offset_group * 12, *expected.shape[2:]), np.float32)
    inputs = {"x": x, "w": w, "o": offset, "b": bias}
    close(run("DeformConv", 22, inputs=inputs, dynamic=("x", "o"), offset_group=offset_group,
              **where), expected)
    half = inputs | {"m": np.full((2, offset_group * 6, *expected.shape[2:]), 0.5, np.float32)}
    close(run("DeformConv", 19, inputs=half, offset_group=offset_group, **where),
          (expected + bias[:, None, None]) / 2)
    moved = inputs | {"o": offset.copy()}
    moved["o"][:, 1::2] = 1.0  # all taps one pixel to the right
    shifted_x = np.pad(x, ((0, 0), (0, 0), (0, 0), (0, 1)))[..., 1:]
    left = {"x": np.pad(x, ((0, 0), (0, 0), (0, 0), (0, 3)))[..., 1:], "w": w, "b": bias}
    wide = run("Conv", 22, inputs=left, **(where | {"pads": [1, 0, 1, 0]}))
    assert shifted_x.shape == x.shape
    close(run("DeformConv", 22, inputs=moved, offset_group=offset_group, **where),
          wide[..., :expected.shape[3]])


def test_deform_conv_of_shapes_that_do_not_fit():
    x, w = np.ones((1, 4, 5, 5), np.float32), np.ones((2, 4, 3, 3), np.float32)
    inputs = {"x": x, "w": w, "o": np.zeros((1, 18, 3, 3), np.float32)}
    loaded = session("DeformConv", inputs, 22, dynamic=("o",))
    assert loaded.run(inputs)["y"][0, 0, 0, 0] == 36
    for shape in ((1, 18, 3, 4), (1, 17, 3, 3), (2, 18, 3, 3)):
        with pytest.raises(InputError):
            loaded.run(inputs | {"o": np.zeros(shape, np.float32)})
    with pytest.raises(ModelError, match="offset groups"):
        session("DeformConv", inputs | {"o": np.zeros((1, 54, 3, 3), np.float32)}, 22,
                offset_group=3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_det(rng, dtype):
    x = (rng.standard_normal((2, 3, 4, 4)) / 2).astype(dtype)
    rounded = {"float16": "bfloat16"}.get(np.dtype(dtype).name, np.dtype(dtype).name)
    close(run("Det", 22, inputs={"x": x}, dynamic=("x",)),
          np.linalg.det(x.astype(np.float64)), rounded)
    assert run("Det", 11, inputs={"x": np.zeros((3, 0, 0), np.float32)}).tolist() == [1, 1, 1]
    loaded = session("Det", {"x": np.eye(3, dtype=np.float32)}, 11, dynamic=("x",))
    with pytest.raises(InputError, match="square"):
        loaded.run({"x": np.ones((2, 3), np.float32)})


def test_bit_cast(rng):
    x = rng.standard_normal((3, 5)).astype(np.float32)
    y = run("BitCast", 26, inputs={"x": x}, output=TensorProto.INT32, to=TensorProto.INT32)
    np.testing.assert_array_equal(y, x.view(np.int32))
    with pytest.raises(ModelError, match="one size"):
        run("BitCast", 26, inputs={"x": x}, output=TensorProto.INT64, to=TensorProto.INT64)
