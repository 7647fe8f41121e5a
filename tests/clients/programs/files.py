"""Tells what files are with magika."""

from pathlib import Path
import sys

from magika import Magika
from shared import answer

paths = sorted(Path(sys.argv[1]).iterdir())
results = Magika().identify_paths(paths)
answer({path.name: {"label": result.output.label, "raw": result.dl.label, "score": result.score}
        for path, result in zip(paths, results)})
