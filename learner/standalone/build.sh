#!/bin/sh
# Builds the learner core with LibTorch alone, runs the golden check and the benchmark.
#   learner/standalone/build.sh [BUILD_FOLDER] [cpu|cuda] [cmake options, e.g. -DDATACOM_LIBTORCH=/opt/libtorch]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../../build/standalone}
device=${2:-cpu}
[ $# -gt 2 ] && shift 2 || set --
cmake -S "$here" -B "$build" "$@"
cmake --build "$build" --parallel "$(nproc)"
"$build/bin/golden_check" "$here/../../tests/golden/algorithms" "$device"
"$build/bin/datacom-bench-learner" --device "$device" --seconds 1
