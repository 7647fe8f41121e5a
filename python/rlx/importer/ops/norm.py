"""Normalisations; batch norm is arithmetic by channel, which the epilogues pass folds away."""

from __future__ import annotations

from rlx.errors import ModelError
from rlx.importer.ops.checks import in_range, rank_at_least
from rlx.importer.registry import Ints, op
from rlx.ir.build import DType, Value, apply, as_int, product


@op("BatchNormalization", since=14)
def batch_normalization(b, x, scale, bias, mean, var, *, epsilon: float = 1e-5,
                        momentum: float = 0.9, training_mode: int = 0):
    values = (x, scale, bias, mean, var)
    if training_mode:
        return _batch_norm_training(b, *values, epsilon, momentum)[:3]
    return _apply_statistics(b, *values, epsilon)


@op("BatchNormalization", since=7)
def batch_normalization_7(b, x, scale, bias, mean, var, *, epsilon: float = 1e-5,
                          momentum: float = 0.9, spatial: int = 1):
    """More outputs than y: it trains. Without `spatial` each place has values of its own."""
    def normalise(*values):
        if any(b.wanted[1:]):
            return _batch_norm_training(b, *values, epsilon, momentum)
        return (_apply_statistics(b, *values, epsilon),)

    values = (x, scale, bias, mean, var)
    if spatial:
        return normalise(*values)
    rank_at_least(x, 2)
    size = product(x.shape[1:])
    flat = normalise(b.reshape(x, (x.shape[0], size)),
                     *(b.reshape(v, (size,)) for v in values[1:]))
    return tuple(b.reshape(v, x.shape if k == 0 else mean.shape) for k, v in enumerate(flat))


@op("BatchNormalization", since=1)
def batch_normalization_1(b, x, scale, bias, mean, var, *, epsilon: float = 1e-5,
                          momentum: float = 0.9, spatial: int = 1, is_test: int = 0,
                          consumed_inputs: Ints = None):
    if is_test and any(b.wanted[1:]):
        raise ModelError("BatchNormalization has statistics as outputs in training only",
                         expected="one output, or is_test=0", got=f"{len(b.wanted)} outputs")
    return batch_normalization_7(b, x, scale, bias, mean, var, epsilon=epsilon, momentum=momentum,
                                 spatial=spatial)


def _apply_statistics(b, x, scale, bias, mean, var, epsilon: float) -> Value:
    """x * factor + offset by channel; factor and offset are folded when constant."""
    dtype = mean.dtype
    scale, bias = b.cast(scale, dtype), b.cast(bias, dtype)
    deviation = b.scalar("sqrt", b.scalar("add", var, b.like(epsilon, var)))
    factor = b.scalar("div", scale, deviation)
    offset = b.scalar("sub", bias, b.scalar("mul", mean, factor))
    y = b.scalar("mul", b.cast(x, dtype), _by_channel(b, factor, x))
    return b.cast(b.scalar("add", y, _by_channel(b, offset, x)), x.dtype)


def _by_channel(b, v: Value, x: Value) -> Value:
    b.has_rank(v, 1, "a value for each channel")
    b.same_dim(v.shape[0], x.shape[1] if x.rank > 1 else 1, "values and channels")
    return b.reshape(v, (v.shape[0], *(1,) * max(x.rank - 2, 0)))


def _batch_norm_training(b, x, scale, bias, mean, var, epsilon, momentum):
    rank_at_least(x, 2)
    axes = tuple(k for k in range(x.rank) if k != 1)
    wide = b.cast(x, mean.dtype)
    now = b.reduce("mean", wide, axes)
    centred = b.scalar("sub", wide, now)
    spread = b.reduce("mean", b.scalar("mul", centred, centred), axes)
    now, spread = (b.reshape(v, (x.shape[1],)) for v in (now, spread))
    y = _apply_statistics(b, x, scale, bias, now, spread, epsilon)

    def running(old, new):
        kept = b.scalar("mul", old, b.like(momentum, old))
        return b.scalar("add", kept, b.scalar("mul", new, b.like(1.0 - momentum, new)))

    return y, running(mean, now), running(var, spread), now, spread


@op("LayerNormalization", since=17)
def layer_normalization(b, x, scale, bias=None, *, axis: int = -1, epsilon: float = 1e-5,
                        stash_type: int = 1):
    stash = DType(stash_type) if len(b.wanted) > 1 else None
    axis = b.axis(axis, x.rank)
    return b.norm("layer", x, _trailing(b, scale, x, axis), _trailing(b, bias, x, axis), epsilon,
                  axis=axis, stash=stash)


@op("RMSNormalization", since=23)
def rms_normalization(b, x, scale, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1):
    axis = b.axis(axis, x.rank)
    return b.norm("rms", x, _trailing(b, scale, x, axis), None, epsilon, axis=axis)[0]


def _trailing(b, v: Value | None, x: Value, axis: int) -> Value | None:
    """scale or bias with exactly the normalised dims (ONNX lets it broadcast)."""
    if v is None:
        return None
    shape = tuple(x.shape[axis:])
    if v.rank > len(shape) and all(d == 1 for d in v.shape[:v.rank - len(shape)]):
        v = b.reshape(v, v.shape[v.rank - len(shape):])
    if v.rank > len(shape):
        raise ModelError("scale or bias has more axes than are normalised", got=str(v.type),
                         expected=f"shape {list(shape)}")
    for d, n in zip(v.shape[::-1], shape[::-1]):
        if as_int(d) != 1:
            b.same_dim(d, n, "scale or bias and the normalised dims")
    return b.expand(v, shape)


@op("InstanceNormalization", since=6)
def instance_normalization(b, x, scale, bias, *, epsilon: float = 1e-5):
    rank_at_least(x, 3)
    n, channels, *spatial = x.shape
    if isinstance(channels, int) and channels:
        return _group_norm(b, x, scale, bias, channels, epsilon)
    # An open number of channels: each channel is a row.
    rows = b.reshape(x, (apply("mul", n, channels), product(spatial)))
    y = b.reshape(b.norm("layer", rows, None, None, epsilon, axis=1)[0], x.shape)
    y = b.scalar("mul", y, _by_channel(b, scale, x))
    return b.scalar("add", y, _by_channel(b, bias, x))


@op("InstanceNormalization", since=1)
def instance_normalization_1(b, x, scale, bias, *, epsilon: float = 1e-5,
                             consumed_inputs: Ints = None):
    return instance_normalization(b, x, scale, bias, epsilon=epsilon)


@op("GroupNormalization", since=21)
def group_normalization(b, x, scale, bias, *, num_groups: int, epsilon: float = 1e-5,
                        stash_type: int = 1):
    return _group_norm(b, x, scale, bias, num_groups, epsilon)


@op("GroupNormalization", since=18)
def group_normalization_18(b, x, scale, bias, *, num_groups: int, epsilon: float = 1e-5):
    """Before opset 21 scale and bias are one value a group."""
    rank_at_least(x, 3)
    size = apply("floordiv", x.shape[1], in_range("num_groups", num_groups, 1))
    spread = [b.reshape(b.expand(b.unsqueeze(v, (1,)), (num_groups, size)), (x.shape[1],))
              for v in (scale, bias)]
    return _group_norm(b, x, *spread, num_groups, epsilon)


def _group_norm(b, x, scale, bias, groups, epsilon: float) -> Value:
    rank_at_least(x, 3)
    in_range("num_groups", groups, 1)
    b.guard(apply("eq", apply("mod", x.shape[1], groups), 0),
            f"num_groups {groups} does not divide the {x.shape[1]} channels")
    for v in (scale, bias):
        b.same_dim(v.shape[0] if v.rank else 1, x.shape[1], "scale, bias and the channels")
    return b.norm("group", x, scale, bias, epsilon, groups=groups)[0]


@op("LpNormalization", since=1)
def lp_normalization(b, x, *, axis: int = -1, p: int = 2):
    in_range("p", p, 1, 2)
    norm = b.reduce(f"l{p}", x, (axis,))
    zero = b.scalar("eq", norm, b.like(0, x))
    return b.select(zero, b.like(0, x), b.scalar("div", x, norm))


@op("MeanVarianceNormalization", since=9)
def mean_variance_normalization(b, x, *, axes: Ints = (0, 2, 3)):
    centred = b.scalar("sub", x, b.reduce("mean", x, axes))
    spread = b.reduce("mean", b.scalar("mul", centred, centred), axes)
    deviation = b.scalar("add", b.scalar("sqrt", spread), b.like(1e-9, x))
    return b.scalar("div", centred, deviation)


@op("LRN", since=1)
def lrn(b, x, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, size: int):
    """Sums squares over a window of channels: as an average pool over the channel axis."""
    rank_at_least(x, 3)
    in_range("size", size, 1)
    square = b.scalar("mul", x, x)
    n, c, *spatial = x.shape
    flat = b.reshape(square, (n, 1, c, product(spatial)))
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    window = b.pool("average", flat, kernel=(size, 1), strides=(1, 1), dilations=(1, 1),
                    pads_begin=(before, 0), pads_end=(after, 0),
                    spatial_out=(c, product(spatial)), count_include_pad=True)[0]
    mean = b.reshape(window, x.shape)
    base = b.scalar("add", b.scalar("mul", mean, b.like(alpha, x)), b.like(bias, x))
    return b.scalar("div", x, b.scalar("pow", base, b.like(beta, x)))
