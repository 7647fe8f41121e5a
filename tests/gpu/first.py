"""Seconds from rlx.load to the first result, each in a fresh process that has imported rlx.

    python -m tests.gpu.first MODEL.onnx...

Beside each model lie its inputs, i0 to iN of MODEL.npz (as peers.py writes them). The driver's own
cache is off; rlx's is empty for the first process of a model, then warm for the others.
"""

import os
import statistics
import subprocess
import sys
import tempfile

RUNS = 7
FIRST = """
import sys, time
import numpy as np, rlx
path = sys.argv[1]
with np.load(path.removesuffix(".onnx") + ".npz") as kept:
    feeds = [kept[f"i{k}"] for k in range(len(kept.files)) if f"i{k}" in kept.files]
begin = time.perf_counter()
session = rlx.load(path, device="cuda")
loaded = time.perf_counter()
session.run(feeds)
print(time.perf_counter() - begin, loaded - begin)
"""


def first(path: str, cache: str) -> tuple[float, float]:
    """Seconds to the first result, and those of rlx.load among them."""
    env = os.environ | {"CUDA_CACHE_DISABLE": "1", "RLX_CUDA_PTX_CACHE": cache}
    done = subprocess.run([sys.executable, "-c", FIRST, path], env=env, text=True, check=True,
                          stdout=subprocess.PIPE)
    whole, loading = map(float, done.stdout.split())
    return whole, loading


def main() -> None:
    for path in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as cache:
            cold = first(path, cache)[0]
            warm = [first(path, cache) for _ in range(RUNS)]
        whole = [w for w, _ in warm]
        print(f"{os.path.basename(path)}: cold {cold:.2f} s; warm {min(whole):.3f} to "
              f"{max(whole):.3f}, median {statistics.median(whole):.3f} s, of them load "
              f"{statistics.median([loading for _, loading in warm]):.3f}", flush=True)


if __name__ == "__main__":
    main()
