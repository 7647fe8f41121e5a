"""`python -m tests.bench [CASE ...]` measures the cases anew and rewrites baseline.json."""

import sys

from tests.bench.baseline import store

store(sys.argv[1:])
