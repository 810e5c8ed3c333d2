"""Seconds for all pairs of a fabric: `busbw fabric` in one launch beside one mpirun a pair, on hosts made here.

Needs root: the hosts are network namespaces behind leaf bridges. Both measure latency of 8 bytes over TCP with the same
Open MPI, in turn. The mpiruns of a tournament go round by round, one pair after the other, as the cores are shared;
its time on real hosts, where the pairs of a round run at once, is counted as rounds times what one mpirun took. For 64
and 1,024 hosts both are counted: ours as its start here, and so many rounds as `--simulate` takes.

usage: python benchmarks/fabric/launches.py [--hosts N] [--rounds N]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.e2e.runner import clean_environment, environment_of
from tests.lab.host import ENVIRONMENT
from tests.lab.lab import Lab
from tests.lab.ranks import OPEN_MPI

BARE = Path(__file__).resolve().parents[1] / "fidelity" / "bare.c"
PAIR_TIME_S = 0.3
SIZE_BYTES = 8
COUNTED = (64, 1024)


def main() -> int:
    """Print what was measured here and what is counted for larger fabrics."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--hosts", type=int, default=8)
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as scratch, Lab(given.hosts, per_leaf=4) as lab:
        both = Both(lab, Path(scratch))
        times: dict[str, list[float]] = {}
        for turn in range(given.rounds):
            for name, measure in both.cases()[:: 1 if turn % 2 else -1]:
                times.setdefault(name, []).append(measure())
    found = {name: statistics.median(each) for name, each in times.items()}
    pairs, rounds = given.hosts * (given.hosts - 1) // 2, given.hosts - 1
    pair_s = found["mpirun"] / pairs
    round_s = (found["all, long"] - found["all"]) / rounds
    start_s = found["all"] - rounds * round_s
    print(f"{given.hosts} hosts, {pairs} pairs, medians of {given.rounds}, load {os.getloadavg()[0]:.1f}:")
    print(f"  one mpirun a pair, one after the other: {found['mpirun']:.1f} s, {pair_s:.2f} s each")
    print(f"  busbw fabric --pairs all: {found['all']:.1f} s = {found['all'] / found['mpirun']:.2f} of it")
    print(f"  of these {start_s:.1f} s around the rounds, and {round_s:.2f} s a round of {PAIR_TIME_S} s a pair")
    for hosts in COUNTED:
        sparse = simulated_rounds(hosts)
        ours_s, theirs_s = start_s + sparse * round_s, (hosts - 1) * pair_s
        all_s = start_s + (hosts - 1) * round_s
        print(
            f"{hosts} hosts, counted: a tournament of {hosts - 1} rounds by mpiruns {theirs_s:.0f} s, in one launch "
            f"{all_s:.0f} s ({all_s / theirs_s:.2f}), --pairs sparse of {sparse} rounds {ours_s:.0f} s "
            f"({ours_s / theirs_s:.3f})"
        )
    return 0


class Both:
    """What is measured on the hosts of a lab, each as a function that returns its seconds."""

    def __init__(self, lab: Lab, scratch: Path) -> None:
        self.lab, self.scratch = lab, scratch
        self.bin = environment_of("Open MPI") / "bin"
        path = clean_environment(environment_of("Open MPI"), scratch / "runs")["PATH"]
        self.environment = {**ENVIRONMENT, **OPEN_MPI, "PATH": path, "PRTE_MCA_prte_if_include": "eth0"}
        self.environment["BUSBW_RUNS"] = str(scratch / "runs")
        library = f"{self.bin.parent / 'lib'}"
        subprocess.run(
            [self.bin / "mpicc", "-O3", "-o", scratch / "bare", BARE],
            check=True,
            env={**os.environ, "LD_LIBRARY_PATH": library},
        )

    def cases(self) -> list[tuple[str, Callable[[], float]]]:
        """Return each case with its name."""
        return [
            ("mpirun", self.by_mpirun),
            ("all", lambda: self.by_busbw(PAIR_TIME_S)),
            ("all, long", lambda: self.by_busbw(2 * PAIR_TIME_S)),
        ]

    def by_mpirun(self) -> float:
        """Measure every pair by an mpirun of its own."""
        begun_s = time.monotonic()
        for one, other in pairs_of(self.lab.hosts):
            program = [self.scratch / "bare", "latency", str(SIZE_BYTES), "200"]
            self.run(one, [self.bin / "mpirun", "--allow-run-as-root", "--host", f"{one},{other}", "-n", "2", *program])
        return time.monotonic() - begun_s

    def by_busbw(self, pair_time_s: float) -> float:
        """Measure every pair in one launch."""
        begun_s = time.monotonic()
        words = ["--pairs", "all", "--metric", "latency", "-b", str(SIZE_BYTES), "--pair-time", str(pair_time_s)]
        hosts = f"n[0-{len(self.lab.hosts) - 1}]"
        self.run("n0", [self.bin / "busbw", "fabric", "--hosts", hosts, *words, "--json"], fine=(0, 1, 4))
        return time.monotonic() - begun_s

    def run(self, host: str, command: list[str | Path], fine: tuple[int, ...] = (0,)) -> None:
        """Run a command on a host to its end."""
        done = self.lab.run(host, command, env=self.environment, cwd=str(self.scratch), timeout_s=300)
        if done.returncode not in fine:
            raise SystemExit(f"{command[0]} failed with code {done.returncode}:\n{done.stdout}{done.stderr}")


def pairs_of(hosts: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield every pair."""
    for at, one in enumerate(hosts):
        for other in hosts[at + 1 :]:
            yield one, other


def simulated_rounds(hosts: int) -> int:
    """Return how many rounds a simulated fabric of so many hosts takes by --pairs sparse, a slow node in it."""
    busbw = environment_of("Open MPI") / "bin" / "busbw"
    words = ["--simulate", "fat-tree-2", "--nodes", str(hosts), "--fault", "node", "--pairs", "sparse", "--json"]
    done = subprocess.run([busbw, "fabric", *words], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 4):
        raise SystemExit(done.stderr)
    return int(json.loads(done.stdout)["rounds"])


if __name__ == "__main__":
    sys.exit(main())
