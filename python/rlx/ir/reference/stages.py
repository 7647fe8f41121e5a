"""References of the stage nodes: If, Loop, Scan and sequences, through a graph runner."""

from __future__ import annotations

import numpy as np

from rlx.ir.graph import If, Loop, Scan, SequenceOp


def run_if(run, prim: If, inputs: list) -> list:
    """One of two graphs by the condition."""
    condition, *captures = inputs
    graph = prim.then_graph if bool(np.asarray(condition).reshape(())) else prim.else_graph
    return run.graph(graph, captures)


def run_loop(run, prim: Loop, inputs: list) -> list:
    """ONNX Loop: carried values, then stacked scans."""
    trips, condition, *rest = inputs
    carried, captures = rest[:prim.carried], rest[prim.carried:]
    limit = None if trips is None else int(np.asarray(trips).reshape(()))
    going = True if condition is None else bool(np.asarray(condition).reshape(()))
    slices: list[list] = [[] for _ in range(prim.scans)]
    i = 0
    while going and (limit is None or i < limit):
        state = [np.array(i, np.int64), np.array(going)]
        going, *results = run.graph(prim.body, [*state, *carried, *captures])
        going = bool(np.asarray(going).reshape(()))
        carried = results[:prim.carried]
        for column, x in zip(slices, results[prim.carried:]):
            column.append(x)
        i += 1
    types = prim.body.outputs[1 + prim.carried:]
    return [*carried, *(_stack(column, 0, v) for column, v in zip(slices, types))]


def _stack(column: list, axis: int, v) -> np.ndarray:
    if column:
        return np.stack(column, axis)
    shape = [d if isinstance(d, int) else 0 for d in v.shape]
    return np.zeros((*shape[:axis], 0, *shape[axis:]), v.dtype.numpy)


def run_scan(run, prim: Scan, inputs: list) -> list:
    """ONNX Scan from opset 9 on."""
    states = inputs[:prim.states]
    scanned = inputs[prim.states:prim.states + prim.scan_inputs]
    captures = inputs[prim.states + prim.scan_inputs:]
    length = scanned[0].shape[prim.input_axes[0]]
    columns: list[list] = [[] for _ in prim.output_axes]
    for t in range(length):
        slices = [np.take(x, length - 1 - t if back else t, axis) for x, axis, back in
                  zip(scanned, prim.input_axes, prim.input_reverse)]
        results = run.graph(prim.body, [*states, *slices, *captures])
        states = results[:prim.states]
        for column, x in zip(columns, results[prim.states:]):
            column.append(x)
    outputs = []
    types = prim.body.outputs[prim.states:]
    for column, axis, back, v in zip(columns, prim.output_axes, prim.output_reverse, types):
        outputs.append(_stack(column[::-1] if back else column, axis, v))
    return [*states, *outputs]


def run_sequence(run, prim: SequenceOp, inputs: list) -> list:
    """Sequences are lists of arrays."""
    return [_SEQUENCE[prim.kind](prim, *inputs)]


def _at(prim, sequence, position):
    return sequence[int(np.asarray(position).reshape(()))]


def _insert(prim, sequence, x, position=None):
    at = len(sequence) if position is None else int(np.asarray(position).reshape(()))
    at = at + len(sequence) if at < 0 else at
    return [*sequence[:at], x, *sequence[at:]]


def _erase(prim, sequence, position=None):
    at = -1 if position is None else int(np.asarray(position).reshape(()))
    at = at + len(sequence) if at < 0 else at
    return [*sequence[:at], *sequence[at + 1:]]


def _concat(prim, sequence):
    join = np.stack if prim.new_axis else np.concatenate
    return join(sequence, axis=prim.axis)


def _split(prim, x, lengths=None):
    axis, dim = prim.axis, x.shape[prim.axis]
    if lengths is None:
        sizes = [1] * dim
    elif lengths.ndim == 0:
        n = int(lengths)
        sizes = [min(n, dim - start) for start in range(0, dim, n)]
    else:
        sizes = lengths.tolist()
    parts = np.split(x, np.cumsum(sizes)[:-1], axis)
    return parts if prim.keepdims else [np.squeeze(p, axis) for p in parts]


_SEQUENCE = {
    "construct": lambda prim, *xs: list(xs),
    "empty": lambda prim: [],
    "at": _at,
    "insert": _insert,
    "erase": _erase,
    "length": lambda prim, sequence: np.array(len(sequence), np.int64),
    "concat": _concat,
    "split": _split,
}

STAGE_REFERENCES = {If: run_if, Loop: run_loop, Scan: run_scan, SequenceOp: run_sequence}
