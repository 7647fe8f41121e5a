"""rlx explain, check, ops, doctor and cache: their facts are those of the session and machine."""

import os
import re

import numpy as np
import onnx

import rlx as package
from rlx.cli import main
from tests.api.toys import F, model, node, value


def test_explain_names_a_decision_for_every_node(rlx, rlx_json, digits):
    found = rlx_json("explain", digits)
    names = [n.name for n in onnx.load(digits).graph.node]
    assert [row["node"] for row in found["nodes"]] == names
    rows = {row["node"]: row for row in found["nodes"]}
    assert rows["/layer0/Conv"]["decision"] == "fused"
    assert "/layer0/Relu" in rows["/layer0/Conv"]["why"]
    assert rows["/layer0/Relu"]["steps"][0]["prim"] == "Conv"
    assert rows["/Constant"]["decision"] == "imported"
    text = rlx("explain", digits).stdout
    assert all(name in text for name in names)


def test_explain_follows_disabled_passes_and_subgraphs(rlx_json, digits, tagger):
    apart = {row["node"]: row for row in rlx_json("explain", digits, "--disable", "epilogues",
                                                  "--disable", "regions")["nodes"]}
    assert apart["/layer0/Conv"]["decision"] == "runs"
    path, inputs = tagger
    found = rlx_json("explain", path, "--input", inputs)
    inside = [s for row in found["nodes"] for s in row["steps"] if s["path"].startswith("Loop")]
    assert inside


def test_explain_prints_the_program(rlx, mlp):
    assert "Region" in rlx("explain", mlp, "--ir", "imported").stdout
    final = rlx("explain", mlp, "--ir").stdout
    assert final.startswith("graph toy") and final.count("MatMul(") == 2
    assert "input %x: float32[n, 8]" in final


def test_explain_shows_the_arena(rlx, rlx_json, digits, three):
    found = rlx_json("explain", digits, "--memory")
    with package.load(digits) as session:
        session.run(np.load(three))
        assert found["blocks"] == session.memory_plan()
        assert found["arena_bytes"] == session.counters()["arena_bytes"]
    assert "arena 20.5 KB" in rlx("explain", digits, "--memory").stdout


def test_check_accepts(rlx_json, rlx, digits, tagger):
    found = rlx_json("check", digits)
    assert found["runs"] and found["device"] == "cpu" and found["opsets"] == {"ai.onnx": 17}
    assert {row["operator"]: row["nodes"] for row in found["operators"]}["Conv"] == 2
    assert "runs on cpu" in rlx("check", tagger[0]).stdout


def test_check_refuses(rlx_json, tmp_path):
    def checked(nodes, opset=17, dtype=F, **rest):
        path = tmp_path / "m.onnx"
        onnx.save(model(nodes, [value("x", dtype, [2])], [value("y", dtype, [2])], opset=opset),
                  path)
        found = rlx_json("check", path, code=1, **rest)
        assert not found["runs"]
        return found["problems"]

    strange = node("Fly", "x", "y")
    strange.domain = "my.birds"
    problem, = checked([strange])
    assert problem["op"] == "Fly" and problem["node"] == strange.name
    removed, = checked([node("Affine", "x", "y")])
    assert "removed it in opset 10; nodes: Affine_y" in removed["message"]
    assert "operator set" in checked([node("Relu", "x", "y")], opset=99)[0]["message"]
    text = checked([node("Sqrt", "x", "y")], dtype=onnx.TensorProto.STRING)[0]["message"]
    assert "Sqrt" in text


def test_check_needs_no_external_weights(rlx_json, tmp_path):
    """Operators are looked at though the file with the weights is not there."""
    strange = node("Fly", "x w", "y")
    strange.domain = "my.birds"
    made = model([strange], [value("x", F, [64])], [value("y", F, [64])],
                 {"w": np.ones(4096, np.float32)})
    onnx.save(made, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin")
    os.remove(tmp_path / "w.bin")
    assert rlx_json("check", tmp_path / "m.onnx", code=1)["problems"][0]["op"] == "Fly"


def without_weights(folder, nodes, weights, dtype=F):
    """A model of x[64] whose file of weights has been removed."""
    made = model(nodes, [value("x", dtype, [64])], [value("y", dtype)], weights)
    onnx.save(made, folder / "m.onnx", save_as_external_data=True, location="w.bin",
              size_threshold=0, convert_attribute=True)
    os.remove(folder / "w.bin")
    return folder / "m.onnx"


def test_check_accepts_a_good_model_without_its_weights(rlx, rlx_json, tmp_path):
    path = without_weights(tmp_path, [node("Add", "x w", "y")], {"w": np.ones(64, np.float32)})
    found = rlx_json("check", path)
    assert found["runs"] and found["absent_files"] == ["w.bin"] and not found["decided_by_inputs"]
    text = rlx("check", path).stdout
    assert "w.bin is not there" in text and "runs on cpu" in text


def test_check_knows_the_types_of_absent_weights(rlx_json, tmp_path):
    path = without_weights(tmp_path, [node("Add", "x w", "y")], {"w": np.ones(64, np.float64)})
    assert "Add" in rlx_json("check", path, code=1)["problems"][0]["message"]
    path = without_weights(tmp_path, [node("Add", "x w", "y")], {"w": np.ones(63, np.float32)})
    assert "Add" in rlx_json("check", path, code=1)["problems"][0]["message"]


def test_check_says_what_absent_weights_decide(rlx, rlx_json, tmp_path):
    path = without_weights(tmp_path, [node("ReduceSum", "x axes", "y")], {"axes": np.int64([0])})
    assert rlx_json("check", path)["decided_by_inputs"] == ["value of axes"]
    assert "the value of axes decides the program" in rlx("check", path).stdout


def test_check_says_what_it_has_not_checked(rlx, rlx_json, tmp_path):
    """A tensor of a node has no type of its own that could stand for it."""
    constant = onnx.numpy_helper.from_array(np.ones(64, np.float32), "c")
    path = without_weights(tmp_path, [node("Constant", "", "w", value=constant),
                                      node("Add", "x w", "y")], {})
    assert "w.bin" in rlx_json("check", path)["unchecked"]
    assert "types were not checked: there is no file" in rlx("check", path).stdout


def test_check_refuses_files_as_run_does(rlx, tmp_path):
    (tmp_path / "README.md").write_text("# no model\n")
    (tmp_path / "empty.onnx").touch()
    for name in ("README.md", "empty.onnx", "nowhere.onnx"):
        told = [rlx(command, tmp_path / name, code=2).stderr for command in ("check", "run")]
        assert told[0] == told[1]


def test_check_knows_the_device(rlx_json, digits):
    found = rlx_json("check", digits, "--device", "tpu", code=1)
    assert found["device"] is None and found["problems"][0]["kind"] == "DeviceError"


def test_ops(rlx, rlx_json):
    found = rlx_json("ops")
    rows = {(row["domain"], row["name"]): row for row in found["operators"]}
    assert rows["ai.onnx", "Conv"] == {
        "name": "Conv", "domain": "ai.onnx", "status": "native", "versions": [1, 11, 22],
        "since": 1, "types": ["bfloat16", "double", "float", "float16"]}
    missing = rlx_json("ops", "--missing")["operators"]
    assert all(row["status"] == "missing" for row in missing)
    assert len(found["operators"]) == sum(found["counts"].values())
    assert "Conv" in rlx("ops", "Conv").stdout
    assert "Fly" in rlx("ops", "Fly", code=2).stderr


def test_ops_shows_what_is_known_beside_what_is_not(rlx, rlx_json):
    done = rlx("ops", "Conv", "Fly", code=2)
    assert "Conv" in done.stdout and done.stderr == "InputError: no operator Fly is known\n"
    found = rlx_json("ops", "Conv", "Fly", code=2)
    assert [row["name"] for row in found["operators"]] == ["Conv"] and found["unknown"] == ["Fly"]


def test_doctor(rlx, rlx_json):
    found = rlx_json("doctor")
    assert found["usable"] and found["versions"]["rlx"] == package.__version__
    assert found["cpu"]["threads"] >= 1 and found["cpu"]["allowed_cpus"] >= 1
    onednn = found["build"]["onednn"]
    assert any("libdnnl" in path for path in found["build"]["loaded"]) == bool(onednn)
    assert not onednn or re.fullmatch(r"\d+\.\d+\.\d+", onednn)
    assert [lib["name"] for lib in found["cuda"]["libraries"]] == [
        lib["name"] for lib in package._core.cuda_probe()["libraries"]]
    assert found["cuda"]["usable"] == any(d.startswith("cuda") for d in package.devices())
    text = rlx("doctor").stdout
    assert "CPU: ready" in text and "CUDA: " in text


def test_doctor_says_a_remedy_once(monkeypatch, capsys):
    remedy = "install NVIDIA's driver"
    monkeypatch.setattr(package._core, "cuda_probe", lambda: {
        "libraries": [{"name": "driver", "usable": False, "path": "", "how": "", "version": "",
                       "reason": "was not found", "remedy": remedy}],
        "gpus": [], "reason": f"driver: was not found; try: {remedy}", "cuda_major": 12,
        "cache_folder": ""})
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out.count(remedy) == 1


def test_doctor_names_the_remedy(monkeypatch, capsys):
    """One pip command for all that is missing, and what pip cannot bring beside it."""
    def library(name, remedy):
        return {"name": name, "usable": not remedy, "path": "", "how": "", "version": "12.9",
                "reason": remedy and "was not found", "remedy": remedy}

    monkeypatch.setattr(package._core, "cuda_probe", lambda: {
        "libraries": [library("driver", "install NVIDIA's driver"),
                      library("NVRTC", "pip install nvidia-cuda-nvrtc-cu12"),
                      library("cuBLAS", "pip install nvidia-cublas-cu12"),
                      library("cuBLASLt", "pip install nvidia-cublas-cu12"), library("cuDNN", "")],
        "gpus": [], "reason": "driver: was not found", "cuda_major": 12, "cache_folder": ""})
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "pip install nvidia-cuda-nvrtc-cu12 nvidia-cublas-cu12\n" in text
    assert "install NVIDIA's driver" in text and "not usable: driver: was not found" in text


def test_cache(rlx, rlx_json, tmp_path):
    """Nothing but what has the name of an entry, or of one that is being written, is ours."""
    folder, key = tmp_path / "kernels", "0123456789abcdef" * 4
    ours = [f"{key}.algo", f"{key}.cubin", f"{key}.cubin.12.3.tmp", f"{key}.kernel", f"{key}.plan"]
    others = ["b.cubin", "notes.txt", "draft.tmp", f"{key}.txt", f"{key}.tmp", f"{key}0.cubin",
              f"{key}.cubin.tmp", f"{key}.cubin.old", f"{'g' * 64}.cubin", f"sm_90/{key}.cubin"]
    (folder / "sm_90").mkdir(parents=True)
    for name in ours + others:
        (folder / name).write_bytes(b"x" * 400)
    (folder / f"{'f' * 64}.cubin").mkdir()
    (folder / f"{'e' * 64}.cubin").symlink_to(folder / "notes.txt")
    env = {"RLX_CUDA_PTX_CACHE": str(folder)}
    found = rlx_json("cache", **env)
    assert [e["name"] for e in found["entries"]] == ours
    assert "5 files, 2.0 KB" in rlx("cache", "size", **env).stdout
    assert rlx_json("cache", "clear", **env)["files"] == 5
    assert rlx_json("cache", "size", **env)["bytes"] == 0
    assert not any((folder / name).exists() for name in ours)
    assert all((folder / name).exists() for name in others)
    assert (folder / f"{'f' * 64}.cubin").is_dir() and (folder / f"{'e' * 64}.cubin").is_symlink()


def test_where_the_cache_is(rlx, rlx_json, tmp_path):
    none = {"RLX_CUDA_PTX_CACHE": "", "HOME": str(tmp_path / "home")}
    by_xdg = rlx_json("cache", "size", XDG_CACHE_HOME=str(tmp_path), **none)["folder"]
    assert by_xdg == str(tmp_path / "rlx" / "kernels")
    by_home = rlx_json("cache", "size", XDG_CACHE_HOME="", **none)["folder"]
    assert by_home == str(tmp_path / "home" / ".cache" / "rlx" / "kernels")
    assert "switched off" in rlx("cache", code=2, RLX_CUDA_PTX_CACHE="off").stderr


def test_the_core_has_the_same_folder():
    assert package._core.cuda_probe()["cache_folder"] == str(package.cache_info().folder)
