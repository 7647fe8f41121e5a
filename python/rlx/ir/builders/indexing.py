"""Builder methods of the indexing primitives: gather, scatter, sort, compaction, resize, random."""

from __future__ import annotations

from rlx.errors import ModelError, UnsupportedError
from rlx.ir.builders.core import CoreBuilder
from rlx.ir.expr import Number, Symbol, apply, product, symbol
from rlx.ir.graph import Value
from rlx.ir.prims import Gather, NonMaxSuppression, Random, Resize, Scatter, Sort
from rlx.ir.types import DType, TensorType


class IndexingBuilder(CoreBuilder):
    """Primitives whose indices are data."""

    def gather(self, data: Value, indices: Value, axis: int) -> Value:
        """ONNX Gather along axis; tracked when data is a vector of numbers and indices constant."""
        axis = self.axis(axis, data.rank)
        numbers = self.numbers_or_none(data) if data.rank == 1 else None
        if numbers is not None and indices.is_const:
            picked = indices.const.reshape(-1).tolist()
            if all(-len(numbers) <= i < len(numbers) for i in picked):
                return self.tracked([numbers[i] for i in picked], data.dtype,
                                    indices.const.shape,
                                    lambda: self._gather(data, indices, axis))
        return self._gather(data, indices, axis)

    def _gather(self, data: Value, indices: Value, axis: int) -> Value:
        shape = (*data.shape[:axis], *indices.shape, *data.shape[axis + 1:])
        return self.node(Gather("axis", axis), [data, indices], [TensorType(data.dtype, shape)])[0]

    def gather_elements(self, data: Value, indices: Value, axis: int) -> Value:
        """ONNX GatherElements."""
        self.has_rank(indices, data.rank, "indices")
        prim = Gather("elements", self.axis(axis, data.rank))
        return self.node(prim, [data, indices], [TensorType(data.dtype, indices.shape)])[0]

    def gather_nd(self, data: Value, indices: Value, batch_dims: int, depth: int) -> Value:
        """ONNX GatherND; depth is the (structural) last dim of indices."""
        for k in range(batch_dims):
            self.same_dim(data.shape[k], indices.shape[k], "GatherND's batch dims")
        shape = (*indices.shape[:-1], *data.shape[batch_dims + depth:])
        prim = Gather("nd", 0, batch_dims)
        return self.node(prim, [data, indices], [TensorType(data.dtype, shape)])[0]

    def scatter(self, kind: str, data: Value, indices: Value, updates: Value, *, axis: int = 0,
                reduction: str = "none") -> Value:
        """ONNX ScatterElements ("elements") or ScatterND ("nd")."""
        if kind == "elements":
            axis = self.axis(axis, data.rank)
            self.has_rank(indices, data.rank, "indices")
            self.has_rank(updates, data.rank, "updates")
        if updates.dtype is not data.dtype:
            raise ModelError("data and updates differ in element type", expected=str(data.type),
                             got=str(updates.type))
        axis = axis if kind == "elements" else 0
        depth = indices.shape[-1] if kind == "nd" and indices.rank else 0
        self.guard(apply("le", depth, data.rank), "indices reach past the data's rank")
        return self.node(Scatter(kind, axis, reduction), [data, indices, updates], [data.type])[0]

    def topk(self, x: Value, k: Number, axis: int, largest=True, sorted=True) -> list[Value]:
        """ONNX TopK -> [values, int64 indices]; k must not exceed the axis (guarded)."""
        axis = self.axis(axis, x.rank)
        self.guard(apply("and", apply("le", 0, k), apply("le", k, x.shape[axis])),
                   f"k = {k} is not in [0, {x.shape[axis]}]")
        shape = tuple(k if i == axis else d for i, d in enumerate(x.shape))
        prim = Sort("topk", axis, k, bool(largest), bool(sorted))
        return self.node(prim, [x], [TensorType(x.dtype, shape), TensorType(DType.INT64, shape)])

    def _counted(self, prim, inputs, types_of, upper: Number) -> list[Value]:
        """A node whose last output `count` gives the dim n that types_of(n) uses."""
        count = Value(TensorType(DType.INT64, (1,)))
        n = symbol(Symbol("element", count, 0, upper=upper, name=f"count{count.id}"))
        outputs = self.node(prim, inputs, [*types_of(n), count.type])
        made = outputs[-1]
        if made.producer is not None:
            # The symbol must name the value that the node really writes.
            made.producer.outputs[-1] = count
            count.producer = made.producer
            return outputs[:-1]
        raise AssertionError("a data-dependent primitive is never folded while importing")

    def nonzero(self, x: Value) -> Value:
        """ONNX NonZero: int64 [rank, n]."""
        return self._counted(Sort("nonzero"), [x],
                             lambda n: [TensorType(DType.INT64, (x.rank, n))], product(x.shape))[0]

    def compress(self, x: Value, condition: Value, axis: int | None) -> Value:
        """ONNX Compress along axis, or of the flattened x."""
        self.has_rank(condition, 1, "condition")
        if axis is None:
            return self._counted(Sort("compress"), [x, condition],
                                 lambda n: [TensorType(x.dtype, (n,))], condition.shape[0])[0]
        axis = self.axis(axis, x.rank)
        shape = lambda n: tuple(n if k == axis else d for k, d in enumerate(x.shape))  # noqa: E731
        return self._counted(Sort("compress", axis), [x, condition],
                             lambda n: [TensorType(x.dtype, shape(n))], condition.shape[0])[0]

    def unique(self, x: Value, axis: int | None, sorted: bool) -> list[Value]:
        """ONNX Unique -> [y, first indices, inverse, counts]."""
        if x.dtype is DType.STRING and sorted:
            raise UnsupportedError("strings cannot be sorted", remedy="Unique with sorted=0")
        axis = -1 if axis is None else self.axis(axis, x.rank)
        length = product(x.shape) if axis < 0 else x.shape[axis]

        def types(n):
            y = (n,) if axis < 0 else tuple(n if k == axis else d for k, d in enumerate(x.shape))
            vector = TensorType(DType.INT64, (n,))
            return [TensorType(x.dtype, y), vector, TensorType(DType.INT64, (length,)), vector]

        return self._counted(Sort("unique", axis, sorted=bool(sorted)), [x], types, length)

    def non_max_suppression(self, boxes: Value, scores: Value, max_output: Value | None,
                            iou: Value | None, score: Value | None, center: bool) -> Value:
        """ONNX NonMaxSuppression: int64 [n, 3]."""
        self.has_rank(boxes, 3, "boxes")
        self.has_rank(scores, 3, "scores")
        upper = product(scores.shape)
        return self._counted(NonMaxSuppression(center), [boxes, scores, max_output, iou, score],
                             lambda n: [TensorType(DType.INT64, (n, 3))], upper)[0]

    def resize(self, x: Value, prim: Resize, shape) -> Value:
        """ONNX Resize to `shape`."""
        return self.node(prim, [x], [TensorType(x.dtype, tuple(shape))])[0]

    def random(self, prim: Random, dtype: DType, shape, x: Value | None = None) -> Value:
        """Random numbers of `shape`; x only for bernoulli and multinomial."""
        return self.node(prim, [x], [TensorType(dtype, tuple(shape))])[0]
