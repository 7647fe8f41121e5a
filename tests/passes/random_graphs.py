"""Random elementwise and reducing graphs over broadcast shapes, for property tests of passes."""

import numpy as np
import onnx

from tests.passes.equivalence import model_of, node

UNARY = ["Abs", "Neg", "Tanh", "Sigmoid", "Relu"]
BINARY = ["Add", "Mul", "Sub", "Max"]
SHAPES = {"x": ["n", 4], "y": ["n", 4], "z": ["n", 1], "b": [4]}


def random_graph(rng: np.random.Generator, dtype=np.float64) -> tuple[onnx.ModelProto, dict]:
    """(model, inputs): up to 30 nodes over inputs x, y, z, b and constants c, d, e."""
    constants = {"c": rng.normal(size=(3, 4)).astype(dtype), "d": rng.normal(size=4).astype(dtype),
                 "e": np.array(rng.normal(), dtype)}
    wide, names = ["x", "y"], ["x", "y", "z", "b", *constants]
    nodes = []
    for i in range(rng.integers(2, 30)):
        out, pick = f"v{i}", rng.random()
        if pick < 0.3:
            nodes.append(node(str(rng.choice(UNARY)), str(rng.choice(names)), out))
        elif pick < 0.4:
            nodes.append(node("ReduceMax", str(rng.choice(wide)), out, axes=[-1]))
        elif pick < 0.5:
            nodes.append(node("Transpose", str(rng.choice(wide)), f"{out}t", perm=[1, 0]))
            nodes.append(node("Transpose", f"{out}t", out, perm=[1, 0]))
        else:
            pair = f"{rng.choice(names[-6:])} {rng.choice(names)}"
            nodes.append(node(str(rng.choice(BINARY)), pair, out))
        names.append(out)
        if pick >= 0.5 and any(n in wide for n in pair.split()):
            wide.append(out)
    outputs = list(dict.fromkeys([names[-1], *rng.choice([n for n in names if n[0] == "v"], 2)]))
    inputs = {k: rng.normal(size=[3 if d == "n" else d for d in s]).astype(dtype)
              for k, s in SHAPES.items()}
    return model_of(nodes, SHAPES, [str(o) for o in outputs], constants, dtype=dtype), inputs
