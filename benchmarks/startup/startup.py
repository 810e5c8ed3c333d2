"""What busbw adds to the start of a job: `busbw run` beside the same mpirun with the least program over mpi4py.

    python benchmarks/startup/startup.py [--ranks 4 64] [--rounds 7] [--mpirun PROGRAM]

Bare: mpirun starts Python, which imports mpi4py, passes one barrier and ends. busbw: the same number of ranks, until
all of them are ready to measure and say so, and from their last sample to the end of the command; what is measured
between is busbw's purpose and does not count. Rounds run both in turn; printed are medians, their difference and
their ratio. The aim is that busbw adds less than 10 % or less than 0.5 s.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

BARE = "from mpi4py import rc; rc.thread_level = 'single'; from mpi4py import MPI; MPI.COMM_WORLD.Barrier()"
READY = b'"type":"preparing"'
LAST = b'"type":"ending"'
POLL_S = 0.002


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--ranks", type=int, nargs="+", default=[4, 64])
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--mpirun", default=shutil.which("mpirun", path=f"{Path(sys.executable).parent}:/usr/bin"))
    chosen = arguments.parse_args()
    print(f"{os.cpu_count()} cores; {chosen.mpirun}; median of {chosen.rounds} rounds; seconds")
    print(f"{'ranks':>6}{'bare':>8}{'busbw':>8}{'ready':>8}{'end':>8}{'more':>8}{'ratio':>8}")
    for ranks in chosen.ranks:
        bare, ready, end = [], [], []
        for _round in range(chosen.rounds):
            bare.append(bare_s(chosen.mpirun, ranks))
            for samples, found in zip((ready, end), busbw_s(chosen.mpirun, ranks), strict=True):
                samples.append(found)
        usual, own = statistics.median(bare), statistics.median(map(sum, zip(ready, end, strict=True)))
        print(
            f"{ranks:6}{usual:8.2f}{own:8.2f}{statistics.median(ready):8.2f}{statistics.median(end):8.2f}"
            f"{own - usual:8.2f}{own / usual:8.2f}"
        )


def bare_s(mpirun: str, ranks: int) -> float:
    """Time the least program."""
    began_s = time.perf_counter()
    # More ranks than cores: both give their core away while they wait.
    subprocess.run(
        [
            mpirun, *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "-n", str(ranks), *placed(ranks),
            sys.executable, "-P", "-c", BARE,
        ],
        check=True,
    )  # fmt: skip
    return time.perf_counter() - began_s


def placed(ranks: int) -> list[str]:
    """Return the options with which busbw places as many ranks."""
    if ranks > len(os.sched_getaffinity(0)):
        return ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    return ["--map-by", "core", "--bind-to", "core"]


def busbw_s(mpirun: str, ranks: int) -> tuple[float, float]:
    """Return the seconds until all ranks are ready, and from the last sample to the end."""
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder, "run", "raw", "launcher.0.stdout")
        began_s = time.perf_counter()
        process = subprocess.Popen(
            [
                Path(sys.executable).with_name("busbw"), "run", "all_reduce", "-n", str(ranks), "-b", "8", "-e", "8",
                "--time-limit", "2", "--mpirun", mpirun, "-o", Path(folder, "run"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        seen_s = dict(seen(events, process))
        process.wait()
        ended_s = time.perf_counter()
    if READY not in seen_s or LAST not in seen_s:
        raise SystemExit(f"busbw run over {ranks} ranks came to no end")
    return seen_s[READY] - began_s, ended_s - seen_s[LAST]


def seen(events: Path, process: "subprocess.Popen[bytes]") -> Iterator[tuple[bytes, float]]:
    """Yield each mark when it is first found in the file."""
    missing = [READY, LAST]
    while missing:
        content = events.read_bytes() if events.exists() else b""
        while missing and missing[0] in content:
            yield missing.pop(0), time.perf_counter()
        if process.poll() is not None and not (missing and missing[0] in content):
            return
        time.sleep(POLL_S)


if __name__ == "__main__":
    main()
