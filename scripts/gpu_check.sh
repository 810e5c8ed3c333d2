#!/bin/bash
# Everything that needs GPUs, on a machine with at least two: the tests, and with nccl-tests the comparisons.
# Knobs: PYTHON (an environment with busbw and pytest), NCCL_LIBRARY (libnccl.so.2; default: the environment's wheel),
# NCCL_LIBRARIES (others, separated by colons), NCCL_TESTS (folder of all_reduce_perf, built with MPI=1), OUT (results).
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3} OUT=${OUT:-build/gpu}
mkdir -p "$OUT"

# On machines that share an NVSwitch, NVLink multicast of one program can disturb all: it stays off in every process.
export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1

nvidia-smi --query-gpu=name,driver_version,pci.bus_id --format=csv | tee "$OUT/machine.txt"
"$PYTHON" -m pytest tests/gpu -m gpu -q -o minversion=7 -p no:cacheprovider 2>&1 | tee "$OUT/tests.txt"
if [ -n "${NCCL_TESTS:-}" ] && [ -n "${NCCL_LIBRARY:-}" ]; then
    "$PYTHON" benchmarks/nccl/side_by_side.py --nccl-tests "$NCCL_TESTS" --nccl "$NCCL_LIBRARY" \
        --json "$OUT/side_by_side.json" | tee "$OUT/side_by_side.txt"
    "$PYTHON" benchmarks/nccl/time_to_interval.py --nccl-tests "$NCCL_TESTS" --nccl "$NCCL_LIBRARY" |
        tee "$OUT/time_to_interval.txt"
fi
