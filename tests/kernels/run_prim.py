"""Runs one primitive on the CPU device, for tests of kernels."""

import numpy as np

from rlx import _core
from rlx.emit import emit
from rlx.ir.graph import Graph, Node, Origin, tensor
from rlx.ir.prims import AxisMap, Region, RegionOp
from rlx.ir.types import DType, TensorType, dtype_of

DEVICE = _core.make_device("cpu")


def run_prim(prim, inputs, outputs, threads: int = 1, in_place: bool = False,
             device=None, rung: str = "",
             constants: tuple[int, ...] = ()) -> list[np.ndarray]:
    """The outputs of `prim`; `outputs` are TensorTypes, and None stands for what is absent.

    in_place copies input 0 first, so that the plan may let the primitive overwrite it. The device
    is the CPU unless another is given. A `rung` is insisted on, and must be the one that ran.
    `constants` are the inputs that are weights of the model.
    """
    inputs = [None if x is None else np.asarray(x) for x in inputs]
    graph = Graph()
    values = []
    for k, x in enumerate(inputs):
        values.append(None if x is None else tensor(dtype_of(x.dtype), x.shape, f"x{k}"))
    for k in constants:
        values[k].const = inputs[k]
    graph.inputs = [v for v in values if v is not None and not v.is_const]
    feeds = {v.name: x for v, x in zip(values, inputs) if v in graph.inputs}
    if in_place:
        copied = tensor(values[0].dtype, values[0].shape, "copy")
        same = elementwise_ops("", [values[0].dtype], values[0].dtype)
        graph.nodes.append(Node(region(values[0].shape, [inputs[0].shape], same),
                                [values[0]], [copied], Origin("copy", "Identity")))
        values[0] = copied
    made = [None if t is None else tensor(t.dtype, t.shape, f"y{k}")
            for k, t in enumerate(outputs)]
    graph.nodes.append(Node(prim, values, made, Origin("node", type(prim).__name__)))
    graph.outputs = [v for v in made if v is not None]
    executable = _core.Executable(emit(graph), device or DEVICE, threads=threads, check_memory=True,
                                  force=rung)
    results = executable.run(feeds)
    if rung:
        assert executable.explain()[-1]["rung"] == rung, executable.explain()[-1]
    return [results[v.name] for v in graph.outputs]


def aligned(rank: int, of: int) -> tuple[AxisMap, ...]:
    """The access of an operand of `of` axes, aligned at the last axis of `rank`."""
    return tuple(AxisMap(rank - of + k) for k in range(of))


def elementwise_ops(op: str, dtypes, result: DType) -> list[RegionOp]:
    """Loads of every input and `op` over them; an empty name leaves the first load."""
    ops = [RegionOp("load", d, (k,)) for k, d in enumerate(dtypes)]
    if op:
        ops.append(RegionOp(op, result, tuple(range(len(ops)))))
    return ops


def region(shape, input_shapes, ops, results=None) -> Region:
    """A Region over broadcast inputs; its results default to the last op."""
    accesses = tuple(aligned(len(shape), len(s)) for s in input_shapes)
    return Region(tuple(shape), accesses, tuple(ops), results or (len(ops) - 1,))


def elementwise(op: str, inputs, result: DType, threads: int = 1) -> np.ndarray:
    """One scalar op over broadcast arrays."""
    shape = np.broadcast_shapes(*(x.shape for x in inputs))
    ops = elementwise_ops(op, [dtype_of(x.dtype) for x in inputs], result)
    prim = region(shape, [x.shape for x in inputs], ops)
    return run_prim(prim, inputs, [TensorType(result, shape)], threads)[0]
