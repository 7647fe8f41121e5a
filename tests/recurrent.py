"""Recurrent layers with constant weights as models, and what they should give in float64."""

import numpy as np

from rlx.ir.prims import Recurrent
from rlx.ir.reference import REFERENCES
from rlx.ir.types import TensorType, dtype_of
from tests.api.toys import model, node, value

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def layer(kind, direction="forward", dtype=np.float32, *, steps=5, batch=3, size=6, hidden=8,
          bias=True, lengths=None, states=True, batchwise=False, computed=False, **attributes):
    """(model, feeds, expected): outputs y, y_h and, of an LSTM, y_c."""
    rng = np.random.default_rng(len(kind) + hidden)
    d, g = (2 if direction == "bidirectional" else 1), GATES[kind]

    def draw(*shape):
        return (rng.standard_normal(shape) * 0.4).astype(dtype)
    x = draw(batch, steps, size) if batchwise else draw(steps, batch, size)
    # As frameworks begin: larger ones make a layer chaotic, which magnifies every rounding.
    w, r = ((draw(d, g * hidden, n) / hidden**0.5).astype(dtype) for n in (size, hidden))
    b = draw(d, 2 * g * hidden)
    state = (batch, d, hidden) if batchwise else (d, batch, hidden)
    h, c = (draw(*state) if states else None for _ in range(2))
    if kind != "LSTM":
        c = None
    if kind == "GRU":
        attributes.setdefault("linear_before_reset", 1)
    given = {"x": x, "w": w, "r": r, "b": b if bias else None,
             "n": None if lengths is None else np.array(lengths, np.int32), "h": h, "c": c}
    fed = {"x", "h", "c"} | ({"w"} if computed else set())
    names = " ".join(k if v is not None else "_" for k, v in given.items())
    element = {np.dtype(np.float32): 1, np.dtype(np.float16): 10}[np.dtype(dtype)]
    outputs = ["y", "y_h", "y_c"][:3 if kind == "LSTM" else 2]
    made = model([node(kind, names if kind == "LSTM" else names.rsplit(" ", 1)[0],
                       " ".join(outputs), direction=direction, hidden_size=hidden,
                       layout=int(batchwise), **attributes)],
                 [value(k, element, list(v.shape)) for k, v in given.items()
                  if k in fed and v is not None],
                 [value(k) for k in outputs],
                 {k: v for k, v in given.items() if k not in fed and v is not None}, opset=14)
    prim = Recurrent(kind.lower(), hidden, direction, tuple(attributes.get("activations", ())),
                     clip=attributes.get("clip", 0.0), batchwise=batchwise,
                     linear_before_reset=bool(attributes.get("linear_before_reset", 0)))
    y = (batch, steps, d, hidden) if batchwise else (steps, d, batch, hidden)
    types = [TensorType(dtype_of(np.dtype(np.float64)), s) for s in (y, state, state)]
    expected = REFERENCES[Recurrent](prim, [*given.values(), None], types, lambda dim: dim)
    feeds = {k: v for k, v in given.items() if k in fed and v is not None}
    return made, feeds, dict(zip(outputs, expected))


# What cuDNN does, by name: the arguments of layer().
BY_LIBRARY = {
    "lstm": ("LSTM", {}), "gru": ("GRU", {}), "rnn": ("RNN", {}),
    "rnn of relu": ("RNN", {"activations": ["Relu"]}),
    "lstm without bias and states": ("LSTM", {"bias": False, "states": False}),
    "lstm by rows": ("LSTM", {"batchwise": True}), "gru by rows": ("GRU", {"batchwise": True}),
    "lstm with lengths": ("LSTM", {"lengths": [5, 2, 3]}),
    "gru with lengths": ("GRU", {"lengths": [1, 5, 4], "bias": False}),
    "lstm both ways": ("LSTM", {"direction": "bidirectional"}),
    "gru both ways with lengths": ("GRU", {"direction": "bidirectional", "lengths": [5, 2, 3]}),
    "rnn both ways": ("RNN", {"direction": "bidirectional", "activations": ["Tanh", "Tanh"]}),
}
# What it does not, and a word of the reason.
NOT_BY_LIBRARY = {
    "backwards": ("LSTM", {"direction": "reverse"}, "backwards"),
    "clip": ("LSTM", {"clip": 0.5}, "clips"),
    "another activation": ("RNN", {"activations": ["Softsign"]}, "other activations"),
    "reset before the product": ("GRU", {"linear_before_reset": 0}, "resets behind"),
    "computed weights": ("LSTM", {"computed": True}, "computed"),
    "rows without steps": ("LSTM", {"lengths": [5, 0, 3]}, "no steps"),
    "both ways by rows": ("LSTM", {"direction": "bidirectional", "batchwise": True}, "by rows"),
}
