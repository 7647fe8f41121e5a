"""rlx bench: percentiles, peers beside rlx, and what is missing."""

import numpy as np
import pytest

from rlx.cli import main, peers


def test_bench(rlx, rlx_json, mlp):
    found = rlx_json("bench", mlp, "--dim", "n=3", "--runs", 25)
    own, = found["runtimes"]
    assert own["runs"] == 25 and own["name"] == "rlx" and own["ratio"] == 1
    assert 0 < own["min"] <= own["p50"] <= own["p90"] <= own["p99"]
    assert 0 < found["device_seconds"] and 0 <= found["host_seconds"]
    assert found["load_seconds"] > 0 and found["first_run_seconds"] > 0
    assert found["inputs"][0]["shape"] == [3, 8]
    text = rlx("bench", mlp, "--runs", 5).stdout
    assert "p99" in text and "host" in text


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "x"])
def test_a_time_that_is_none_is_bad_usage(rlx, mlp, seconds):
    done = rlx("bench", mlp, "--seconds", seconds, code=2)
    assert "usage: rlx bench" in done.stderr and "--seconds" in done.stderr


@pytest.mark.ort
def test_a_peer_in_the_same_process(rlx_json, mlp):
    found = rlx_json("bench", mlp, "--vs", "onnxruntime", "--seconds", "0.3")
    own, other = found["runtimes"]
    assert other["name"] == "onnxruntime" and other["runs"] >= 5 and other["right"]
    assert other["ratio"] == pytest.approx(other["p50"] / own["p50"])


def peer(factor):
    """Stands for a runtime of the mlp whose results are `factor` times the right ones."""
    def opened(name, model, given, threads):
        import rlx
        session = rlx.load(model)
        return "9.9", lambda: {n: y * np.float32(factor) for n, y in session.run(given).items()}
    return opened


def test_wrong_results_of_a_peer_are_seen(mlp, monkeypatch, capsys):
    monkeypatch.setattr(peers, "open_peer", peer(1.0))
    assert main(["bench", str(mlp), "--vs", "onnxruntime", "--runs", "3"]) == 0
    monkeypatch.setattr(peers, "open_peer", peer(1.01))
    assert main(["bench", str(mlp), "--vs", "onnxruntime", "--runs", "3"]) == 1
    assert "WRONG" in capsys.readouterr().out


@pytest.mark.parametrize("error, told", [
    (ModuleNotFoundError("No module named 'openvino'"),
     "openvino: No module named 'openvino'; try: pip install openvino"),
    (RuntimeError("operator nms does not exist"),
     "openvino: cannot be used here: operator nms does not exist"),
])
def test_a_missing_peer_is_told(mlp, monkeypatch, capsys, error, told):
    def refuse(*_):
        raise error

    monkeypatch.setattr(peers, "_openvino", refuse)
    assert main(["bench", str(mlp), "--vs", "openvino", "--runs", "3"]) == 1
    assert told in capsys.readouterr().out
    assert main(["bench", str(mlp), "--vs", "abacus", "--runs", "3"]) == 2


def test_turns_are_interleaved(monkeypatch):
    """Neither runs all its times before the other begins."""
    monkeypatch.setattr(peers, "WARM", 0.0)
    monkeypatch.setattr(peers, "TURN", 0.0)
    order = []
    times = peers.interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")},
                              0.0, 4, lambda _: None)
    assert [len(t) for t in times.values()] == [4, 4]
    assert "".join(order).endswith("aabb" * 4)
