"""The layout pass: images stay channels last between convolutions, with few transposes."""

import numpy as np
import pytest

import models
from rlx.ir.graph import Graph
from rlx.ir.prims import Conv, Move
from rlx.passes import PIPELINE
from tests.passes.equivalence import check, counts, graph_of, model_of, node

ALL = list(PIPELINE)
SIZES = {"resnet50": (2, 64), "mobilenet_v2": (2, 64), "unet": (2, 16), "yolo": (1, 64),
         "vit-b16": (2, 32)}


def transposes(graph: Graph) -> int:
    return sum(isinstance(n.prim, Move) and len(n.prim.parts) == 1
               and n.prim.parts[0].perm != tuple(range(n.outputs[0].rank)) for n in graph.nodes)


def narrow(name):
    builder = models.BUILDERS[name]
    model = builder.build(0, np.float32, **builder.NARROW)
    return model, builder.inputs(*SIZES[name], 0, np.float32, **builder.NARROW)


# Transposes that layout adds to those of the model itself (fewer: the model's own are gone too).
@pytest.mark.parametrize("name, added", [("resnet50", 1), ("mobilenet_v2", 1), ("unet", -6),
                                         ("yolo", 8), ("vit-b16", 0)])
def test_networks_keep_their_results_with_few_transposes(name, added):
    model, inputs = narrow(name)
    before = graph_of(model, [p for p in ALL if p != "layout"])
    graph = check(model, inputs, ALL, ("rounded", "float32"))
    assert transposes(graph) - transposes(before) == added


RANDOM_OPS = ["conv", "conv", "conv", "depthwise", "relu", "add", "channel", "concat", "pool",
              "mean", "flat mean", "softmax", "resize", "norm", "pad", "slice", "scale", "trilu"]


def random_network(rng: np.random.Generator, spatial: int):
    """(nodes, constants, names): a chain with joins over images of 4 channels, 5 places an axis."""
    nodes, constants, names = [], {}, ["x"]
    ones = [1] * spatial

    def weight(*shape):
        constants[f"w{len(constants)}"] = rng.normal(size=shape) / 3
        return f"w{len(constants) - 1}"

    for i in range(rng.integers(3, 14)):
        x, out, op = str(rng.choice(names[-3:])), f"v{i}", str(rng.choice(RANDOM_OPS))
        window = {"kernel_shape": [3] * spatial, "pads": [1] * 2 * spatial}
        if op == "conv":
            new = [node("Conv", f"{x} {weight(4, 4, *[3] * spatial)} {weight(4)}", out, **window)]
        elif op == "depthwise":
            new = [node("Conv", f"{x} {weight(4, 1, *[3] * spatial)}", out, group=4, **window)]
        elif op == "relu":
            new = [node("Relu", x, out)]
        elif op == "add":
            new = [node("Add", f"{x} {rng.choice(names)}", out)]
        elif op == "channel":
            new = [node("Mul", f"{x} {weight(4, *ones)}", out)]
        elif op == "scale":
            new = [node("GlobalAveragePool", x, f"{out}m"), node("Mul", f"{x} {out}m", out)]
        elif op == "concat":
            new = [node("Concat", f"{x} {rng.choice(names)}", f"{out}c", axis=1),
                   node("Conv", f"{out}c {weight(4, 8, *ones)}", out)]
        elif op == "pool":
            new = [node(str(rng.choice(["MaxPool", "AveragePool"])), x, out, **window)]
        elif op == "mean":
            axes = [int(rng.integers(1, spatial + 2))]
            new = [node("ReduceMean", x, f"{out}m", axes=axes), node("Sub", f"{x} {out}m", out)]
        elif op == "flat mean":
            axis = int(rng.integers(1, spatial + 2))
            constants[f"a{axis}"] = np.array([axis])
            new = [node("ReduceMean", x, f"{out}m", axes=[axis], keepdims=0),
                   node("Unsqueeze", f"{out}m a{axis}", f"{out}u"), node("Sub", f"{x} {out}u", out)]
        elif op == "trilu":
            new = [node("Trilu", x, out)]
        elif op == "softmax":
            new = [node("Softmax", x, out, axis=int(rng.integers(1, spatial + 2)))]
        elif op == "resize":
            constants["s"] = np.array([1, 1] + [2] * spatial, np.float32)
            new = [node("Resize", f"{x} - s", f"{out}r", mode="linear"),
                   node("MaxPool", f"{out}r", out, kernel_shape=[2] * spatial,
                        strides=[2] * spatial)]
        elif op == "norm":
            new = [node("InstanceNormalization", f"{x} {weight(4)} {weight(4)}", out)]
        elif op == "pad":
            constants["p"] = np.array([0, 0, *ones] * 2)
            new = [node("Pad", f"{x} p", f"{out}p", mode="edge"),
                   node("Conv", f"{out}p {weight(4, 4, *[3] * spatial)}", out)]
        else:
            constants |= {"b": np.array([0]), "e": np.array([2]), "a": np.array([1])}
            new = [node("Slice", f"{x} b e a", f"{out}s"),
                   node("Concat", f"{out}s {out}s", out, axis=1)]
        nodes += new
        names.append(out)
    return nodes, constants, names


@pytest.mark.parametrize("seed", range(30))
def test_random_networks_keep_their_results(seed):
    rng = np.random.default_rng(seed)
    spatial = 1 + seed % 3
    nodes, constants, names = random_network(rng, spatial)
    shape = [2, 4] + [5] * spatial
    model = model_of(nodes, {"x": shape}, [names[-1], names[len(names) // 2]], constants,
                     dtype=np.float64)
    inputs = {"x": rng.normal(size=shape)}
    check(model, inputs, ["layout"])
    check(model, inputs, ["regions", "epilogues", "layout"])


W = {"w": np.random.default_rng(0).normal(size=(8, 8, 3, 3)) / 8,
     "v": np.random.default_rng(1).normal(size=(8, 8, 3, 3)) / 8}
PADS = {"pads": [1, 1, 1, 1]}


def image(*shape):
    return {"x": np.random.default_rng(2).normal(size=shape)}


def test_a_lone_convolution_stays_as_it_is():
    model = model_of([node("Conv", "x w", "y")], {"x": ["n", 8, 16, 16]}, ["y"], W,
                     dtype=np.float64)
    graph = check(model, image(1, 8, 16, 16), ["layout"])
    assert counts(graph) == {"Conv": 1} and not graph.nodes[0].prim.channels_last


def test_two_convolutions_share_their_transposes():
    nodes = [node("Conv", "x w", "a", **PADS), node("Relu", "a", "b"), node("Conv", "b v", "y")]
    model = model_of(nodes, {"x": ["n", 8, 16, 16]}, ["y"], W, dtype=np.float64)
    graph = check(model, image(2, 8, 16, 16), ["layout"])
    assert counts(graph) == {"Move": 2, "Conv": 2, "Region": 1}
    assert graph.inputs[0].shape[1] == 8 and graph.outputs[0].shape[1] == 8


def test_a_converted_model_loses_its_transposes():
    nodes = [node("Transpose", "x", "a", perm=[0, 3, 1, 2]), node("Conv", "a w", "b", **PADS),
             node("Conv", "b v", "c"), node("Transpose", "c", "y", perm=[0, 2, 3, 1])]
    model = model_of(nodes, {"x": ["n", 16, 16, 8]}, ["y"], W, dtype=np.float64)
    graph = check(model, image(2, 16, 16, 8), ["layout"])
    assert counts(graph) == {"Conv": 2}


def test_a_sequence_of_patches_needs_no_transpose():
    shape = {"s": np.array([0, 8, -1])}
    nodes = [node("Conv", "x w", "a", **PADS), node("Conv", "a v", "b", **PADS),
             node("Reshape", "b s", "r"), node("Transpose", "r", "y", perm=[0, 2, 1])]
    model = model_of(nodes, {"x": [2, 8, 4, 4]}, ["y"], {**W, **shape}, dtype=np.float64)
    graph = check(model, image(2, 8, 4, 4), ["layout"])
    assert counts(graph) == {"Move": 1, "Conv": 2, "Alias": 1}


def test_indices_of_maxima_stay_those_of_the_model():
    nodes = [node("Conv", "x w", "a", **PADS),
             node("MaxPool", "a", "p i", kernel_shape=[2, 2]), node("Conv", "p v", "y", **PADS)]
    model = model_of(nodes, {"x": [2, 8, 6, 6]}, ["y", "i"], W, dtype=np.float64)
    graph = check(model, image(2, 8, 6, 6), ["layout"])
    assert all(n.prim.channels_last for n in graph.nodes if isinstance(n.prim, Conv))
