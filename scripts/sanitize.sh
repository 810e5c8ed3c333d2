#!/bin/sh
# Build and run the core's checks: plain, under address and undefined-behaviour sanitizers, under the thread sanitizer.
# MPI and the stand-ins for CUDA and NCCL are not instrumented: MPI's leaks are not ours, and the threads of both look
# like races. Sanitized code is optimised little: it takes half as long to compile and hardly longer to run. Called by
# `make sanitize`. Arguments: which of plain, address and thread; all without one.
set -eu
cd "$(dirname "$0")/.."
bin=$PWD/.venv/bin
# Open MPI 5 asks libfabric for devices at every start, which sleeps a second and finds none.
export OMPI_MCA_btl=^ofi
export UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1
over_mpi="-DBUSBW_MPIRUN=$bin/mpirun" libmpi="-DBUSBW_LIBMPI=$PWD/.venv/lib/libmpi.so.40"
over_stand_in="-DBUSBW_STAND_IN=$PWD/build/standin"

# NAME SANITIZERS [WHAT TO RUN OVER]...
build() {
    name=$1 sanitizers=$2
    shift 2
    echo "== $name"
    "$bin/cmake" -S . -B "build/checks-$name" -G Ninja -DCMAKE_MAKE_PROGRAM="$bin/ninja" \
        -DCMAKE_BUILD_TYPE="$([ "$name" = plain ] && echo Release || echo RelWithDebInfo)" \
        -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -DNDEBUG" -DCMAKE_UNITY_BUILD=ON \
        -DBUSBW_CHECKS=ON -DBUSBW_SANITIZE="$sanitizers" "$@" >"build/checks-$name.log" 2>&1 ||
        { cat "build/checks-$name.log"; exit 1; }
    "$bin/cmake" --build "build/checks-$name"
}

# NAME [WHICH]...; those over MPI run alone.
run() {
    name=$1
    shift
    "$bin/ctest" --test-dir "build/checks-$name" --output-on-failure --timeout 300 --parallel "$(nproc)" "$@"
}

mkdir -p build
"$bin/python" tests/standin/build.py build/standin
[ $# -gt 0 ] || set -- plain address thread
for kind; do
    case $kind in
    plain)
        build plain '' "$over_mpi" "$libmpi" "$over_stand_in"
        run plain
        ;;
    address)
        build address,undefined address,undefined "$over_mpi" "$libmpi" "$over_stand_in"
        ASAN_OPTIONS=detect_leaks=1 run address,undefined --label-exclude mpi
        ASAN_OPTIONS=detect_leaks=0 run address,undefined --label-regex mpi
        ;;
    thread)
        build thread thread
        run thread
        ;;
    *)
        echo "error: $kind is none of plain, address, thread" >&2
        exit 2
        ;;
    esac
done
