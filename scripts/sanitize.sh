#!/bin/sh
# Build and run the core's checks: plain, under address and undefined-behaviour sanitizers, under the thread sanitizer.
# MPI itself is not instrumented: its leaks are not ours, and its threads look like races. Called by `make sanitize`.
set -eu
cd "$(dirname "$0")/.."
bin=$PWD/.venv/bin
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1

check() {
    name=$1 sanitizers=$2
    shift 2
    echo "== $name"
    "$bin/cmake" -S . -B "build/checks-$name" -G Ninja -DCMAKE_MAKE_PROGRAM="$bin/ninja" \
        -DCMAKE_BUILD_TYPE="$([ "$name" = plain ] && echo Release || echo RelWithDebInfo)" \
        -DBUSBW_CHECKS=ON -DBUSBW_SANITIZE="$sanitizers" \
        -DBUSBW_MPIRUN="$bin/mpirun" -DBUSBW_LIBMPI="$PWD/.venv/lib/libmpi.so.40" >"build/checks-$name.log" 2>&1 ||
        { cat "build/checks-$name.log"; exit 1; }
    "$bin/cmake" --build "build/checks-$name"
    "$bin/ctest" --test-dir "build/checks-$name" --output-on-failure --timeout 300 "$@"
}

mkdir -p build
check plain ''
ASAN_OPTIONS=detect_leaks=1 check address,undefined address,undefined --label-exclude mpi
ASAN_OPTIONS=detect_leaks=0 check address,undefined address,undefined --label-regex mpi
check thread thread --label-exclude mpi
