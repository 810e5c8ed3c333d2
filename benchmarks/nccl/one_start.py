"""One process of one start for launch_modes.py: GPUs, NCCL, launches and a small all_reduce. JSON in, JSON out.

Standard input: a line with the task, on ranks after the first a line with NCCL's unique id. Standard output: on the
first rank a line with the unique id, then on every rank a line with what was measured, in nanoseconds.
"""

import ctypes
import json
import mmap
import os
import statistics
import sys
import time
from pathlib import Path

from busbw import _core

GUARDS = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
SIZE_BYTES = 1024
CALLS = 20
_SLOT_BYTES = 8192
_SLOTS = 64
_TIMEOUT_NS = 20_000_000_000
_LEAD_NS = 30_000
_PR_SET_THP_DISABLE = 41
_MOST_CORES = 16


def main() -> None:
    """Measure what the task says."""
    task = json.loads(sys.stdin.readline())
    wrong = {name: os.environ.get(name) for name, value in GUARDS.items() if os.environ.get(name) != value}
    assert not wrong, f"multicast must be off: {wrong}"
    if task["no_thp"]:
        assert ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0
    if task["cores"]:
        os.sched_setaffinity(0, task["cores"])
    before_s = time.monotonic()
    cuda, nccl = _core.Cuda(task["cuda"]), _core.Nccl(task["nccl"])
    code = Path(task["code"]).read_bytes()
    gpus = [_core.Gpu(cuda, ordinal, code=code) for ordinal in task["gpus"]]
    gate = _gate(task)
    found = {
        "opened_s": time.monotonic() - before_s,
        "loop_ns": _loop_ns(),
        "clock_ns": _core.clock_quality(2000).cost_ns,
    }
    found["launch_at_start"] = _launches(gpus, gate)
    all_ranks = _join(task, nccl, gpus)
    found["launch_joined"] = _launches(gpus, gate)
    found |= _messages(task, nccl, gpus, all_ranks, gate)
    found["launch_after"] = _launches(gpus, gate)
    found["loop_after_ns"] = _loop_ns()
    found["core"] = _core_number()
    found["launch_by_core"] = _by_core(task, gpus) if task["sweeps_cores"] else {}
    print(json.dumps(found), flush=True)


def _gate(task: dict) -> "_core.Gate":
    if task["socket"] is None:
        return _core.no_gate()
    return _core.socket_gate([task["socket"]], is_first=task["first"] == 0, timeout_ns=_TIMEOUT_NS)


def _join(task: dict, nccl: "_core.Nccl", gpus: list) -> "_core.Communicators":
    if task["first"] == 0:
        unique_id = nccl.unique_id()
        print(unique_id.hex(), flush=True)
    else:
        unique_id = bytes.fromhex(sys.stdin.readline())
    return _core.Communicators(nccl, gpus, unique_id=unique_id, ranks=task["ranks"], first=task["first"], config=[])


def _launches(gpus: list, gate: "_core.Gate", batches: int = 20) -> list[dict[str, float]]:
    """Return one empty launch on each GPU: by the host's clock, and by the GPU's."""
    return [
        {
            "host_ns": statistics.median(one.issue_ns) / CALLS,
            "device_ns": statistics.median(one.device_ns) / CALLS,
            "host_least_ns": min(one.issue_ns) / CALLS,
        }
        for one in _core.empty_launches(gpus, gate, batches=batches, launches=CALLS)
    ]


def _messages(task: dict, nccl: "_core.Nccl", gpus: list, all_ranks: "_core.Communicators", gate: "_core.Gate") -> dict:
    """Return one all_reduce of 1 KiB in three modes, and until the host had started it."""
    beats = [mmap.mmap(-1, mmap.PAGESIZE) for _gpu in gpus]
    bench = _core.nccl_bench(gate, heartbeats=beats, step_ns=_TIMEOUT_NS)
    send, receive, scratch = (
        [_core.GpuMemory(gpu, _SLOT_BYTES * _SLOTS, nccl) for gpu in gpus] for _buffer in range(3)
    )
    shape = _core.nccl_shape(
        kind="all_reduce", dtype="float32", op="sum", ranks=task["ranks"], root=0, count=SIZE_BYTES // 4,
        in_place=False, pair=(0, 0), group=1, matrix=[],
    )  # fmt: skip
    exchange = _core.make_nccl_exchange(
        nccl, shape, _core.Equipment(gpus, send=send, receive=receive, scratch=scratch, first=task["first"]),
        all_ranks, intra=None, rail=None,
        rotation=_core.Rotation(_SLOTS, _SLOT_BYTES, _SLOT_BYTES, _SLOT_BYTES),
        shift=0,
    )  # fmt: skip
    _core.nccl_stream(exchange, bench, count=50, calls=CALLS)
    count = task["samples"]
    stream = _core.nccl_stream(exchange, bench, count=count, calls=CALLS)
    window = _core.Window(offset_ns=0, lead_ns=_LEAD_NS, yields=False)
    alone = _core.nccl_isolated(exchange, bench, count=count, window=window)
    graph = _core.NcclGraph(exchange, calls=CALLS).replay(bench, count=count)
    again = _core.nccl_stream(exchange, bench, count=count, calls=CALLS)
    return {
        "stream_ns": _median([one.duration_ns for one in stream]) / CALLS,
        "issued_ns": _median([one.issued_ns for one in stream]) / CALLS,
        "isolated_ns": _median([one.duration_ns for one in alone]),
        "isolated_issued_ns": _median([one.issued_ns for one in alone]),
        "graph_ns": _median([one.duration_ns for one in graph]) / CALLS,
        "stream_again_ns": _median([one.duration_ns for one in again]) / CALLS,
    }


def _median(of_each: list[list[int]]) -> float:
    """Return the mean over GPUs of the medians."""
    return statistics.mean(statistics.median(values) for values in of_each)


def _by_core(task: dict, gpus: list) -> dict[str, list[float]]:
    """Return an empty launch on each GPU from one core after the other."""
    allowed = sorted(os.sched_getaffinity(0))
    cores = allowed[:: max(len(allowed) // _MOST_CORES, 1)]
    turn = len(cores) // 2 if task["first"] else 0
    found = {}
    for core in [*cores[turn:], *cores[:turn]]:
        os.sched_setaffinity(0, {core})
        found[str(core)] = [one["host_ns"] for one in _launches(gpus, _core.no_gate(), batches=7)]
    os.sched_setaffinity(0, allowed)
    return found


def _core_number() -> int:
    """Return the core that this thread ran on last."""
    return int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[36])


def _loop_ns() -> int:
    """Return what a loop that touches no memory takes: another in a process whose core is slower."""
    times = []
    for _turn in range(5):
        before = time.perf_counter_ns()
        sum(range(500_000))
        times.append(time.perf_counter_ns() - before)
    return min(times)


if __name__ == "__main__":
    main()
