"""Reference of Recurrent: LSTM, GRU and RNN step by step, by the ONNX equations."""

from __future__ import annotations

import numpy as np

from rlx.ir.prims import Recurrent
from rlx.ir.reference.numeric import store


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


# name -> (function of x, alpha, beta; defaults of alpha and beta, None where it takes none)
_ACTIVATIONS = {
    "relu": (lambda x, a, b: np.maximum(x, 0), None, None),
    "tanh": (lambda x, a, b: np.tanh(x), None, None),
    "sigmoid": (lambda x, a, b: _sigmoid(x), None, None),
    "affine": (lambda x, a, b: a * x + b, 1.0, 0.0),
    "leakyrelu": (lambda x, a, b: np.where(x < 0, a * x, x), 0.01, None),
    "thresholdedrelu": (lambda x, a, b: np.where(x > a, x, 0), 1.0, None),
    "scaledtanh": (lambda x, a, b: a * np.tanh(b * x), 1.0, 1.0),
    "hardsigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), 0.2, 0.5),
    "elu": (lambda x, a, b: np.where(x < 0, a * (np.exp(x) - 1), x), 1.0, None),
    "softsign": (lambda x, a, b: x / (1 + np.abs(x)), None, None),
    "softplus": (lambda x, a, b: np.logaddexp(x, 0), None, None),
}
_DEFAULTS = {"lstm": ("Sigmoid", "Tanh", "Tanh"), "gru": ("Sigmoid", "Tanh"), "rnn": ("Tanh",)}


def recurrent(prim: Recurrent, inputs, types, value_of) -> list[np.ndarray | None]:
    """y, y_h and y_c over all directions."""
    x, w, r, b, lens, h0, c0, p, ws, wz, rs, rz = (
        v if v is None or k == 4 else v.astype(np.float64)
        for k, v in enumerate((*inputs, *[None] * 9)[:12]))
    near = (lambda v, rows: v) if ws is None else _rounded
    if ws is not None:
        w, r = (w - wz[..., None]) * ws[..., None], (r - rz[..., None]) * rs[..., None]
        x = near(x, slice(None))
    if prim.batchwise:
        x = x.swapaxes(0, 1)
        h0, c0 = (v if v is None else v.swapaxes(0, 1) for v in (h0, c0))
    steps, batch, _ = x.shape
    lens = np.full(batch, steps) if lens is None else lens.astype(np.int64)
    functions = _activations(prim, w.shape[0])
    backward = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
    results = []
    for d, back in enumerate(backward[prim.direction]):
        own = [None if v is None else v[d] for v in (w, r, b, h0, c0, p)]
        results.append(_direction(prim, x, lens, back, functions[d], near, *own))
    y = np.stack([s for s, _, _ in results], 1)
    h, c = (np.stack([s[k] for s in results], 0) for k in (1, 2))
    if prim.batchwise:
        y, h, c = y.transpose(2, 0, 1, 3), h.swapaxes(0, 1), c.swapaxes(0, 1)
    return [None if t is None else store(v, t.dtype) for v, t in zip((y, h, c), types)]


def _rounded(x: np.ndarray, rows) -> np.ndarray:
    """x as uint8 by the range of some rows stands for it, by DynamicQuantizeLinear's text."""
    low, high = (np.float32(f(x[rows], initial=0.0)) for f in (np.min, np.max))
    scale = (high - low) / np.float32(255) or np.float32(1)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    levels = np.clip(np.rint(x.astype(np.float32) / scale) + zero, 0, 255)
    return (levels.astype(np.float64) - zero) * np.float64(scale)


def _activations(prim: Recurrent, directions: int):
    """The functions of each direction; alphas and betas go to those that take one, in order."""
    count = len(_DEFAULTS[prim.kind])
    names = (prim.activations or _DEFAULTS[prim.kind] * directions)[:count * directions]
    alphas, betas = iter(prim.activation_alpha), iter(prim.activation_beta)
    bound = []
    for name in names:
        function, alpha, beta = _ACTIVATIONS[name.lower()]
        alpha = alpha if alpha is None else next(alphas, alpha)
        beta = beta if beta is None else next(betas, beta)
        bound.append(_clipped(function, alpha, beta, prim.clip))
    return [bound[k * count:(k + 1) * count] for k in range(directions)]


def _clipped(function, alpha, beta, clip: float):
    def activation(x):
        with np.errstate(over="ignore"):
            return function(np.clip(x, -clip, clip) if clip else x, alpha, beta)
    return activation


def _direction(prim: Recurrent, x, lens, back: bool, functions, near, w, r, b, h, c, p):
    """(y of every step, last h, last c); behind its length a row keeps its state and gives 0."""
    steps, batch, _ = x.shape
    size = prim.hidden_size
    gates = w.shape[0] // size
    b = np.zeros(2 * gates * size) if b is None else b
    h = np.zeros((batch, size)) if h is None else h
    c = np.zeros((batch, size)) if c is None else c
    p = np.zeros(3 * size) if p is None else p
    y = np.zeros((steps, batch, size))
    for t in reversed(range(steps)) if back else range(steps):
        live = (t < lens)[:, None]
        state = near(h, t < lens)
        new_h, new_c = _CELLS[prim.kind](prim, x[t], state, c, w, r, b, p, functions)
        h, c = np.where(live, new_h, h), np.where(live, new_c, c)
        y[t] = np.where(live, h, 0.0)
    return y, h, c


def _lstm(prim, x, h, c, w, r, b, p, functions):
    f, g, last = functions
    wb, rb = np.split(b, 2)
    i, o, forget, cell = np.split(x @ w.T + h @ r.T + wb + rb, 4, axis=1)
    p_i, p_o, p_f = np.split(p, 3)
    i = f(i + p_i * c)
    forget = 1 - i if prim.input_forget else f(forget + p_f * c)
    c = forget * c + i * g(cell)
    return f(o + p_o * c) * last(c), c


def _gru(prim, x, h, c, w, r, b, p, functions):
    f, g = functions
    wb, rb = np.split(b, 2)
    size = h.shape[1]
    from_x = np.split(x @ w.T + wb, 3, axis=1)
    from_h = h @ r[:2 * size].T + rb[:2 * size]
    z, reset = f(from_x[0] + from_h[:, :size]), f(from_x[1] + from_h[:, size:])
    r_h, b_h = r[2 * size:], rb[2 * size:]
    if prim.linear_before_reset:
        new = g(from_x[2] + reset * (h @ r_h.T + b_h))
    else:
        new = g(from_x[2] + (reset * h) @ r_h.T + b_h)
    return (1 - z) * new + z * h, c


def _rnn(prim, x, h, c, w, r, b, p, functions):
    wb, rb = np.split(b, 2)
    return functions[0](x @ w.T + h @ r.T + wb + rb), c


_CELLS = {"lstm": _lstm, "gru": _gru, "rnn": _rnn}
