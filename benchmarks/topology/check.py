"""How long `busbw topo check` takes with start-up, beside `busbw --version` and a bare Python.

    python benchmarks/topology/check.py [FILE ...] [--rounds 20]

All are run in turn, round by round, so that a busy machine slows them alike; the median counts. Beside the time that
passed stands the time on a CPU, which waiting for other programs does not add to. Without a file one is made from a
platform. The aim is 0.3 s.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

AIM_S = 0.3


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("files", nargs="*", type=Path, help="topology files")
    arguments.add_argument("--rounds", type=int, default=20)
    given = arguments.parse_args()
    busbw = str(Path(sys.executable).with_name("busbw"))
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "oci-bm-gpu-h100-8.xml"
        subprocess.run([busbw, "topo", "make", made.stem, "-o", str(made)], check=True, capture_output=True)
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "busbw --version": [busbw, "--version"],
            **{f"busbw topo check {file.name}": [busbw, "topo", "check", str(file)] for file in given.files or [made]},
        }
        times_s = measured(commands, given.rounds)
    base_s = times_s["busbw --version"][0]
    print(f"{'median of ' + str(given.rounds) + ' rounds':<50} {'s':>7} {'CPU s':>7} {'of --version':>13}")
    for name, (time_s, cpu_s) in times_s.items():
        print(f"{name:<50} {time_s:>7.3f} {cpu_s:>7.3f} {time_s / base_s:>12.1f}x")
    slowest_s = max(time_s for time_s, _cpu_s in times_s.values())
    print(f"aim: {AIM_S} s; slowest: {slowest_s:.3f} s, {'reached' if slowest_s < AIM_S else 'missed'}")


def measured(commands: dict[str, list[str]], rounds: int) -> dict[str, tuple[float, float]]:
    """Return the median time that each command took, and that it was on a CPU, in seconds."""
    times_s: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, argv in commands.items():
            started_s, used_s = time.perf_counter(), _children_s()
            done = subprocess.run(argv, capture_output=True, check=False)
            times_s[name].append((time.perf_counter() - started_s, _children_s() - used_s))
            if done.returncode not in (0, 1):
                sys.exit(f"{name} failed: {done.stderr.decode(errors='replace')}")
    return {name: tuple(map(statistics.median, zip(*each, strict=True))) for name, each in times_s.items()}


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
