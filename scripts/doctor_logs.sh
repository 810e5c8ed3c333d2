#!/bin/bash
# Take NCCL's logs of jobs with known faults on this machine's GPUs, into tests/doctor/logs/: scripts/doctor_logs.sh
# Needs nccl-tests built with MPI=1 and an mpirun (Open MPI). Knobs: NCCL_TESTS (its folder; default: what is on PATH),
# MPIRUN (default: mpirun --allow-run-as-root). tests/doctor/test_gpu_logs.py says what each must be diagnosed as.
# Look at what a log holds before committing: names of hosts and addresses.
set -euo pipefail
cd "$(dirname "$0")/.."
PROGRAM=${NCCL_TESTS:+$NCCL_TESTS/}all_reduce_perf
read -ra MPIRUN <<<"${MPIRUN:-mpirun --allow-run-as-root}"
GPUS=$(nvidia-smi --list-gpus | wc -l)
RANKS=$((GPUS < 4 ? GPUS : 4))
LOGS=tests/doctor/logs
SMALL=(-b 8 -e 64M -f 8 -g 1 -n 5 -w 1)
mkdir -p "$LOGS"
# On machines that share an NVSwitch, NVLink multicast of one program can disturb all: it stays off in every process.
export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1
ALL=(-x NCCL_NVLS_ENABLE=0 -x NCCL_DEBUG=INFO)

# Some of these jobs hang.
bounded() {
    timeout --kill-after=10 60 "${MPIRUN[@]}" "$@"
}

# take NAME RANKS [SETTING...]: one job, with NCCL_DEBUG=INFO, multicast off and these settings on every rank.
take() {
    local name=$1 ranks=$2 settings=("${ALL[@]}")
    shift 2
    for setting in NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING "$@"; do settings+=(-x "$setting"); done
    bounded --tag-output -n "$ranks" "${settings[@]}" "$PROGRAM" "${SMALL[@]}" >"$LOGS/$name.log" 2>&1 || true
    echo "$name: $(wc -l <"$LOGS/$name.log") lines"
}

take one-gpu 1
if ((RANKS < 2)); then
    echo "one GPU only: the other jobs need at least two" >&2
    exit 0
fi
take healthy "$RANKS"
take p2p-off "$RANKS" NCCL_P2P_DISABLE=1
take sockets "$RANKS" NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_NET=Socket
take no-topology-file "$RANKS" NCCL_TOPO_FILE=/nonexistent/topo.xml
take no-plugin "$RANKS" NCCL_NET_PLUGIN=nonexistent

# One rank is set differently.
ALL+=(-x "NCCL_DEBUG_SUBSYS=INIT,ENV")
bounded --tag-output -n $((RANKS - 1)) "${ALL[@]}" "$PROGRAM" "${SMALL[@]}" : \
    -n 1 "${ALL[@]}" -x NCCL_BUFFSIZE=1048576 "$PROGRAM" "${SMALL[@]}" >"$LOGS/one-rank-differs.log" 2>&1 || true

# One rank is killed while the job runs.
"${MPIRUN[@]}" --tag-output -n "$RANKS" "${ALL[@]}" "$PROGRAM" -b 1G -e 1G -g 1 -n 100000 \
    >"$LOGS/one-rank-killed.log" 2>&1 &
JOB=$!
sleep 20
VICTIM=$(ps -eo pid=,args= | awk -v job="$JOB" '$1 != job && $2 ~ /all_reduce_perf$/ {print $1}' | tail -1)
if [ -n "$VICTIM" ]; then kill -9 "$VICTIM"; fi
wait "$JOB" || true
ls -l "$LOGS"
