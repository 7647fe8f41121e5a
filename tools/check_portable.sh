#!/usr/bin/env bash
# Proves that rlx builds and runs on our portable kernels: without oneDNN, and for another CPU.
# The second half needs Debian's g++-aarch64-linux-gnu and qemu-user, and says so if they lack.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv venv
PATH="$work/venv/bin:$PATH"
pip install -q cmake ninja
pip install -q "$source_dir" -C cmake.define.RLX_ONEDNN=OFF
env -u PYTHONPATH python -c "
import rlx, pathlib
assert rlx._core.build_info()['onednn'] is False
assert not list(pathlib.Path(rlx.__file__).parent.glob('libdnnl*'))"
echo "without oneDNN: built and imported"

cross=aarch64-linux-gnu
if ! command -v $cross-g++ qemu-aarch64 >/dev/null; then
  echo "for another CPU: not checked, needs g++-$cross and qemu-user"
  exit 0
fi
cmake -S "$source_dir" -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DRLX_SANITIZE=undefined \
  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=$cross-g++ \
  -DPython_EXECUTABLE="$work/venv/bin/python"
cmake --build build
qemu-aarch64 -L /usr/$cross build/rlx_cpp_tests
echo "for another CPU: built and passed the C++ tests"
