"""Plain, registered and symmetric buffers against each other, launched and in CUDA graphs: where registration helps,
and where it hurts. Runs in turn, each several times; a size counts only where all intervals lie apart.

Run: python benchmarks/nccl/registration.py --help
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from peers import Stage, run_busbw

BUFFERS = {"plain": "0", "registered": "1", "symmetric": "2"}
SWEEP = ["-b", "1K", "-e", "1G", "-f", "4"]


def measure(stage: Stage, mode: str, repeats: int, seconds: float) -> dict[int, dict[str, list[dict[str, object]]]]:
    """Return the measurements of all_reduce by size and kind of buffer."""
    found: dict[int, dict[str, list[dict[str, object]]]] = {}
    for repeat in range(repeats):
        order = list(BUFFERS) if repeat % 2 == 0 else list(reversed(BUFFERS))
        for name in order:
            arguments = ["all_reduce", *SWEEP, "--mode", mode, "-R", BUFFERS[name], "--time-limit", str(seconds)]
            with tempfile.TemporaryDirectory() as folder:
                run, _ = run_busbw(stage, arguments, Path(folder) / "run", 200)
            for point in run["measurements"]:
                found.setdefault(point["size_bytes"], {}).setdefault(name, []).append(point)
    return found


def verdict(plain: list[dict[str, object]], other: list[dict[str, object]]) -> str:
    """Return how the other buffers' time compares to plain ones'; `~` where not all intervals lie apart."""
    if min(point["low_s"] for point in other) > max(point["high_s"] for point in plain):
        return "slower"
    return "faster" if max(point["high_s"] for point in other) < min(point["low_s"] for point in plain) else "~"


def chosen(points: list[dict[str, object]]) -> str:
    """Return what NCCL says it used."""
    words = {
        f"{choice['algorithm']} {choice['protocol']} {choice['channels']}".lower()
        for point in points
        for choice in point["nccl"]["choices"]
    }
    return ", ".join(sorted(words))


def main() -> int:
    """Measure and print one table for each mode."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nccl", type=Path, required=True)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--modes", default="graph,stream")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--json", type=Path, required=True)
    options = parser.parse_args()
    stage = Stage(nccl_tests=Path(), nccl=options.nccl, ranks=options.ranks)
    everything = {}
    for mode in options.modes.split(","):
        found = measure(stage, mode, options.repeats, options.seconds)
        everything[mode] = found
        options.json.write_text(json.dumps(everything))
        print(
            f"all_reduce, {mode} mode, median us\n"
            f"{'size':>11} {'plain':>9} {'registered':>17} {'symmetric':>17}  NCCL used"
        )
        for size_bytes, by_name in sorted(found.items()):
            medians = {name: 1e6 * statistics.median(p["median_s"] for p in points) for name, points in by_name.items()}
            cells = [
                f"{medians[name]:9.2f} {verdict(by_name['plain'], by_name[name]):>7}"
                for name in ("registered", "symmetric")
            ]
            used = " | ".join(chosen(points) for points in by_name.values())
            print(f"{size_bytes:>11} {medians['plain']:9.2f} {cells[0]} {cells[1]}  {used}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
