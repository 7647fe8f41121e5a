"""What is timed: small graphs and the builders' networks, as calls of rlx and of onnxruntime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import time

import numpy as np
import onnx
import onnxruntime

import models
import rlx
from rlx.cli.peers import PAUSE
from tests.api.toys import F, model, node, value
from tests.tolerance import assert_network_output

THREADS = 2
# Inputs of the builders' networks: batch and size or length.
SIZES = {"resnet50": (1, 224), "mobilenet_v2": (1, 224), "bert-base": (1, 128), "gpt2": (1, 128),
         "vit-b16": (1, 224), "unet": (1, 32), "llama": (1, 1), "yolo": (1, 320),
         "tagger": (4, 32)}


@dataclass(frozen=True)
class Pair:
    """The same run by both engines, each on its own loaded model."""

    session: rlx.Session
    rlx: Callable[[], dict[str, np.ndarray]]
    onnxruntime: Callable[[], list[np.ndarray]]

    def check(self) -> None:
        """Both give the same outputs."""
        found = self.rlx()
        for (name, mine), theirs in zip(found.items(), self.onnxruntime(), strict=True):
            assert_network_output(mine, theirs, "float32", name)

    def ratio(self, rounds: int, calls: int) -> float:
        """The best time of rlx over the best of onnxruntime, measured in turns that the threads
        of the other do not reach into."""
        best = [np.inf, np.inf]
        for _ in range(rounds):
            for k, call in enumerate((self.rlx, self.onnxruntime)):
                time.sleep(PAUSE)
                for _ in range(calls):  # what a pause costs a core differs between machines
                    call()
                begin = time.perf_counter()
                for _ in range(calls):
                    call()
                best[k] = min(best[k], time.perf_counter() - begin)
        print(f"rlx {best[0] / calls * 1e6:.2f} us, onnxruntime {best[1] / calls * 1e6:.2f} us")
        return best[0] / best[1]


def pair(made: onnx.ModelProto, given: dict[str, np.ndarray], threads: int = THREADS) -> Pair:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    other = onnxruntime.InferenceSession(made.SerializeToString(), options,
                                         providers=["CPUExecutionProvider"])
    session = rlx.load(made, threads=threads)
    return Pair(session, lambda: session.run(given), lambda: other.run(None, given))


def network(name: str) -> Pair:
    module = models.BUILDERS[name]
    return pair(module.build(), module.inputs(*SIZES[name]))


def add() -> Pair:
    """One Add of four elements: what a call costs."""
    made = model([node("Add", "a b", "y")], [value("a", F, [4]), value("b", F, [4])], [value("y")])
    four = np.ones(4, np.float32)
    return pair(made, {"a": four, "b": four}, threads=1)


def chain(count: int) -> Pair:
    """300 elementwise operators on `count` elements."""
    nodes = [node(("Add", "Mul", "Sub")[k % 3], f"v{k} c", f"v{k + 1}") for k in range(299)]
    nodes.append(node("Tanh", "v299", "y"))
    made = model(nodes, [value("v0", F, ["n"])], [value("y")], {"c": np.float32(1.001)})
    return pair(made, {"v0": np.linspace(-1, 1, count, dtype=np.float32)}, threads=1)
