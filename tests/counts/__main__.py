"""`python -m tests.counts [model ...]` measures the models anew and rewrites counts.json."""

import sys

from tests.counts.measure import main

for line in main(sys.argv[1:]):
    print(line, flush=True)
