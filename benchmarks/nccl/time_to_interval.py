"""Seconds until every median of a sweep is known within 1 %: busbw, and nccl-tests repeated as often as that takes.

nccl-tests gives one mean for each size, placement and cycle (-N); the interval of the median of those means is taken as
busbw takes its own. It always measures out of place and in place: so does busbw here, and once more out of place alone,
which it can. Start-up is counted for both. Run: python benchmarks/nccl/time_to_interval.py --help
"""

import argparse
import sys
import tempfile
from pathlib import Path

from peers import Stage, run_busbw, run_nccl_tests

from busbw.stats.distributions import relative_half_width

HALF_WIDTH = 0.01
CONFIDENCE = 0.95
SWEEP = ["-b", "1K", "-e", "1G", "-f", "2"]


# The columns of nccl-tests' rows that hold a time: out of place, and in place.
PLACEMENTS = {"out": (5,), "both": (5, 9)}


def cycles_needed(rows: list[list[str]], cycles: int, columns: tuple[int, ...]) -> int | None:
    """Return after how many cycles every time is known within 1 %; None when `cycles` are not enough."""
    times: dict[tuple[int, int], list[float]] = {}
    for row in rows:
        for column in columns:
            times.setdefault((int(row[0]), column), []).append(float(row[column]))
    for count in range(1, cycles + 1):
        widths = [relative_half_width(sorted(each[:count]), CONFIDENCE) for each in times.values()]
        if all(width is not None and width <= HALF_WIDTH for width in widths):
            return count
    return None


def busbw_words(stage: Stage, collective: str, placement: str) -> str:
    """Return how long busbw took, and what it knows then."""
    arguments = [collective, *SWEEP, "--mode", "stream", "--config", "nvlinkCentricSched=1", "--in-place", placement]
    with tempfile.TemporaryDirectory() as folder:
        run, took_s = run_busbw(stage, [*arguments, "--time-limit", "60"], Path(folder) / "run", 200)
    points = run["measurements"]
    narrow = sum(point["ended"] == "interval" for point in points)
    least = min(point["samples"] for point in points)
    return f"{took_s:.1f} s, {narrow} of {len(points)} times within 1 %, at least {least} samples each"


def main() -> int:
    """Measure both and print the seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nccl-tests", type=Path, required=True)
    parser.add_argument("--nccl", type=Path, required=True)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--collective", default="all_reduce")
    parser.add_argument("--cycles", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    stage = Stage(nccl_tests=options.nccl_tests, nccl=options.nccl, ranks=options.ranks)
    for repeat in range(options.repeats):
        _, one_s = run_nccl_tests(stage, options.collective, SWEEP, 120)
        rows, all_s = run_nccl_tests(stage, options.collective, [*SWEEP, "-N", str(options.cycles)], 400)
        each_s = (all_s - one_s) / (options.cycles - 1)
        for placement, columns in PLACEMENTS.items():
            needed = cycles_needed(rows, options.cycles, columns)
            enough = (
                f"{one_s + (needed - 1) * each_s:.1f} s ({needed} cycles)" if needed else f"more than {all_s:.1f} s"
            )
            print(
                f"repeat {repeat}, {placement} of place: nccl-tests {enough}, one cycle {one_s:.1f} s; "
                f"busbw {busbw_words(stage, options.collective, placement)}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
