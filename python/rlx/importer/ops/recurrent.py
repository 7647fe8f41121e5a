"""Recurrent layers: LSTM, GRU, RNN."""

from __future__ import annotations

from typing import Literal

from rlx.errors import ModelError
from rlx.importer.ops.checks import in_range, rank_is
from rlx.importer.registry import Floats, Texts, op
from rlx.ir.build import Recurrent, as_int

Direction = Literal["forward", "reverse", "bidirectional"]


def layer(b, kind: str, tensors, hidden_size, direction, activations, alpha, beta, clip, layout,
          scales=(), **more):
    """One of the layers; scales of integer weights, see ir/prims.py."""
    x, w, r, bias, lens, h, c, p = tensors
    for v, what in ((x, "X"), (w, "W"), (r, "R")):
        rank_is(v, 3, what)
    hidden = hidden_size if hidden_size is not None else as_int(r.shape[2])
    if hidden is None:
        raise ModelError("hidden_size is missing, and the weights do not tell it", got=str(r.type))
    in_range("hidden_size", hidden, 1)
    in_range("layout", layout, 0, 1)
    prim = Recurrent(kind, hidden, direction, tuple(activations or ()), tuple(alpha or ()),
                     tuple(beta or ()), clip or 0.0, batchwise=bool(layout), **more)
    return b.recurrent(prim, x, w, r, bias, lens, h, c, p, scales)


@op("LSTM", since=1)
def lstm(b, x, w, r, bias=None, sequence_lens=None, initial_h=None, initial_c=None, p=None, *,
         activation_alpha: Floats = None, activation_beta: Floats = None,
         activations: Texts = None, clip: float | None = None, direction: Direction = "forward",
         hidden_size: int | None = None, input_forget: int = 0, layout: int = 0,
         output_sequence: int = 0):
    return layer(b, "lstm", (x, w, r, bias, sequence_lens, initial_h, initial_c, p),
                 hidden_size, direction, activations, activation_alpha, activation_beta,
                 clip, layout, input_forget=bool(input_forget))


@op("GRU", since=1)
def gru(b, x, w, r, bias=None, sequence_lens=None, initial_h=None, *,
        activation_alpha: Floats = None, activation_beta: Floats = None,
        activations: Texts = None, clip: float | None = None, direction: Direction = "forward",
        hidden_size: int | None = None, layout: int = 0, linear_before_reset: int = 0,
        output_sequence: int = 0):
    return layer(b, "gru", (x, w, r, bias, sequence_lens, initial_h, None, None),
                 hidden_size, direction, activations, activation_alpha, activation_beta,
                 clip, layout, linear_before_reset=bool(linear_before_reset))[:2]


@op("RNN", since=1)
def rnn(b, x, w, r, bias=None, sequence_lens=None, initial_h=None, *,
        activation_alpha: Floats = None, activation_beta: Floats = None,
        activations: Texts = ("Tanh", "Tanh"), clip: float | None = None,
        direction: Direction = "forward", hidden_size: int | None = None, layout: int = 0,
        output_sequence: int = 0):
    return layer(b, "rnn", (x, w, r, bias, sequence_lens, initial_h, None, None),
                 hidden_size, direction, activations, activation_alpha, activation_beta,
                 clip, layout)[:2]
