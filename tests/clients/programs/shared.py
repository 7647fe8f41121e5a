"""What the programs share: they print their answers, and which files of onnxruntime are mapped."""

import json
from pathlib import Path


def answer(answers):
    """Prints one line of JSON: the answers, and the mapped files with onnxruntime in their name."""
    mapped = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()
              if "onnxruntime" in line.rpartition("/")[2]}
    print(json.dumps({"answers": answers, "mapped": sorted(mapped)}))
