#!/usr/bin/env bash
# Builds the C++ tests with the address and undefined-behaviour sanitizers and runs them.
# Usage: tools/sanitize.sh [BUILD_DIR]; the compiled files are kept there for the next run.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/sanitize}
if [ ! -x "$build/venv/bin/ninja" ]; then
  python3 -m venv "$build/venv"
  "$build/venv/bin/pip" install -q cmake ninja \
    onednn-cpu-gomp==2023.2.0 onednn-devel-cpu-gomp==2023.2.0
fi
PATH="$PWD/$build/venv/bin:$PATH"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DRLX_SANITIZE=address;undefined" \
  -DPython_EXECUTABLE="$PWD/$build/venv/bin/python"
cmake --build "$build"
# Half of the tests on each of two cores.
export UBSAN_OPTIONS=print_stacktrace=1
"$build/rlx_cpp_tests" "" 1 2 &
"$build/rlx_cpp_tests" "" 0 2
wait $!
