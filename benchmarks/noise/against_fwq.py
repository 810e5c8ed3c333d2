"""busbw's test of noise beside a bare C program that does the same (fwq.c): the same host, in turn, ratios of medians.

    python benchmarks/noise/against_fwq.py [--seconds 3] [--rounds 7]

Printed for each round: median time of a repeat and share of the time lost, in the median over the CPUs, by both, and
the ratio. Both see the noise of their own seconds: single rounds differ on a host with other work, medians hardly do.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from busbw.machine.read.noise import summary
from busbw.rank.noise import noise


def bare(program: Path, seconds: float, cpus: list[int]) -> tuple[float, float]:
    """Return (median of a repeat in seconds, share lost) as the C program says."""
    told = subprocess.run([program, str(seconds), *map(str, cpus)], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in told.splitlines()]
    return statistics.median(float(row[3]) for row in rows) * 1e-9, statistics.median(float(row[2]) for row in rows)


def ours(seconds: float) -> tuple[float, float]:
    """Return the same as busbw says."""
    found = summary(noise(seconds))
    return found.median_s, found.lost


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seconds", type=float, default=3.0)
    arguments.add_argument("--rounds", type=int, default=7)
    chosen = arguments.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "fwq")
        source = Path(__file__).with_name("fwq.c")
        subprocess.run(["cc", "-O3", "-pthread", "-o", program, source], check=True)
        pairs = [(ours(chosen.seconds), bare(program, chosen.seconds, cpus)) for _round in range(chosen.rounds)]
    print(f"{'busbw':>12}{'bare':>12}{'ratio':>8}  median of a repeat (us); then time lost (%)")
    for place, unit in ((0, 1e6), (1, 100.0)):
        for mine, its in pairs:
            print(f"{mine[place] * unit:12.2f}{its[place] * unit:12.2f}{mine[place] / its[place]:8.3f}")
        ratio = statistics.median(mine[place] / its[place] for mine, its in pairs)
        print(f"{'median ratio':>24}{ratio:8.3f}")


if __name__ == "__main__":
    main()
