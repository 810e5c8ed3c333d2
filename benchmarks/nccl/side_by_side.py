"""busbw and nccl-tests in turn on the same GPUs: do their times agree? Prints a table, writes JSON.

Needs nccl-tests built with MPI=1 against the same NCCL. Run: python benchmarks/nccl/side_by_side.py --help
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from peers import Stage, run_busbw, run_nccl_tests

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall", "sendrecv")
LARGE_BYTES = 2**20
SHARE = 0.02
MICROSECONDS = 0.5


def measure(
    stage: Stage, collective: str, largest: str, repeats: int, seconds: float
) -> dict[int, dict[str, list[float]]]:
    """Return times in microseconds by size: `nccl_tests` and `busbw`, one of each for each repeat."""
    times: dict[int, dict[str, list[float]]] = {}
    for repeat in range(repeats):
        turns = [_nccl_tests, _busbw] if repeat % 2 == 0 else [_busbw, _nccl_tests]
        for turn in turns:
            for size_bytes, name, time_us in turn(stage, collective, largest, seconds):
                times.setdefault(size_bytes, {}).setdefault(name, []).append(time_us)
    return times


def _nccl_tests(stage: Stage, collective: str, largest: str, _seconds: float) -> list[tuple[int, str, float]]:
    # Short runs are cheap: ten of them for the sizes where one is noisy.
    small, _ = run_nccl_tests(stage, collective, ["-b", "1K", "-e", "512K", "-f", "2", "-N", "10", "-w", "5"], 120)
    large, _ = run_nccl_tests(stage, collective, ["-b", "1M", "-e", largest, "-f", "2", "-w", "5"], 300)
    return [(int(row[0]), "nccl_tests", float(row[5])) for row in (*small, *large)]


def _busbw(stage: Stage, collective: str, largest: str, seconds: float) -> list[tuple[int, str, float]]:
    # nccl-tests moves through as much memory as its largest size: 512 KiB of it stay in the L2 cache, 8 GiB do not.
    small = [collective, "-b", "1K", "-e", "512K", "--cache", "warm", "--time-limit", str(seconds / 3)]
    large = [collective, "-b", "1M", "-e", largest, "--cache", "cold", "--time-limit", str(seconds)]
    found = []
    for arguments in (small, large):
        # nccl-tests sets this field since 2.17 where NCCL has it.
        same = ["-f", "2", "--mode", "stream", "--config", "nvlinkCentricSched=1"]
        with tempfile.TemporaryDirectory() as folder:
            run, _ = run_busbw(stage, [*arguments, *same], Path(folder) / "run", 300)
        found += [(point["size_bytes"], "busbw", point["median_s"] * 1e6) for point in run["measurements"]]
    return found


def rows_of(collective: str, times: dict[int, dict[str, list[float]]]) -> list[dict[str, object]]:
    """Return one row for each size: both medians, their ratio and difference, and whether they agree."""
    rows = []
    for size_bytes, by_tool in sorted(times.items()):
        if len(by_tool) < 2:
            continue
        theirs, ours = statistics.median(by_tool["nccl_tests"]), statistics.median(by_tool["busbw"])
        agree = abs(ours / theirs - 1) <= SHARE if size_bytes >= LARGE_BYTES else abs(ours - theirs) <= MICROSECONDS
        rows.append(
            {
                "collective": collective,
                "size_bytes": size_bytes,
                "nccl_tests_us": theirs,
                "busbw_us": ours,
                "ratio": ours / theirs,
                "difference_us": ours - theirs,
                "agree": agree,
                "nccl_tests_all_us": by_tool["nccl_tests"],
                "busbw_all_us": by_tool["busbw"],
            }
        )
    return rows


def main() -> int:
    """Measure all collectives and print how far the two agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nccl-tests", type=Path, required=True, help="folder of all_reduce_perf and the others")
    parser.add_argument("--nccl", type=Path, required=True, help="libnccl.so.2 for both")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--collectives", default=",".join(COLLECTIVES))
    parser.add_argument("--largest", default="8G")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=12.0, help="time limit of one busbw run")
    parser.add_argument("--json", type=Path, required=True)
    options = parser.parse_args()
    stage = Stage(nccl_tests=options.nccl_tests, nccl=options.nccl, ranks=options.ranks)
    rows: list[dict[str, object]] = []
    for collective in options.collectives.split(","):
        rows += rows_of(collective, measure(stage, collective, options.largest, options.repeats, options.seconds))
        options.json.write_text(json.dumps(rows))
        print(
            f"{'collective':15} {'size':>11} {'nccl-tests us':>14} {'busbw us':>10} {'ratio':>7} {'diff us':>8} agree"
        )
        for row in rows:
            if row["collective"] == collective:
                print(
                    f"{row['collective']:15} {row['size_bytes']:>11} {row['nccl_tests_us']:>14.2f} "
                    f"{row['busbw_us']:>10.2f} {row['ratio']:>7.3f} {row['difference_us']:>8.2f} "
                    f"{'yes' if row['agree'] else 'NO'}",
                    flush=True,
                )
    apart = [row for row in rows if not row["agree"]]
    print(f"{len(rows) - len(apart)} of {len(rows)} agree: within 2 % from 1 MiB on, within 0.5 us below")
    return 0


if __name__ == "__main__":
    sys.exit(main())
