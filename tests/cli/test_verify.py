"""rlx verify: right models pass; a broken kernel, pass or import is found and named."""

from dataclasses import replace
import json

import numpy as np
import onnx
import pytest

import models
from rlx import _core
from rlx.cli import main, peers
from rlx.importer import registry
from rlx.ir.graph import Node
from rlx.ir.prims import MatMul, Region
from rlx.passes import PIPELINE
from rlx.passes.children import for_each_graph
from tests.api.toys import F, model, node, value


@pytest.fixture
def verify(capsys):
    """verify(*arguments, code): the verdict of a command in this process, where things break."""

    def run(*arguments, code):
        assert main(["verify", *map(str, arguments), "--json"]) == code
        return json.loads(capsys.readouterr().out)

    return run


def break_rung(monkeypatch, rung):
    sound = _core.make_device
    monkeypatch.setattr(_core, "make_device", lambda *given, **options:
                        _core.faulty_device(sound(*given, **options), rung))


def break_pass(monkeypatch, name, spoil):
    """The pass does its work, and then spoil(node) to every node."""
    right = PIPELINE[name]

    def broken(graph, *more):
        graph = right(graph, *more)
        for_each_graph(graph, lambda g: [spoil(n) for n in g.nodes])
        return graph

    monkeypatch.setitem(PIPELINE, name, broken)


def double(n: Node) -> None:
    if isinstance(n.prim, MatMul):
        n.prim = replace(n.prim, alpha=2 * n.prim.alpha)


def relu_to_min(n: Node) -> None:
    if isinstance(n.prim, Region):
        ops = tuple(replace(op, op="min") if op.op == "max" else op for op in n.prim.ops)
        n.prim = replace(n.prim, ops=ops)


def test_right_models_are_right(rlx, rlx_json, digits, three, tagger):
    found = rlx_json("verify", digits, "--input", three)
    assert found["right"] and found["blame"] is None and found["compared"] >= 8
    assert found["outputs"][0]["name"] == "probabilities"
    path, inputs = tagger
    found = rlx_json("verify", path, "--input", inputs)
    assert found["right"] and found["compared"] > 11 * 10, "every iteration is compared"
    assert "right:" in rlx("verify", digits).stdout


@pytest.mark.parametrize("name", ["yolo", "unet", "llama", "vit-b16"])
def test_builders_networks_are_right(verify, tmp_path, name):
    builder = models.BUILDERS[name]
    onnx.save(builder.build(0, np.dtype(np.float32), **builder.NARROW), tmp_path / "m.onnx")
    np.savez(tmp_path / "i.npz", **builder.inputs(**builder.NARROW))
    assert verify(tmp_path / "m.onnx", "--input", tmp_path / "i.npz", code=0)["right"]


@pytest.mark.parametrize("rung, at, op, cure", [
    ("onednn", "/layer0/Relu", "Relu", {"force": "gemm"}),
    ("gemm", "/Gemm", "Gemm", {"force": "onednn"}),
    ("softmax", "/Softmax", "Softmax", None),
])
def test_a_broken_kernel_is_named(verify, digits, three, monkeypatch, rung, at, op, cure):
    if rung == "onednn" and not _core.build_info()["onednn"]:
        pytest.skip("needs oneDNN")
    break_rung(monkeypatch, rung)
    found = verify(digits, "--input", three, code=1)
    assert found["blame"].startswith(f"rung {rung}"), found
    assert (found["node"], found["op"]) == (at, op)
    assert found["cure"] == cure


def test_a_broken_kernel_inside_a_loop_is_named(verify, tagger, monkeypatch):
    break_rung(monkeypatch, "reduce")
    found = verify(tagger[0], "--input", tagger[1], code=1)
    assert found["blame"] == "rung reduce" and found["op"] == "ReduceMax"


@pytest.mark.parametrize("name", ["fold", "patterns", "epilogues", "prune"])
def test_a_broken_pass_is_named(verify, digits, three, monkeypatch, name):
    """Each of several passes, with the node whose product it spoils."""
    break_pass(monkeypatch, name, double)
    found = verify(digits, "--input", three, code=1)
    assert found["blame"] == f"pass {name}", found
    assert (found["node"], found["cure"]) == ("/Gemm", {"disable": [name]})


def test_the_pass_that_makes_weights_half_can_be_blamed(verify, mlp, monkeypatch):
    assert verify(mlp, "--weights", "f16", code=0)["right"]
    break_pass(monkeypatch, "narrow", double)
    found = verify(mlp, "--weights", "f16", code=1)
    assert (found["blame"], found["cure"]) == ("pass narrow", {"disable": ["narrow"]})
    assert verify(mlp, "--weights", "f16", "--disable", "narrow", code=0)["right"]
    assert verify(mlp, code=0)["right"], "without the option the pass is left out"


def test_a_pass_that_breaks_a_fused_relu_is_named(verify, mlp, monkeypatch):
    break_pass(monkeypatch, "regions", relu_to_min)
    found = verify(mlp, code=1)
    assert found["blame"] == "pass regions" and "Relu_j" in [found["node"], *found["fused"]]


def test_a_pass_that_is_broken_and_one_that_is_disabled(verify, mlp, monkeypatch):
    break_pass(monkeypatch, "regions", relu_to_min)
    assert verify(mlp, "--disable", "regions", code=0)["right"]


@pytest.mark.ort
def test_a_broken_import_is_named_against_another_runtime(verify, mlp, monkeypatch):
    assert verify(mlp, "--against", "onnxruntime", code=0)["right"]
    entry = registry.find("", "Relu", 17)
    monkeypatch.setitem(registry._ENTRIES, ("", "Relu"), [
        replace(entry, function=lambda b, x: b.scalar("neg", x))])
    found = verify(mlp, "--against", "onnxruntime", code=1)
    assert found["blame"] == "the import of Relu" and "Relu_j" in [found["node"], *found["fused"]]


def test_random_numbers_are_taken_from_the_run(verify, tmp_path):
    made = model([node("RandomNormalLike", "x", "r"), node("Add", "r x", "y")],
                 [value("x", F, [4])], [value("y")])
    onnx.save(made, tmp_path / "m.onnx")
    found = verify(tmp_path / "m.onnx", code=0)
    assert found["unchecked"] == ["RandomNormalLike"]


def test_runtime_sizes_are_compared(verify, tmp_path):
    """Buffers are planned for more elements than NonZero finds."""
    made = model([node("NonZero", "x", "i"), node("Cast", "i", "y", to=F)],
                 [value("x", F, ["n"])], [value("y")])
    onnx.save(made, tmp_path / "m.onnx")
    assert verify(tmp_path / "m.onnx", "--input", "x=[0, 1, 0, 2]", code=0)["right"]


def test_host_steps_and_text_are_compared(verify, tmp_path):
    text = onnx.TensorProto.STRING
    made = model([node("StringConcat", "x x", "t"), node("Equal", "t u", "e"),
                  node("Cast", "e", "y", to=F)],
                 [value("x", text, ["n"]), value("u", text, ["n"])],
                 [value("t", text, ["n"]), value("y", F, ["n"])], opset=20)
    onnx.save(made, tmp_path / "m.onnx")
    found = verify(tmp_path / "m.onnx", "--input", 'x=["a", "b"]', "--input", 'u=["aa", "b"]',
                   code=0)
    assert [o["name"] for o in found["outputs"]] == ["t", "y"]


def test_a_comparison_on_the_edge_is_no_fault(verify, tmp_path):
    """3 * 0.1 is not less than 0.3 in float32, but is in float64; no output shows it."""
    made = model([node("MatMul", "x three", "t"), node("GreaterOrEqual", "t c", "b"),
                  node("Cast", "b", "f", to=F), node("ReduceSum", "f", "m"),
                  node("Mul", "m tiny", "s"), node("Add", "x s", "y")],
                 [value("x", F, ["n", 1])], [value("y", F, None)],
                 {"three": np.float32([[3]]), "c": np.float32(0.3), "tiny": np.float32(1e-9)})
    onnx.save(made, tmp_path / "m.onnx")
    found = verify(tmp_path / "m.onnx", "--input", "x=[[0.1], [0.5]]", "--disable", "regions",
                   "--disable", "epilogues", code=0)
    assert found["blame"] == "rounding" and found["op"] == "GreaterOrEqual"


def test_tolerance(verify, mlp):
    assert not verify(mlp, "--tolerance", "1e-12", code=1)["right"]


def test_no_onnxruntime_is_told(mlp, monkeypatch, capsys):
    import sys
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert main(["verify", str(mlp), "--against", "onnxruntime"]) == 2
    assert "pip install onnxruntime" in capsys.readouterr().err
    assert peers.references  # the module itself needs none
