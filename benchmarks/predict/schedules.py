"""How long schedules take to be timed, step by step and event by event, and how much memory that needs.

    python benchmarks/predict/schedules.py

H100 nodes of 8 GPUs with 8 x 400 Gb/s at line rate, all_reduce of 16 GiB; each figure has the description of the
schedule in it. The best of three of CPU time, of all threads together, and elapsed, which other work on the
machine lengthens; exit code 1 where a CPU time is over its bound.
"""

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from busbw.predict.schedules.collnet import collnet_chain, collnet_direct
from busbw.predict.schedules.description import Schedule
from busbw.predict.schedules.rings import ring
from busbw.predict.schedules.timing import LaneRates, Timed, time_events, time_steps
from busbw.predict.schedules.trees import nvls_tree

RATES = LaneRates(nic_Bps=50e9, nvlink_Bps=450e9, nic_latency_s=14e-6, nvlink_latency_s=3.4e-6)
SIZE = 2**34
ROUNDS = 3
MOST_BYTES = 10**9


@dataclass(frozen=True)
class Case:
    """What is timed, and its bound in seconds."""

    words: str
    make: Callable[[], Schedule]
    timed: Callable[[Schedule], Timed]
    most_s: float


def of_ring(nodes: int) -> Schedule:
    """Return the ring of so many nodes."""
    return ring("all_reduce", nodes=nodes, gpus=8, ports=8, size_bytes=SIZE)


def of_tree(nodes: int) -> Schedule:
    """Return NVLSTree of so many nodes, in chunks of 64 KiB on two channels a GPU."""
    return nvls_tree(nodes=nodes, gpus=8, size_bytes=SIZE, chunks=8192)


def of_direct(nodes: int) -> Schedule:
    """Return CollNet direct of so many nodes, in chunks of 512 KiB to each head on 16 channels."""
    return collnet_direct(nodes=nodes, gpus=8, ports=8, size_bytes=SIZE, chunks=256)


def of_chain(nodes: int) -> Schedule:
    """Return CollNet chain of so many nodes, in chunks of 256 KiB on two channels a NIC."""
    return collnet_chain(nodes=nodes, gpus=8, ports=8, size_bytes=SIZE, chunks=4096)


def steps(schedule: Schedule) -> Timed:
    """Time step by step, alike ranks once."""
    return time_steps(schedule, RATES)


def unfolded(schedule: Schedule) -> Timed:
    """Time step by step, each rank for itself."""
    return time_steps(schedule, RATES, folds=False)


def events(schedule: Schedule) -> Timed:
    """Time event by event."""
    return time_events(schedule, RATES)


CASES = (
    Case("ring, 1,024 GPUs, steps, unfolded", lambda: of_ring(128), unfolded, 0.010),
    Case("ring, 10,752 GPUs, steps, unfolded", lambda: of_ring(1344), unfolded, 0.100),
    Case("ring, 100,000 GPUs, steps", lambda: of_ring(12_500), steps, 1.0),
    Case("NVLSTree, 1,024 GPUs, steps", lambda: of_tree(128), steps, 1.0),
    Case("NVLSTree, 100,000 GPUs, steps", lambda: of_tree(12_500), steps, 1.0),
    Case("NVLSTree, 1,024 GPUs, events", lambda: of_tree(128), events, 1.0),
    Case("NVLSTree, 10,752 GPUs, events", lambda: of_tree(1344), events, 5.0),
    Case("CollNet chain, 1,024 GPUs, steps, unfolded", lambda: of_chain(128), unfolded, 1.0),
    Case("CollNet chain, 100,000 GPUs, steps", lambda: of_chain(12_500), steps, 1.0),
    Case("CollNet direct, 10,752 GPUs, events", lambda: of_direct(1344), events, 5.0),
)


def main() -> None:
    """Print a line a case; exit with 1 where one is over its bound."""
    is_over = False
    for case in CASES:
        elapsed_s, cpu_s = [], []
        for _round in range(ROUNDS):
            begin, cpu = time.perf_counter(), time.process_time()
            found = case.timed(case.make())
            elapsed_s.append(time.perf_counter() - begin)
            cpu_s.append(time.process_time() - cpu)
        least_s = min(cpu_s)
        is_over |= least_s > case.most_s
        told = f"{found.time_s * 1e3:.2f} ms told, {found.operations} of {found.whole} works"
        spent = f"{least_s * 1e3:8.1f} ms, elapsed {min(elapsed_s) * 1e3:8.1f} ms"
        print(f"{case.words:43} {spent}, bound {case.most_s * 1e3:6.0f} ms; {told}", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"{'memory at most':43} {peak / 1e6:8.0f} MB, bound {MOST_BYTES / 1e6:6.0f} MB")
    sys.exit(1 if is_over or peak > MOST_BYTES else 0)


if __name__ == "__main__":
    main()
