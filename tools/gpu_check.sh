#!/bin/bash
# On a GPU machine that reaches no registry: build, test, measure; a short table last.
#
#   tools/gpu_check.sh [build] [doctor] [tests] [suite] [memcheck] [racecheck] [peers]
#
# All but the two checks by compute-sanitizer when none is named.
# CARRY: folder with pybind11's wheel (and others) and peers.py; .whl or _carry unless set.
# MODELS: rows of peers.py (ONLY's syntax). OUT: where logs and figures go.
set -u
cd "$(dirname "$0")/.."
carry=${CARRY:-}
[ -n "$carry" ] || for folder in _carry .whl; do [ -d "$folder" ] && carry=$folder; done
out=${OUT:-$(mktemp -d)}
site=/tmp/rlx_site
models=${MODELS:-bert_b1_s128,resnet50_b1,gpt2_b1_s512,unet_b1}
steps=${*:-build doctor tests suite peers}
python=${PYTHON:-python3}
export PYTHONUNBUFFERED=1 CUDA_CACHE_DISABLE=1
export RLX_CUDA_PTX_CACHE=${RLX_CUDA_PTX_CACHE:-/tmp/rlx_kernels}
[ -d "$site" ] && export PYTHONPATH=$site
declare -A result

step() {  # step NAME SECONDS COMMAND...: runs it with a log, remembers how it ended
  local name=$1 limit=$2 begin=$SECONDS
  shift 2
  timeout -k 5 "$limit" "$@" >"$out/$name.log" 2>&1
  result[$name]="exit $? after $((SECONDS - begin)) s"
  echo "=== $name: ${result[$name]}"
  tail -n "${TAIL:-15}" "$out/$name.log" | cut -c1-400
}

build() {
  if ls "$carry"/*.whl >/dev/null 2>&1; then
    $python -m pip install -q --no-index --no-deps --no-compile --upgrade --target "$site" \
      "$carry"/*.whl || return
    export PYTHONPATH=$site
  fi
  local onednn=OFF pybind
  pybind=$($python -m pybind11 --cmakedir) || { echo "carry pybind11's wheel"; return 1; }
  $python cmake/find_onednn.py >/dev/null 2>&1 && onednn=ON
  cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DRLX_DEV_INPLACE=ON \
    -DRLX_TESTS=OFF -DRLX_WERROR=OFF -DRLX_ONEDNN=$onednn -Dpybind11_DIR="$pybind" \
    -DPython_EXECUTABLE="$($python -c 'import sys; print(sys.executable)')" >"$out/cmake.log" ||
    { tail -20 "$out/cmake.log"; return 1; }
  cmake --build build/gpu --target _core -j "$(nproc)" | tail -3
}
peers() {
  local script=$carry/peers.py
  [ -f "$script" ] || { echo "carry peers.py"; return 1; }
  mkdir -p /tmp/rlx_peers
  ONLY=$models $python "$script" export /tmp/rlx_peers
  ONLY=$models $python "$script" rlx /tmp/rlx_peers "$out/peers.json"
  $python -m tests.gpu.first /tmp/rlx_peers/bert_b1_s128*.onnx | tee "$out/first.txt"
}
export -f build peers
export carry out site models python

for name in $steps; do
  [ -d "$site" ] && export PYTHONPATH=$site
  export PYTHONPATH=$PWD/python:$PWD${PYTHONPATH:+:$PYTHONPATH}
  case $name in
    build) step build 240 bash -c build ;;
    doctor) TAIL=25 step doctor 60 $python -m rlx doctor ;;
    tests) TAIL=40 step tests 150 $python -m pytest tests/gpu -q -x --no-header ;;
    suite) TAIL=60 step suite 240 $python -m tests.gpu.suite --json "$out/suite.json" ;;
    memcheck | racecheck)
      # Kernels of libraries are theirs to check: cuDNN's attention shows a race to itself.
      step "$name" 400 compute-sanitizer --tool "$name" --target-processes all --error-exitcode 9 \
        --kernel-name-exclude kernel_substring=cudnn \
        --kernel-name-exclude kernel_substring=cutlass \
        $python -m pytest tests/gpu/test_kernels.py tests/gpu/test_decode.py \
        -q -x --no-header -p no:cacheprovider ;;
    peers) TAIL=40 step peers 300 bash -c peers ;;
    *) echo "no step is named $name"; exit 2 ;;
  esac
done

echo; echo "step        result"
for name in $steps; do printf '%-11s %s\n' "$name" "${result[$name]}"; done
grep -h '^official cases' "$out/suite.log" 2>/dev/null
cat "$out/first.txt" 2>/dev/null
[ -f "$out/peers.json" ] && $python - "$out/peers.json" <<'PY'
import json, sys
print(f"{'model':28} {'first s':>8} {'host ms':>8} {'device ms':>9} {'error':>9}")
for name, row in json.load(open(sys.argv[1])).items():
    number = lambda key, form: format(row[key], form) if key in row else "-"
    print(f"{name:28} {number('rlx_load_first_s', '8.2f'):>8} {number('rlx_host', '8.3f'):>8} "
          f"{number('rlx_device', '9.3f'):>9} {number('rlx_err', '9.1e'):>9} "
          f"{row.get('rlx_failed', '')[:120]}")
PY
exit 0
