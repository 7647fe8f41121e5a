"""Builder methods of Map's bodies and of Fft: their type rules and guards."""

from __future__ import annotations

from rlx.errors import ModelError, UnsupportedError
from rlx.ir.builders.core import CoreBuilder
from rlx.ir.expr import Expr, Number, apply, product
from rlx.ir.graph import Value
from rlx.ir.prims import Fft, Map
from rlx.ir.types import DType, TensorType

PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}
GRID_CHANNELS, ROI_CHANNELS = 16, 8  # of an item of grid_sample, grid_nearest; roi_align
COL2IM_RUN, FRAME_RUN, STATE_COLUMNS = 32, 64, 8
COL2IM_AXES, DEFORM_AXES, GRID_AXES = 4, 3, 3


class MappingBuilder(CoreBuilder):
    """One method a body; kernels/map/<body>.h says what its operands and options mean."""

    def map(self, body: str, inputs, types, items, *, ints=(), floats=()) -> list[Value]:
        """Runs a body over as many items as the product of `items`."""
        prim = Map(body, product(items), tuple(ints), tuple(map(_real, floats)))
        return self.node(prim, list(inputs), list(types))

    def fft(self, x: Value, axis: int, length: Number, *, inverse: bool = False,
            onesided: bool = False) -> Value:
        """Fourier transform along axis of x, whose last axis holds one or two parts."""
        axis = self.axis(axis, x.rank)
        self.guard(apply("lt", 0, length), f"the length of the transform is not positive: {length}")
        points, parts = length, 2
        if onesided and inverse:
            parts = 1
        elif onesided:
            points = apply("add", apply("floordiv", length, 2), 1)
        shape = (*x.shape[:axis], points, *x.shape[axis + 1:-1], parts)
        prim = Fft(axis, length, inverse, onesided)
        return self.node(prim, [x], [TensorType(x.dtype, shape)])[0]

    def tree_ensemble(self, x: Value, tables, targets: int, kind: str, shares: int) -> Value:
        """float64 [N, shares, targets]: the votes of each share of the trees on rows of x."""
        votes = TensorType(DType.FLOAT64, (x.shape[0], shares, targets))
        return self.map("tree_ensemble", [x, *tables], [votes], (shares, x.shape[0]),
                        ints=(("sum", "min", "max").index(kind),))[0]

    def pairwise_coupling(self, pairs: Value, classes: int) -> Value:
        """[N, classes] probabilities from those of each class against each later one."""
        types = [TensorType(pairs.dtype, (pairs.shape[0], classes)),
                 TensorType(DType.FLOAT64, (pairs.shape[0], classes, classes + 1))]
        return self.map("pairwise_coupling", [pairs], types, (pairs.shape[0],))[0]

    def bit_cast(self, x: Value, dtype: DType) -> Value:
        """The bits of x as another element type of its size."""
        if x.dtype.itemsize != dtype.itemsize or DType.STRING in (x.dtype, dtype):
            raise ModelError("BitCast takes types of one size, and no strings",
                             got=f"{x.dtype.name.lower()} to {dtype.name.lower()}")
        return self.map("bit_cast", [x], [TensorType(dtype, x.shape)], x.shape)[0]

    def grid_sample(self, x: Value, grid: Value, mode: str, padding: str, align: bool) -> Value:
        """GridSample; mode "nearest" moves elements of any type, the others take floats."""
        rank = x.rank - 2
        if not 1 <= rank <= GRID_AXES or grid.rank != x.rank:
            raise ModelError("GridSample takes an image of 1 to 3 axes and a grid of its rank",
                             got=f"{x.type} and {grid.type}")
        self.same_dim(x.shape[0], grid.shape[0], "the batches of GridSample's operands")
        self.guard(apply("eq", grid.shape[-1], rank), "the grid's last dim is not the image's rank")
        self._image(x)
        shape = (*x.shape[:2], *grid.shape[1:-1])
        options = (PADDINGS[padding], int(align))
        if mode == "nearest":
            body = "grid_nearest"
        else:
            body, options = "grid_sample", ({"linear": 2, "cubic": 4}[mode], *options)
        items = (x.shape[0], _runs(x.shape[1], GRID_CHANNELS), *grid.shape[1:-1])
        return self.map(body, [x, grid], [TensorType(x.dtype, shape)], items, ints=options)[0]

    def _image(self, x: Value) -> None:
        for d in x.shape[2:]:
            self.guard(apply("lt", 0, d), f"an image of {list(x.shape)} has no pixels")

    def _regions(self, x: Value, rois: Value, columns: int, indices: Value | None) -> None:
        if x.rank != 4 or rois.rank != 2 or (indices is not None and indices.rank != 1):
            raise ModelError("regions are taken from [N, C, H, W] by [R, k] and indices [R]",
                             got=f"{x.type} and {rois.type}")
        self.guard(apply("eq", rois.shape[1], columns), f"a region has {columns} numbers")
        if indices is not None:
            self.same_dim(rois.shape[0], indices.shape[0], "the number of regions and of indices")
        self._image(x)

    def roi_align(self, x: Value, rois: Value, indices: Value, size, *, samples: int,
                  maximum: bool, half_pixel: bool, scale: float) -> Value:
        """RoiAlign with bins of `size`; indices are int64."""
        self._regions(x, rois, 4, indices)
        shape = (rois.shape[0], x.shape[1], *size)
        items = (rois.shape[0], _runs(x.shape[1], ROI_CHANNELS), *size)
        return self.map("roi_align", [x, rois, indices], [TensorType(x.dtype, shape)], items,
                        floats=(scale,), ints=(samples, int(maximum), int(half_pixel)))[0]

    def max_roi_pool(self, x: Value, rois: Value, size, scale: float) -> Value:
        """MaxRoiPool with bins of `size`."""
        self._regions(x, rois, 5, None)
        shape = (rois.shape[0], x.shape[1], *size)
        return self.map("max_roi_pool", [x, rois], [TensorType(x.dtype, shape)], shape,
                        floats=(scale,))[0]

    def crop_and_resize(self, x: Value, rois: Value, indices: Value, size, *, nearest: bool,
                        outside: float) -> Value:
        """CropAndResize to `size`; indices are int32."""
        self._regions(x, rois, 4, indices)
        for d in size:
            self.guard(apply("le", 0, d), f"a crop's size is negative: {list(size)}")
        shape = (rois.shape[0], x.shape[1], *size)
        return self.map("crop_and_resize", [x, rois, indices], [TensorType(x.dtype, shape)],
                        (rois.shape[0], *size), ints=(int(nearest),), floats=(outside,))[0]

    def col2im(self, x: Value, image, block, *, strides, dilations, pads_begin, pads_end) -> Value:
        """Col2Im: blocks of x [N, C * product(block), L] added into images."""
        rank = len(image)
        if x.rank != 3 or len(block) != rank or not 1 <= rank <= COL2IM_AXES:
            raise UnsupportedError(f"Col2Im takes [N, C, L] and images of 1 to {COL2IM_AXES} axes",
                                   got=f"{x.type} and {rank} axes")
        ints, counts = [], []
        for d, k, s, r, p, q in zip(image, block, strides, dilations, pads_begin, pads_end):
            for n, what in ((k, "block"), (s, "stride"), (r, "dilation")):
                self.guard(apply("lt", 0, n), f"a {what} of Col2Im is not positive: {n}")
            self.guard(apply("le", 0, d), f"a dim of the image is negative: {d}")
            reach = apply("add", apply("mul", apply("sub", k, 1), r), 1)
            room = apply("sub", apply("add", d, p + q), reach)
            counts.append(apply("max", 0, apply("add", apply("floordiv", room, s), 1)))
            ints += [k, counts[-1], s, r, p]
        self.same_dim(x.shape[2], product(counts), "the number of blocks")
        channels = apply("floordiv", x.shape[1], product(block))
        self.same_dim(x.shape[1], apply("mul", channels, product(block)),
                      "the second dim and a multiple of the block's size")
        shape = (x.shape[0], channels, *image)
        items = (*shape[:-1], _runs(shape[-1], COL2IM_RUN))
        return self.map("col2im", [x], [TensorType(x.dtype, shape)], items, ints=ints)[0]

    def frames(self, x: Value, count: Number, length: Number, step: Number) -> Value:
        """[B, count, length, parts]: overlapping pieces of a signal [B, n, parts]."""
        shape = (x.shape[0], count, length, x.shape[2])
        items = (x.shape[0], count, _runs(apply("mul", length, x.shape[2]), FRAME_RUN))
        return self.map("frames", [x], [TensorType(x.dtype, shape)], items, ints=(step,))[0]

    def deform_columns(self, x: Value, offset: Value, mask: Value | None, *, kernel, strides,
                       dilations, pads_begin, groups: int) -> Value:
        """Samples of a deformable convolution: [N, C, taps, *out], out being offset's."""
        rank, taps = x.rank - 2, product(kernel)
        if not 1 <= rank <= DEFORM_AXES or offset.rank != x.rank:
            raise UnsupportedError(f"DeformConv takes images of 1 to {DEFORM_AXES} axes",
                                   got=str(x.type))
        self.guard(apply("eq", apply("mod", x.shape[1], groups), 0),
                   f"{x.shape[1]} channels do not split into {groups} offset groups")
        self.same_dim(offset.shape[0], x.shape[0], "the batches of x and offset")
        self.same_dim(offset.shape[1], apply("mul", taps, groups * rank), "the channels of offset")
        out = offset.shape[2:]
        if mask is not None:
            wanted = (x.shape[0], apply("mul", taps, groups), *out)
            if mask.rank != x.rank:
                raise ModelError("the mask has another rank than x", got=str(mask.type))
            for a, b in zip(mask.shape, wanted):
                self.same_dim(a, b, "the dims of the mask")
        ints = [groups]
        for axis in zip(kernel, strides, dilations, pads_begin):
            ints += axis
        shape = (*x.shape[:2], taps, *out)
        return self.map("deform_columns", [x, offset, mask], [TensorType(x.dtype, shape)],
                        (x.shape[0], groups, taps, *out), ints=ints)[0]

    def linear_attention(self, q: Value, k: Value, v: Value, past: Value | None,
                         decay: Value | None, beta: Value | None, query_heads: int, heads: int,
                         scale: float) -> list[Value]:
        """LinearAttention -> [y, float32 state]; past is float32 too, no beta no delta rule."""
        depth, width = (apply("floordiv", x.shape[2], heads) for x in (k, v))
        for x, size in ((q, apply("mul", depth, query_heads)), (k, apply("mul", depth, heads)),
                        (v, apply("mul", width, heads))):
            self.same_dim(x.shape[2], size, "the heads of LinearAttention")
        for x in (k, v, decay, beta):
            for axis in range(2 if x is not None else 0):
                self.same_dim(x.shape[axis], q.shape[axis], "batch and length of LinearAttention")
        if decay is not None:
            wide = apply("eq", decay.shape[2], apply("mul", depth, heads))
            self.guard(apply("or", wide, apply("eq", decay.shape[2], heads)),
                       f"decay has one number a head or a row of its state, not {decay.shape[2]}")
        if beta is not None:
            one = apply("eq", beta.shape[2], 1)
            self.guard(apply("or", one, apply("eq", beta.shape[2], heads)),
                       f"beta has one number or one a head, not {beta.shape[2]}")
        state = (q.shape[0], heads, depth, width)
        if past is not None:
            for a, d in zip(past.shape, state):
                self.same_dim(a, d, "the dims of past_state")
        y = (*q.shape[:2], apply("mul", width, query_heads))
        types = [TensorType(q.dtype, y), TensorType(DType.FLOAT32, state)]
        items = (q.shape[0], heads, _runs(width, STATE_COLUMNS))
        return self.map("linear_attention", [q, k, v, past, decay, beta], types, items,
                        ints=(query_heads, heads), floats=(scale,))

    def det(self, x: Value) -> Value:
        """Determinants of [..., M, M]."""
        room = TensorType(DType.FLOAT64, x.shape)
        return self.map("det", [x], [TensorType(x.dtype, self._square(x)), room],
                        x.shape[:-2])[0]

    def inverse(self, x: Value) -> Value:
        """Inverses of [..., M, M]."""
        room = (*self._square(x), x.shape[-1], apply("mul", x.shape[-1], 2))
        return self.map("inverse", [x], [x.type, TensorType(DType.FLOAT64, room)],
                        x.shape[:-2])[0]

    def _square(self, x: Value) -> tuple:
        if x.rank < 2:
            raise ModelError("square matrices are needed", got=str(x.type))
        self.same_dim(x.shape[-2], x.shape[-1], "the dims of a square matrix")
        return tuple(x.shape[:-2])


def _runs(n: Number, size: int) -> Number:
    """How many runs of `size` cover n."""
    return apply("floordiv", apply("add", n, size - 1), size)


def _real(x: Number) -> Number:
    return x if isinstance(x, Expr) else float(x)
