"""A repeated run takes memory for the arrays that it returns and for nothing else."""

import os
import shutil
import subprocess
import sys

import pytest

CODE = """
import ctypes, models, rlx
module = models.BUILDERS[{name!r}]
session, feeds = rlx.load(module.build()), module.inputs()
count = ctypes.CDLL(None)
out = session.run(feeds)
def counted(out):
    for _ in range(3):
        session.run(feeds, out)
    count.count_malloc_start()
    for _ in range(3):
        session.run(feeds, out)
    return count.count_malloc_stop()
print(counted(out), counted(None), 3 * len(out))
"""


@pytest.fixture(scope="module")
def malloc_counter(tmp_path_factory, source):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    library = tmp_path_factory.mktemp("count") / "count_malloc.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library,
                    source / "tests/exec/count_malloc.c"], check=True)
    return str(library)


@pytest.mark.parametrize("name", ["resnet50", "bert-base", "gpt2"])
def test_a_repeated_run_allocates_its_results_only(name, malloc_counter, source):
    """libdnnl and libgomp are counted too: every malloc of the process is."""
    env = os.environ | {"LD_PRELOAD": malloc_counter}
    env["PYTHONPATH"] = os.pathsep.join([str(source), *sys.path])
    done = subprocess.run([sys.executable, "-c", CODE.format(name=name)], env=env, text=True,
                          capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    with_out, without, returned = map(int, done.stdout.split())
    assert with_out == 0
    assert without <= returned
