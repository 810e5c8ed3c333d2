#!/bin/bash
# Everything that needs GPUs, on a machine with at least two: the tests, and with nccl-tests the comparisons.
# Knobs: PYTHON (an environment with busbw and pytest), WHEELS (a folder of wheels: without busbw in PYTHON it is built
# from here into OUT/site, offline), NCCL_LIBRARY (libnccl.so.2; default: the environment's wheel), NCCL_LIBRARIES
# (others, separated by colons), NCCL_TESTS (folder of all_reduce_perf, built with MPI=1), OUT (results), LIMIT_S
# (seconds for the tests; what has been done by then is in OUT), STUDY=1 (the whole pinning study, minutes more).
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3} OUT=${OUT:-build/gpu} LIMIT_S=${LIMIT_S:-500}
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)

# On machines that share an NVSwitch, NVLink multicast of one program can disturb all: it stays off in every process.
export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1

nvidia-smi --query-gpu=name,driver_version,pci.bus_id --format=csv | tee "$OUT/machine.txt"

if [ -n "${WHEELS:-}" ] && ! "$PYTHON" -c 'import busbw._core' 2>/dev/null; then
    offline=(-m pip install --quiet --no-index --find-links "$WHEELS" --target "$OUT/site" --upgrade)
    "$PYTHON" "${offline[@]}" "$WHEELS"/*.whl
    export PYTHONPATH="$OUT/site${PYTHONPATH:+:$PYTHONPATH}" PATH="$OUT/site/bin:$PATH"
    "$PYTHON" "${offline[@]}" --no-build-isolation --no-deps .
fi
"$PYTHON" -c 'import busbw, pytest; print("busbw", busbw.__file__, "pytest", pytest.__version__)' | tee -a "$OUT/machine.txt"

# A hang must not lose what has been found out: the results are written as they come, and the rest still runs.
status=0
timeout --signal=INT --kill-after=30 "$LIMIT_S" "$PYTHON" -m pytest tests/gpu -m gpu -v -o minversion=7 \
    -p no:cacheprovider --durations=0 --junit-xml="$OUT/tests.xml" 2>&1 | tee "$OUT/tests.txt" || status=$?

if [ -n "${STUDY:-}" ]; then
    "$PYTHON" -c 'from busbw.cli import main; main()' compare all_reduce all_gather reduce_scatter broadcast alltoall \
        --backend nccl --ranks 2 -b 4K -e 256M -f 256 -R 1 --no-multicast --time-limit 4 --min-samples 5 --blocks 12 \
        --seed 1 --out "$OUT/pinning" --set '--bind-to default' --set '--bind-to masks --cpus 0 --cpus 0' |
        tee "$OUT/pinning.txt" || true
fi
if [ -n "${NCCL_TESTS:-}" ] && [ -n "${NCCL_LIBRARY:-}" ]; then
    "$PYTHON" benchmarks/nccl/side_by_side.py --nccl-tests "$NCCL_TESTS" --nccl "$NCCL_LIBRARY" \
        --json "$OUT/side_by_side.json" | tee "$OUT/side_by_side.txt"
    "$PYTHON" benchmarks/nccl/time_to_interval.py --nccl-tests "$NCCL_TESTS" --nccl "$NCCL_LIBRARY" |
        tee "$OUT/time_to_interval.txt"
fi
exit "$status"
