"""ONNX Attention in float64 as the operator's text says, and its forms with few query rows."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

import rlx
from tests.tolerance import tolerance

DTYPES = {"float32": (np.float32, TensorProto.FLOAT), "float16": (np.float16, TensorProto.FLOAT16),
          "bfloat16": (ml_dtypes.bfloat16, TensorProto.BFLOAT16)}
TYPE_OF = {"bool": TensorProto.BOOL, "int64": TensorProto.INT64}
NAMES = ("q", "k", "v", "mask", "past_k", "past_v", "lengths")
MASKS = ("none", "causal", "causal past", "float", "bool", "padding", "by head", "shorter",
         "window", "softcap", "lengths", "causal lengths")


@dataclass(frozen=True)
class Form:
    """A model of one Attention: sizes, type and which keys are seen."""

    batch: int
    kv_heads: int
    ratio: int
    rows: int
    keys: int
    depth: int
    mask: str = "none"
    dtype: str = "float32"
    value_depth: int = 0

    def __str__(self) -> str:
        return (f"{self.dtype} {self.batch}x{self.kv_heads}x{self.ratio} rows {self.rows} "
                f"keys {self.keys} dim {self.depth} {self.mask}")


def feeds_of(form: Form, seed: int = 0) -> tuple[dict[str, np.ndarray], dict]:
    """The inputs, already in the form's type, and the attributes."""
    rng = np.random.default_rng(seed)
    b, heads, s, t = form.batch, form.kv_heads * form.ratio, form.rows, form.keys
    past = max(t - s, 0) if form.mask in ("causal past", "window") else 0
    feeds = {"q": (b, heads, s, form.depth), "k": (b, form.kv_heads, t - past, form.depth),
             "v": (b, form.kv_heads, t - past, form.value_depth or form.depth)}
    if past:
        feeds |= {"past_" + n: (*feeds[n][:2], past, feeds[n][3]) for n in "kv"}
    feeds = {name: rng.standard_normal(shape) for name, shape in feeds.items()}
    attributes = {}
    if form.mask.startswith("causal"):
        attributes["is_causal"] = 1
    if form.mask in ("float", "softcap"):
        feeds["mask"] = rng.standard_normal((s, t))
        feeds["mask"][0, :t // 2] = -np.inf
    if form.mask == "softcap":
        attributes["softcap"] = 1.5
    if form.mask == "bool":
        feeds["mask"] = rng.random((b, 1, s, t)) < 0.6
        feeds["mask"][0, 0, s - 1] = False  # a row that sees nothing
    if form.mask == "padding":
        feeds["mask"] = np.arange(t) < rng.integers(1, t + 1, (b, 1, 1, 1))
    if form.mask == "by head":
        feeds["mask"] = rng.standard_normal((1, heads, 1, t))
    if form.mask == "shorter":
        feeds["mask"] = rng.random((s, max(t - 3, 1))) < 0.8
    if form.mask == "window":
        attributes |= {"left_window_size": t // 3, "right_window_size": 0}
    if form.mask.endswith("lengths"):  # fewer keys than rows leave the first rows without any
        feeds["lengths"] = rng.integers(1, t + 1, b)
    kind = DTYPES[form.dtype][0]
    return {n: x.astype(kind) if x.dtype.kind == "f" else x for n, x in feeds.items()}, attributes


def model_of(form: Form, open_keys: bool = False, feeds=None):
    """The model; with `open_keys` the number of keys is known only when it runs."""
    feeds, attributes = feeds or feeds_of(form)
    kind = DTYPES[form.dtype][1]

    def dims(name):
        shape = list(feeds[name].shape)
        if open_keys and name in ("k", "v"):
            shape[2] = "t"
        if open_keys and name == "mask":
            shape[-1] = "t"
        return shape

    names = [n if n in feeds else "" for n in NAMES]
    while not names[-1]:
        names.pop()
    given = [helper.make_tensor_value_info(n, TYPE_OF.get(x.dtype.name, kind), dims(n))
             for n, x in feeds.items()]
    node = helper.make_node("Attention", names, ["y"], "attention", **attributes)
    graph = helper.make_graph([node], "g", given,
                              [helper.make_tensor_value_info("y", kind, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=10)


def truth_of(feeds: dict[str, np.ndarray], attributes: dict) -> np.ndarray:
    """Y of the operator's text in float64."""
    x = {n: a.astype(np.float64) if n in "qkv" or n.startswith("past") else a
         for n, a in feeds.items()}
    q, k, v = x["q"], x["k"], x["v"]
    offset = np.zeros((q.shape[0], 1, 1, 1), int)
    if "past_k" in x:
        offset += x["past_k"].shape[2]
        k, v = (np.concatenate([x["past_" + n], x[n]], 2) for n in "kv")
    k, v = (np.repeat(a, q.shape[1] // a.shape[1], 1) for a in (k, v))
    rows, keys = q.shape[2], k.shape[2]
    score = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3])
    if cap := attributes.get("softcap"):
        score = cap * np.tanh(score / cap)
    i, j = np.arange(rows)[:, None], np.arange(keys)
    seen = np.ones((q.shape[0], 1, rows, keys), bool)
    if "lengths" in x:
        lengths = x["lengths"].reshape(-1, 1, 1, 1)
        offset = lengths - rows
        seen &= j < lengths
    place = offset + i
    if attributes.get("is_causal"):
        seen &= j <= place
    if (left := attributes.get("left_window_size", -1)) >= 0:
        seen &= j >= place - left
    if (right := attributes.get("right_window_size", -1)) >= 0:
        seen &= j <= place + right
    if (mask := x.get("mask")) is not None:
        mask = np.where(mask, 0.0, -np.inf) if mask.dtype == bool else mask.astype(np.float64)
        widths = [(0, 0)] * (mask.ndim - 1) + [(0, keys - mask.shape[-1])]
        score = score + np.pad(mask, widths, constant_values=-np.inf)
    score = np.where(seen, score, -np.inf)
    top = score.max(-1, keepdims=True)
    weight = np.exp(score - np.where(np.isinf(top), 0.0, top))
    total = weight.sum(-1, keepdims=True)
    return weight / np.where(total == 0, 1.0, total) @ v


def check(device: str, form: Form, force: str = "", runs: int = 1) -> dict:
    """Runs the form (recordings begin with the second run); gives Attention's row of explain()."""
    feeds, attributes = feeds_of(form)
    truth = truth_of(feeds, attributes)
    with rlx.load(model_of(form), device=device, tf32=False, force=force) as session:
        for _ in range(runs):
            found = session.run(feeds)["y"]
            np.testing.assert_allclose(found.astype(np.float64), truth,
                                       **tolerance("norm", form.dtype))
        return attention_row(session)


def attention_row(session) -> dict:
    """What explain() says of the one Attention."""
    (row,) = [r for r in session.explain() if r["prim"].lower() == "attention"]
    return row


def forms() -> list[Form]:
    """Each head dim with each mask; the other sizes in turn."""
    found = []
    for i, depth in enumerate((1, 8, 40, 64, 80, 96, 128, 160, 256, 257)):
        for j, mask in enumerate(MASKS):
            n = i + j
            found.append(Form(
                batch=1 + j % 2, kv_heads=1 + n % 2, ratio=(1, 3, 4, 8)[(n + j) % 4],
                rows=1 + (3 * i + j) % 8, keys=(17, 200, 1, 17, 1000, 40, 17)[(n + i) % 7],
                depth=depth, mask=mask, dtype=("float16", "float32", "bfloat16")[(i + j) % 3]))
    found += [Form(2, 1, ratio, rows, 70, 128, dtype=dtype)
              for ratio in (1, 3, 4, 8) for rows in (1, 8) for dtype in DTYPES]
    found += [Form(1, 1, 4, 1, 5000, depth, mask, dtype)
              for depth, mask in ((128, "none"), (64, "causal lengths"), (40, "by head"))
              for dtype in DTYPES]
    return [*found, Form(1, 1, 2, 3, 40, 80, value_depth=96, dtype="float16"),
            Form(1, 2, 3, 2, 1000, 7, value_depth=130)]
