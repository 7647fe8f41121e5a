"""What cuDNN is asked about convolutions, and what is kept of its answers; fake_cudnn_graph.cpp."""

import pytest

from tests.cuda.test_runs import on_fake_gpu  # noqa: F401  (a fixture)

# Three layers of one form in three sizes, then one with another kernel.
RUN = """
def conv(name, x, cout, cin, size):
    weights = [numpy_helper.from_array(np.ones((cout, cin, size, size), np.float32), name + "w"),
               numpy_helper.from_array(np.ones(cout, np.float32), name + "b")]
    nodes = [h.make_node("Conv", [x, name + "w", name + "b"], [name + "c"], name,
                         pads=[size // 2] * 4),
             h.make_node("Relu", [name + "c"], [name])]
    return nodes, weights
layers = [conv("k", "x", 32, 16, 3), conv("l", "k", 64, 32, 3), conv("m", "l", 32, 64, 3),
          conv("n", "m", 32, 32, 1)]
graph = h.make_graph(sum((n for n, _ in layers), []), "g",
                     [h.make_tensor_value_info("x", T.FLOAT, [1, 16, 8, 8])],
                     [h.make_tensor_value_info("n", T.FLOAT, None)],
                     sum((w for _, w in layers), []))
with rlx.load(h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9),
              device="cuda") as session:
    session.run({"x": np.ones((1, 16, 8, 8), np.float32)})
    print([row["rung"] for row in session.explain() if row["prim"] == "Conv"])
"""
MODE_A, FALLBACK = 3, 2


@pytest.fixture
def asked(on_fake_gpu, fake_cudnn_graph, tmp_path):  # noqa: F811
    """Runs the layers in a fresh process: how often each question was asked."""
    def run(**env):
        done, calls = on_fake_gpu(RUN, before=f"sys.path.insert(0, {str(fake_cudnn_graph)!r})\n",
                                  RLX_CUDA_PTX_CACHE=str(tmp_path / "kernels"), **env)
        assert done.stdout.strip() == str(["cudnn + region"] * 4)
        return {call: count for call, count in calls.items() if call.startswith("asked")}

    return run


def questions(fused: int, alone: int) -> dict[str, int]:
    found = {f"asked:3:{MODE_A}": fused, f"asked:3:{FALLBACK}": fused, f"asked:1:{MODE_A}": alone}
    return {question: count for question, count in found.items() if count}


def test_a_fusion_that_cudnn_would_compile_is_asked_about_once_for_a_form(asked):
    assert asked() == questions(fused=2, alone=4)


def test_later_processes_ask_nothing(asked):
    asked()
    assert asked() == {}


def test_a_failure_is_no_answer_for_other_sizes_or_processes(asked):
    for alone in (4, 0):
        assert asked(CUDNN_FAILS="1") == questions(fused=4, alone=alone)
