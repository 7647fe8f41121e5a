"""The installed package: version, build facts, and what importing it costs and leaves behind."""

from importlib import metadata
import json
import re
import statistics

import pytest
import rlx

IMPORT_TIME = """
import time
import numpy, onnx
start = time.process_time()
import rlx
rlx.load, rlx.__version__  # names are loaded when first used
print(time.process_time() - start)
"""
ENVIRONMENT = """
import json, os
before = dict(os.environ)
import rlx
rlx.load
print(json.dumps([before, dict(os.environ)]))
"""
CUDA_NAMES = re.compile(r"libcu|libnv|nvidia", re.IGNORECASE)


def test_version_comes_from_pyproject(source):
    text = (source / "pyproject.toml").read_text()
    declared = re.search(r'^version = "(.+)"$', text, re.MULTILINE).group(1)
    assert rlx.__version__ == declared
    assert rlx._core.build_info()["version"] == declared


def test_dir_lists_public_names_only():
    listed = {name for name in dir(rlx) if not name.startswith("__")}
    assert listed == set(rlx.__all__) and "__version__" in dir(rlx)
    assert all(hasattr(rlx, name) for name in dir(rlx))


def test_version_is_the_installed_one():
    try:
        installed = metadata.version("rlx")
    except metadata.PackageNotFoundError:
        pytest.skip("needs rlx to be installed, not on PYTHONPATH")
    assert rlx.__version__ == installed


def test_import_searches_no_cuda_library(fresh_python):
    # The dynamic loader's log shows searches in vain too, so no GPU is needed to see one.
    log = fresh_python("import rlx; rlx.load", LD_DEBUG="libs").stderr
    searched = re.findall(r"find library=(\S+)", log)
    assert any(name.startswith("libstdc++") for name in searched), "the log shows nothing"
    assert not [name for name in searched if CUDA_NAMES.search(name)]


def test_a_gpu_begins_to_open_before_anything_large_is_imported(fresh_python):
    # Its context and the imports take as long as each other, so they go side by side.
    assert fresh_python("""
import sys, numpy, rlx
from rlx import _core
LATER = ("onnx", "google", "ml_dtypes", "rlx.ir", "rlx.importer", "hashlib")
_core.begin_device = lambda device: print([m for m in sys.modules if m.startswith(LATER)])
try:
    rlx.load("missing.onnx", device="cpu")
except rlx.ModelError:
    print("onnx" in sys.modules)
""").stdout == "[]\nTrue\n"


@pytest.mark.bench
def test_import_takes_at_most_50_ms_more_than_numpy_and_onnx(fresh_python):
    # Processor time, which a busy machine does not stretch. As after pip, bytecode is there: the
    # first import writes it and is not counted.
    seconds = [float(fresh_python(IMPORT_TIME, PYTHONDONTWRITEBYTECODE="").stdout)
               for _ in range(10)][1:]
    print("import rlx after numpy and onnx, ms:", [round(1e3 * s, 1) for s in seconds])
    assert statistics.median(seconds) <= 0.050


def test_import_leaves_the_environment_alone(fresh_python):
    before, after = json.loads(fresh_python(ENVIRONMENT).stdout)
    assert before == after
