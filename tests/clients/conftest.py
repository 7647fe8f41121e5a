"""An environment of its own for other people's programs, made with pip and removed afterwards."""

import json
import os
from pathlib import Path
import shutil
import subprocess
import sys

import pytest

import rlx

PROGRAMS = Path(__file__).parent / "programs"
# The torch that silero-vad needs is named, so that its newest release need not be fetched.
PACKAGES = ["rapidocr-onnxruntime==1.4.4", "silero-vad==6.2.3", "torch==2.13.0", "magika==1.0.3",
            "jax"]
NEEDED_BY_RLX = ["numpy", "onnx", "ml_dtypes", "rich"]


@pytest.fixture(scope="session")
def environment(tmp_path_factory):
    """The interpreter of a new environment, with PYTHONPATH leading to this rlx alone."""
    folder = tmp_path_factory.mktemp("clients")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = folder / "venv/bin/python"
    subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES, *NEEDED_BY_RLX], check=True)
    (folder / "path").mkdir()
    # A link, since beside an installed rlx lie packages of this environment.
    (folder / "path/rlx").symlink_to(Path(rlx.__file__).parent)
    yield python, os.environ | {"PYTHONPATH": str(folder / "path")}
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def started(environment):
    """started(script or "-m", ...): the line of JSON that a program of the environment prints."""
    python, variables = environment

    def run(*arguments):
        done = subprocess.run([python, *arguments], env=variables, text=True, capture_output=True,
                              timeout=300)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.fixture(scope="session")
def both(started):
    """both("ocr.py", ...): what a program answers with onnxruntime, and with rlx in its place."""

    def run(program, *arguments):
        theirs = started(PROGRAMS / program, *arguments)
        ours = started("-m", "rlx.ort", PROGRAMS / program, *arguments)
        assert any(name.endswith(".so") or ".so." in name for name in theirs["mapped"])
        assert ours["mapped"] == []
        return theirs["answers"], ours["answers"]

    return run
