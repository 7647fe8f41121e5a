"""The attention pass: products around a softmax become Attention in every form exporters write."""

import numpy as np
from onnx import TensorProto
import pytest

import models
from rlx.ir.prims import Attention, Move
from rlx.passes import PIPELINE
from tests.passes.equivalence import check, counts, graph_of, model_of, node

PASSES = ["dims", "fold", "dedupe", "patterns", "regions", "attention"]
# name -> (batch, size) and the attentions of the narrow network
NETWORKS = {"bert-base": ((2, 16), 2), "gpt2": ((2, 16), 2), "vit-b16": ((2, 32), 2),
            "llama": ((2, 3), 2), "unet": ((1, 16), 8)}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_use_attention_only(name):
    size, count = NETWORKS[name]
    builder = models.BUILDERS[name]
    model = builder.build(0, np.float32, **builder.NARROW)
    inputs = builder.inputs(*size, 0, np.float32, **builder.NARROW)
    found = counts(check(model, inputs, list(PIPELINE), ("rounded", "float32")))
    assert found["Attention"] == count and not found["Softmax"]


B, H, S, T, D = 2, 4, 3, 5, 8
SHAPES = {"q": ["b", H, "s", D], "k": ["b", H, "t", D], "v": ["b", H, "t", D]}


def operands(heads=H, **more):
    rng = np.random.default_rng(0)
    shapes = {"q": (B, H, S, D), "k": (B, heads, T, D), "v": (B, heads, T, D), **more}
    return {k: rng.normal(size=s).astype(np.float32) for k, s in shapes.items()}


def transposed_key(scores="q kt"):
    return [node("Transpose", "k", "kt", perm=[0, 1, 3, 2]), node("MatMul", scores, "s")]


FINISH = [node("Softmax", "p", "w", axis=-1), node("MatMul", "w v", "y")]
SCALE = {"c": np.array(D**0.5, np.float32), "r": np.array(D**-0.25, np.float32)}
FORMS = {
    "divided": [*transposed_key(), node("Div", "s c", "p")],
    "multiplied": [*transposed_key(), node("Mul", "c s", "p")],
    "both operands scaled": [node("Transpose", "k", "k0", perm=[0, 1, 3, 2]),
                             node("Mul", "q r", "q1"), node("Mul", "k0 r", "k1"),
                             node("MatMul", "q1 k1", "p")],
    "query scaled": [node("Div", "q c", "q1"), *transposed_key("q1 kt")[:1],
                     node("MatMul", "q1 kt", "p")],
    "not scaled": [node("Transpose", "k", "kt", perm=[0, 1, 3, 2]), node("MatMul", "q kt", "p")],
}


@pytest.mark.parametrize("form", FORMS)
def test_scales(form):
    model = model_of([*FORMS[form], *FINISH], SHAPES, ["y"], SCALE)
    graph = check(model, operands(), PASSES, ("rounded", "float32"))
    assert counts(graph) == {"Attention": 1}


MASK = {"m": ["b", 1, 1, "t"]}
MASKED = {
    "added": [node("Div", "s c", "d"), node("Add", "d m", "p")],
    "added first": [node("Add", "s m", "d"), node("Div", "d c", "p")],
    "where": [node("Greater", "m z", "b"), node("Where", "b s low", "p")],
    "scaled twice": [node("Div", "s c", "d"), node("Add", "m d", "e"), node("Mul", "e c", "p")],
}


@pytest.mark.parametrize("form", MASKED)
def test_masks(form):
    constants = {**SCALE, "z": np.array(0, np.float32), "low": np.array(-1e9, np.float32)}
    model = model_of([*transposed_key(), *MASKED[form], *FINISH], {**SHAPES, **MASK}, ["y"],
                     constants)
    graph = check(model, operands(m=(B, 1, 1, T)), PASSES, ("rounded", "float32"))
    (found,) = [n for n in graph.nodes if isinstance(n.prim, Attention)]
    assert counts(graph)["MatMul"] == 0 and found.prim.score is not None


def test_heads_last_operands_need_no_transposes():
    heads = [node("Transpose", f"{x}0", x, perm=[0, 2, 1, 3]) for x in "qv"]
    nodes = [*heads, node("Transpose", "k0", "kt", perm=[0, 2, 3, 1]), node("MatMul", "q kt", "p"),
             *FINISH[:1], node("MatMul", "w v", "y0"), node("Transpose", "y0", "y",
                                                           perm=[0, 2, 1, 3])]
    shapes = {f"{x}0": ["b", "s" if x == "q" else "t", H, D] for x in "qkv"}
    inputs = {f"{x}0": np.swapaxes(a, 1, 2) for x, a in operands().items()}
    graph = check(model_of(nodes, shapes, ["y"]), inputs, PASSES, ("rounded", "float32"))
    assert counts(graph) == {"Attention": 1}


def test_repeated_key_heads_are_grouped_queries():
    constants = {"five": np.array([B, 2, 2, T, D]), "four": np.array([B, H, T, D]),
                 "at": np.array([2])}
    nodes = []
    for x in "kv":
        nodes += [node("Unsqueeze", f"{x}0 at", f"{x}1"), node("Expand", f"{x}1 five", f"{x}2"),
                  node("Reshape", f"{x}2 four", x)]
    nodes += [node("Transpose", "k", "kt", perm=[0, 1, 3, 2]), node("MatMul", "q kt", "p")]
    shapes = {"q": [B, H, S, D], "k0": [B, 2, T, D], "v0": [B, 2, T, D]}
    inputs = operands(heads=2)
    inputs = {"q": inputs["q"], "k0": inputs["k"], "v0": inputs["v"]}
    graph = check(model_of([*nodes, *FINISH], shapes, ["y"], constants), inputs,
                  PASSES, ("rounded", "float32"))
    assert counts(graph) == {"Attention": 1}


def test_keys_transposed_while_batch_and_heads_are_one_axis():
    """As PyTorch's exporter writes it, beside a query whose scale ends a longer Region."""
    flat, back = np.array([B * H, T, D]), np.array([B, H, D, T])
    nodes = [node("Reshape", "k flat", "k1"), node("Transpose", "k1", "k2", perm=[0, 2, 1]),
             node("Reshape", "k2 back", "k3"), node("Mul", "k3 r", "kt"),
             node("Tanh", "q", "q1"), node("Mul", "q1 r", "q2"), node("MatMul", "q2 kt", "p"),
             *FINISH]
    shapes = {"q": [B, H, S, D], "k": [B, H, T, D], "v": [B, H, T, D]}
    graph = check(model_of(nodes, shapes, ["y"], {**SCALE, "flat": flat, "back": back}),
                  operands(), PASSES, ("rounded", "float32"))
    assert counts(graph) == {"Attention": 1, "Region": 1, "Alias": 1}


def hidden_behind(offset, rows=S, low=-np.inf):
    return np.where(np.arange(T) > np.arange(rows)[:, None] + offset, low, 0).astype(np.float32)


CAUSAL = {"from the first key": hidden_behind(0), "behind a past": hidden_behind(T - S),
          "finite": hidden_behind(1, low=np.finfo(np.float32).min)[None, None]}


@pytest.mark.parametrize("form", CAUSAL)
def test_a_constant_causal_mask_is_no_operand(form):
    nodes = [*transposed_key(), node("Div", "s c", "d"), node("Add", "d m", "p"), *FINISH]
    shapes = {"q": [B, H, S, D], "k": [B, H, T, D], "v": [B, H, T, D]}
    graph = check(model_of(nodes, shapes, ["y"], {**SCALE, "m": CAUSAL[form]}), operands(),
                  PASSES, ("rounded", "float32"))
    (found,) = [n for n in graph.nodes if isinstance(n.prim, Attention)]
    assert found.prim.causal and found.prim.score is None and len(found.inputs) == 3


OTHER_MASKS = {
    "hides a key too many": np.where(np.arange(T) == 0, -np.inf, 0) + hidden_behind(1),
    "hides a little": hidden_behind(0, low=-10.0),
    "hides nothing": np.zeros((S, T)),
    "a row sees nothing": hidden_behind(-1),
    "adds elsewhere": hidden_behind(0) + np.eye(S, T),
    "one row for all": hidden_behind(1, rows=1),
}


@pytest.mark.parametrize("form", OTHER_MASKS)
def test_other_constant_masks_stay_operands(form):
    nodes = [*transposed_key(), node("Div", "s c", "d"), node("Add", "d m", "p"), *FINISH]
    shapes = {"q": [B, H, S, D], "k": [B, H, T, D], "v": [B, H, T, D]}
    graph = graph_of(model_of(nodes, shapes, ["y"],
                              {**SCALE, "m": OTHER_MASKS[form].astype(np.float32)}), PASSES)
    (found,) = [n for n in graph.nodes if isinstance(n.prim, Attention)]
    assert found.prim.score is not None or found.prim.causal_offset >= T - 1


REFUSED = {
    "probabilities are an output": ([*FORMS["divided"], *FINISH], ["y", "w"]),
    "scores are an output": ([*FORMS["divided"], *FINISH], ["y", "s"]),
    "another axis": ([*FORMS["divided"], node("Softmax", "p", "w", axis=1), FINISH[1]], ["y"]),
    "logarithm": ([*FORMS["divided"], node("LogSoftmax", "p", "w", axis=-1), FINISH[1]], ["y"]),
    "values first": ([*FORMS["divided"], FINISH[0], node("Transpose", "w", "wt",
                      perm=[0, 1, 3, 2]), node("MatMul", "wt q", "y")], ["y"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_attention_stays(case):
    nodes, outputs = REFUSED[case]
    graph = check(model_of(nodes, SHAPES, outputs, SCALE), operands(), PASSES,
                  ("rounded", "float32"))
    found = counts(graph)
    assert found["Softmax"] == 1 and not found["Attention"]
    assert all(n.prim.mode == "none" for n in graph.nodes if isinstance(n.prim, Move))


def test_values_of_a_wider_type_stay_products():
    """Scores of float16 whose softmax and second product are float32: kernels take one type."""
    half, full = TensorProto.FLOAT16, TensorProto.FLOAT
    nodes = [node("Cast", "q", "q1", to=half), node("Cast", "k", "k1", to=half),
             node("Transpose", "k1", "kt", perm=[0, 1, 3, 2]), node("MatMul", "q1 kt", "s"),
             node("Cast", "s", "p", to=full), *FINISH]
    graph = check(model_of(nodes, SHAPES, ["y"]), operands(), PASSES, ("rounded", "float16"))
    assert not counts(graph)["Attention"]
