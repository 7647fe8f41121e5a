"""Sums of the features of edges by node, in the form that graph networks are exported in."""

import numpy as np
from onnx import TensorProto, helper

import rlx


def check_sums(device: str, edges: int, nodes: int, features: int) -> tuple[dict, int]:
    """The scatter's row of explain() and the arena's bytes; sums must round as in index order."""
    rng = np.random.default_rng(edges)
    feeds = {"data": rng.standard_normal((nodes, features)).astype(np.float32),
             "node": rng.integers(-nodes, nodes, edges),
             "x": rng.standard_normal((edges, features)).astype(np.float32)}
    one = helper.make_tensor("one", TensorProto.INT64, [1], [1])
    made = [helper.make_node("Unsqueeze", ["node", "one"], ["column"]),
            helper.make_node("Shape", ["x"], ["shape"]),
            helper.make_node("Expand", ["column", "shape"], ["indices"]),
            helper.make_node("ScatterElements", ["data", "indices", "x"], ["y"], axis=0,
                             reduction="add")]
    types = {"data": TensorProto.FLOAT, "node": TensorProto.INT64, "x": TensorProto.FLOAT}
    infos = [helper.make_tensor_value_info(n, types[n], v.shape) for n, v in feeds.items()]
    graph = helper.make_graph(made, "g", infos, [helper.make_empty_tensor_value_info("y")], [one])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    expected = feeds["data"].copy()
    np.add.at(expected, feeds["node"], feeds["x"])
    with rlx.load(model, device=device) as session:
        np.testing.assert_array_equal(session.run(feeds)["y"], expected)
        row, = [r for r in session.explain() if r["prim"] == "Scatter"]
        return row, session.counters()["arena_bytes"]
