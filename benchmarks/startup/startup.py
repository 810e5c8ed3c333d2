"""What busbw adds to the start of a job: `busbw run` beside the same mpirun with the least program over mpi4py.

    python benchmarks/startup/startup.py [--ranks 4 64] [--rounds 7] [--mpirun PROGRAM]

Bare: mpirun starts Python, which imports mpi4py, passes one barrier and ends. busbw: the same number of ranks, until
all of them are ready to measure and say so, and from their last sample to the end of the command; what is measured
between is busbw's purpose and does not count. Rounds run both in turn; printed are medians, their difference and
their ratio, of the time and, where more ranks than cores take turns, of what the processes used of the processors
together, which other work on the machine changes less. The aim is that busbw adds less than 10 % or less than 0.5 s.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BARE = "from mpi4py import rc; rc.thread_level = 'single'; from mpi4py import MPI; MPI.COMM_WORLD.Barrier()"
READY = b'"type":"preparing"'
LAST = b'"type":"ending"'
POLL_S = 0.002


@dataclass(frozen=True)
class Cost:
    """What a start took: its time, and the seconds of all processors together."""

    wall_s: float
    cpu_s: float

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.wall_s + other.wall_s, self.cpu_s + other.cpu_s)

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(self.wall_s - other.wall_s, self.cpu_s - other.cpu_s)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--ranks", type=int, nargs="+", default=[4, 64])
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--mpirun", default=shutil.which("mpirun", path=f"{Path(sys.executable).parent}:/usr/bin"))
    chosen = arguments.parse_args()
    print(f"{os.cpu_count()} cores; {chosen.mpirun}; median of {chosen.rounds} rounds; seconds")
    print(f"{'ranks':>6}{'':>6}{'bare':>8}{'busbw':>8}{'ready':>8}{'end':>8}{'more':>8}{'ratio':>8}")
    for ranks in chosen.ranks:
        bare, ready, end = [], [], []
        for _round in range(chosen.rounds):
            bare.append(bare_cost(chosen.mpirun, ranks))
            for samples, found in zip((ready, end), busbw_costs(chosen.mpirun, ranks), strict=True):
                samples.append(found)
        for what in ("wall_s", "cpu_s"):
            show(ranks, what, bare, ready, end)


def show(ranks: int, what: str, bare: list[Cost], ready: list[Cost], end: list[Cost]) -> None:
    """Print the medians of one of the two costs."""
    usual, until, after = (statistics.median(getattr(cost, what) for cost in costs) for costs in (bare, ready, end))
    own = statistics.median(getattr(first + last, what) for first, last in zip(ready, end, strict=True))
    name = what.removesuffix("_s")
    print(
        f"{ranks:6}{name:>6}{usual:8.2f}{own:8.2f}{until:8.2f}{after:8.2f}{own - usual:8.2f}{own / usual:8.2f}",
        flush=True,
    )


def bare_cost(mpirun: str, ranks: int) -> Cost:
    """Return what the least program takes."""
    began = spent()
    # More ranks than cores: both give their core away while they wait.
    subprocess.run(
        [
            mpirun, *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "-n", str(ranks), *placed(ranks),
            sys.executable, "-P", "-c", BARE,
        ],
        check=True,
    )  # fmt: skip
    return spent() - began


def placed(ranks: int) -> list[str]:
    """Return the options with which busbw places as many ranks."""
    if ranks > len(os.sched_getaffinity(0)):
        return ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    return ["--map-by", "core", "--bind-to", "core"]


def busbw_costs(mpirun: str, ranks: int) -> tuple[Cost, Cost]:
    """Return what it takes until all ranks are ready, and from the last sample to the end."""
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder, "run", "raw", "launcher.0.stdout")
        began = spent()
        process = subprocess.Popen(
            [
                Path(sys.executable).with_name("busbw"), "run", "all_reduce", "-n", str(ranks), "-b", "8", "-e", "8",
                "--time-limit", "2", "--mpirun", mpirun, "-o", Path(folder, "run"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until = dict(seen(events, process, began))
        process.wait()
        ended = spent() - began
    if READY not in until or LAST not in until:
        raise SystemExit(f"busbw run over {ranks} ranks came to no end")
    return until[READY], ended - until[LAST]


def spent() -> Cost:
    """Return the time, and what the processes that have ended by now used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(time.perf_counter(), used.ru_utime + used.ru_stime)


def seen(events: Path, process: "subprocess.Popen[bytes]", began: Cost) -> Iterator[tuple[bytes, Cost]]:
    """Yield each mark with what was spent when it was first found in the file."""
    missing = [READY, LAST]
    while missing:
        content = events.read_bytes() if events.exists() else b""
        while missing and missing[0] in content:
            now_s = time.perf_counter()
            yield missing.pop(0), Cost(now_s - began.wall_s, busy_s(process.pid))
        if process.poll() is not None and not (missing and missing[0] in content):
            return
        time.sleep(POLL_S)


def busy_s(process_id: int) -> float:
    """Return the processor seconds of a process and of all that it has started."""
    try:
        fields = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        tasks = Path(f"/proc/{process_id}/task").iterdir()
        children = [child for task in tasks for child in (task / "children").read_text(encoding="ascii").split()]
    except OSError:
        return 0.0
    # utime, stime, cutime and cstime are fields 14 to 17 of the line; the list begins with field 3.
    own_s = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return own_s + sum(busy_s(int(child)) for child in children)


if __name__ == "__main__":
    main()
