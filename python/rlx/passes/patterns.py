"""Finds activations and normalisations that exporters wrote out, and makes them primitives."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from rlx.ir.expr import as_int
from rlx.ir.graph import Graph, Node, Value
from rlx.ir.prims import AxisMap, Norm, Reduce, Region, RegionOp
from rlx.passes.children import for_each_graph
from rlx.passes.match import (
    Uses, alias_source, binary, constant, is_near, pairs, squared, unary, with_constant,
)
from rlx.passes.prune import prune
from rlx.passes.regions import merged_origin


def patterns(graph: Graph) -> Graph:
    """GELU (erf and tanh), SiLU, layer norm, RMS norm, group norm."""
    for_each_graph(graph, _rewrite)
    return prune(graph)  # what was matched must not look used to the passes that follow


def _rewrite(graph: Graph) -> None:
    uses = Uses(graph)
    for node in graph.nodes:
        if len(node.outputs) != 1 or not isinstance(node.prim, Region):
            continue
        y = node.outputs[0]
        if _gelu(node, y) or _silu(node, y) or _normalised(node, y):
            continue
    for node in graph.nodes:
        if isinstance(node.prim, Region) and len(node.outputs) == 1:
            _scale_and_bias(node, node.outputs[0], uses)


# -- activations ---------------------------------------------------------------------------------


def _gelu(node: Node, y: Value) -> bool:
    """x * 0.5 * (1 + erf(x / sqrt 2)), or the tanh form, in any order of the factors."""
    for factors in _triples(y):
        rest = [f for f in factors if not is_near(f, 0.5)]
        if len(rest) != 2:
            continue
        for x, gate in (rest, rest[::-1]):
            op = _gate_of(gate, x)
            if op is not None:
                return _as_scalar(node, op, x)
    return False


def _triples(y: Value) -> Iterator[tuple[Value, Value, Value]]:
    """y as a product of three, each of which may be a product itself."""
    for product, c in pairs(y, "mul"):
        pair = binary(product, "mul")
        if pair is not None:
            yield (*pair, c)


def _gate_of(gate: Value, x: Value) -> str | None:
    """The scalar op of which gate is 1 + erf(...) or 1 + tanh(...) of x."""
    inner = with_constant(gate, "add", 1.0)
    z = unary(inner, "erf")
    if z is not None and _over_sqrt2(z) is x:
        return "gelu"
    z = unary(inner, "tanh")
    if z is not None and _tanh_argument(z, x):
        return "gelu_tanh"
    return None


def _over_sqrt2(z: Value) -> Value | None:
    pair = binary(z, "div")
    if pair is not None and is_near(pair[1], math.sqrt(2)):
        return pair[0]
    return with_constant(z, "mul", math.sqrt(0.5))


def _tanh_argument(z: Value, x: Value) -> bool:
    """sqrt(2 / pi) * (x + 0.044715 x^3)."""
    total = with_constant(z, "mul", math.sqrt(2 / math.pi))
    for a, cubic in pairs(total, "add"):
        if a is x:
            cube = with_constant(cubic, "mul", 0.044715)
            return cube is not None and _is_cube(cube, x)
    return False


def _is_cube(v: Value, x: Value) -> bool:
    pair = binary(v, "pow")
    if pair is not None:
        return pair[0] is x and constant(pair[1]) == 3.0
    return any(a is x and squared(b) is x for a, b in pairs(v, "mul"))


def _silu(node: Node, y: Value) -> bool:
    for x, gate in pairs(y, "mul"):
        if unary(gate, "sigmoid") is x:
            return _as_scalar(node, "silu", x)
    return False


def _as_scalar(node: Node, op: str, x: Value) -> bool:
    """Makes node one scalar op of x."""
    y = node.outputs[0]
    if tuple(x.shape) != tuple(y.shape) or x.dtype is not y.dtype:
        return False
    access = tuple(AxisMap(k) for k in range(x.rank))
    ops = (RegionOp("load", x.dtype, (0,)), RegionOp(op, y.dtype, (0,)))
    node.prim, node.inputs = Region(y.shape, (access,), ops, (1,)), [x]
    return True


# -- norms ---------------------------------------------------------------------------------------


def _normalised(node: Node, y: Value) -> bool:
    """(x - mean) / sqrt(var + eps), or x / sqrt(mean(x^2) + eps)."""
    for centred, spread in _quotients(y):
        found = with_epsilon(spread)
        if found is None:
            continue
        variance, epsilon = found
        power = _trailing_mean(variance)
        if power is None:
            continue
        squares, axis = power
        if squared(squares) is not centred:
            continue
        pair = binary(centred, "sub")
        mean = _trailing_mean(pair[1]) if pair is not None else None
        if mean is not None and mean == (pair[0], axis):
            return _as_norm(node, "layer", pair[0], axis, epsilon)
        return _as_norm(node, "rms", centred, axis, epsilon)
    return False


def _quotients(y: Value):
    """(numerator, what is under the root) for each way y is a quotient by a root."""
    pair = binary(y, "div")
    if pair is not None and unary(pair[1], "sqrt") is not None:
        yield pair[0], unary(pair[1], "sqrt")
    for a, b in pairs(y, "mul"):
        root = unary(b, "rsqrt")
        if root is None:
            inverse = unary(b, "reciprocal")
            one = binary(b, "div")
            if inverse is None and one is not None and constant(one[0]) == 1.0:
                inverse = one[1]
            root = unary(inverse, "sqrt") if inverse is not None else None
        if root is not None:
            yield a, root


def with_epsilon(v: Value) -> tuple[Value, float] | None:
    """(x, epsilon) when v is x + epsilon."""
    for a, b in pairs(v, "add"):
        epsilon = constant(b)
        if epsilon is not None and 0.0 <= epsilon < 1.0:
            return a, epsilon
    return None


def _trailing_mean(v: Value | None) -> tuple[Value, int] | None:
    """(x, first axis) when v is the mean of x over its last axes, kept as ones."""
    node = v.producer if v is not None else None
    if node is None or not isinstance(node.prim, Reduce) or node.prim.kind != "mean":
        return None
    prim, x = node.prim, node.inputs[0]
    first = min(prim.axes, default=x.rank)
    if not prim.keepdims or prim.prologue or prim.axes != tuple(range(first, x.rank)):
        return None
    return x, first


def _as_norm(node: Node, kind: str, x: Value, axis: int, epsilon: float) -> bool:
    y = node.outputs[0]
    if tuple(x.shape) != tuple(y.shape) or x.dtype is not y.dtype or not x.dtype.is_float:
        return False
    node.prim = Norm(kind, epsilon, axis)
    node.inputs = [x, None, None]
    node.outputs = [node.outputs[0], None, None, None]
    return True


def _scale_and_bias(node: Node, y: Value, uses: Uses) -> bool:
    """norm(x) * scale and norm(x) + bias become the norm's own; reshaped group norms too."""
    for op, slot in (("mul", 1), ("add", 2)):
        for normed, factor in pairs(y, op):
            norm = normed.producer
            if norm is not None and isinstance(norm.prim, Norm) and norm.prim.kind != "group":
                if slot == 2 and norm.prim.kind == "rms":
                    continue
                if _fits_trailing(norm, factor) and _absorb(norm, slot, factor, node, uses):
                    return True
            elif _group_affine(normed, factor, slot, node, uses):
                return True
    return False


def _fits_trailing(norm: Node, factor: Value) -> bool:
    x = norm.inputs[0]
    return factor.is_const and tuple(factor.shape) == tuple(x.shape[norm.prim.axis:])


def _absorb(norm: Node, slot: int, factor: Value, node: Node, uses: Uses) -> bool:
    """node (a scale or bias of norm's result) becomes the norm itself."""
    y = norm.outputs[0]
    if not uses.once(y) or norm.inputs[slot] is not None or (slot == 1 and norm.inputs[2]):
        return False
    inputs = list(norm.inputs)
    inputs[slot] = factor
    node.prim, node.inputs = norm.prim, inputs
    node.outputs = [node.outputs[0], None, None, None]
    node.origin = merged_origin(node.origin, norm.origin)
    return True


def _group_affine(normed: Value, factor: Value, slot: int, node: Node, uses: Uses) -> bool:
    """reshape -> group norm with unit scale -> reshape back -> by-channel scale or bias."""
    inner = alias_source(normed)
    norm = (inner if inner is not None else normed).producer
    if norm is None or not isinstance(norm.prim, Norm) or norm.prim.kind != "group":
        return False
    if not factor.is_const or normed.rank < 3 or not uses.once(normed):
        return False
    channels = as_int(normed.shape[1])
    by_channel = factor.const.reshape(-1)
    wide = factor.shape[-(normed.rank - 1):]
    if channels is None or by_channel.size != channels or as_int(wide[0]) != channels:
        return False
    x = norm.inputs[0]
    if inner is not None:
        x = alias_source(norm.inputs[0])
        unit = _is_all(norm.inputs[1], 1.0) and _is_all(norm.inputs[2], 0.0)
        if x is None or tuple(x.shape) != tuple(normed.shape) or not unit or not uses.once(inner):
            return False
    elif slot == 1 and not _is_all(norm.inputs[2], 0.0):
        return False
    elif not all(v is None or v.is_const for v in norm.inputs[1:3]):
        return False
    if inner is not None:  # the reshaped norm has unit scale: nothing of it to keep
        old = [np.full(channels, fill) for fill in (1.0, 0.0)]
    else:
        old = [_channel_values(v, channels, fill)
               for v, fill in zip(norm.inputs[1:3], (1.0, 0.0))]
    values = [old[0] * by_channel, old[1]] if slot == 1 else [old[0], old[1] + by_channel]
    scale, bias = (Value(type(factor.type)(factor.dtype, (channels,)),
                         const=v.astype(factor.const.dtype)) for v in values)
    node.prim, node.inputs = norm.prim, [x, scale, bias]
    node.outputs = [node.outputs[0], None, None, None]
    node.origin = merged_origin(node.origin, norm.origin)
    return True


def _is_all(v: Value | None, number: float) -> bool:
    return v is None or (v.is_const and bool(np.all(v.const == number)))


def _channel_values(v: Value | None, channels: int, fill: float) -> np.ndarray:
    return np.full(channels, fill) if v is None else np.broadcast_to(v.const, (channels,))
