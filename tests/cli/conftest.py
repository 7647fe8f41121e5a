"""Fixtures of the command line's tests: `rlx` as its own process, and models as files."""

import json
from pathlib import Path
import subprocess
import sys

import numpy as np
import onnx
import pytest

import models
from tests.api.toys import F, model, node, value

DIGITS = Path(models.__file__).parent / "digits"


@pytest.fixture(scope="session")
def rlx():
    """rlx(*arguments, code=0): runs the command, checks its exit code, gives what it printed."""

    def run(*arguments, code: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
        import os
        done = subprocess.run([sys.executable, "-m", "rlx", *map(str, arguments)], text=True,
                              capture_output=True, timeout=300, env=os.environ | env)
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


@pytest.fixture(scope="session")
def rlx_json(rlx):
    """The same with --json: what it printed, parsed."""

    def run(*arguments, **rest):
        return json.loads(rlx(*arguments, "--json", **rest).stdout)

    return run


@pytest.fixture(scope="session")
def digits():
    return DIGITS / "digits.onnx"


@pytest.fixture(scope="session")
def three():
    return DIGITS / "three.npy"


@pytest.fixture(scope="session")
def mlp(tmp_path_factory):
    """x[n, 8] -> MatMul, Add, Relu, MatMul, Softmax."""
    random = np.random.default_rng(0)
    weights = {"w": random.standard_normal((8, 16), np.float32),
               "b": random.standard_normal(16, np.float32),
               "v": random.standard_normal((16, 4), np.float32)}
    made = model([node("MatMul", "x w", "h"), node("Add", "h b", "i"), node("Relu", "i", "j"),
                  node("MatMul", "j v", "k"), node("Softmax", "k", "y")],
                 [value("x", F, ["n", 8])], [value("y", F, ["n", 4])], weights)
    path = tmp_path_factory.mktemp("cli") / "mlp.onnx"
    onnx.save(made, path)
    return path


@pytest.fixture(scope="session")
def tagger(tmp_path_factory):
    """A builder's network with a Loop, its narrow copy, and inputs for it."""
    builder = models.BUILDERS["tagger"]
    folder = tmp_path_factory.mktemp("tagger")
    onnx.save(builder.build(0, np.dtype(np.float32), **builder.NARROW), folder / "tagger.onnx")
    np.savez(folder / "inputs.npz", **builder.inputs(2, 12, **builder.NARROW))
    return folder / "tagger.onnx", folder / "inputs.npz"
