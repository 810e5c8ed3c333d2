"""busbw against a bare C program for the same MPI, and against IMB-MPI1 where Intel MPI is the MPI.

Both run in turn, started by the same mpirun line; the ratio of each round's two times counts. Shared machines drift:
the interval printed beside the median ratio leaves a fifth of the rounds out on each side.

usage: python benchmarks/fidelity/fidelity.py [--venv DIR] [--mpirun PROGRAM] [--rounds N] [-n RANKS]
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CASES = (("latency", 8), ("all_reduce", 2**20), ("all_reduce", 2**24), ("alltoall", 2**20), ("alltoall", 2**24))
LIMIT_RATIO = 1.03
LIMIT_S = 20e-9
HERE = Path(__file__).resolve().parent
IMB_NAMES = {"latency": "PingPong", "message_rate": "Uniband", "all_reduce": "Allreduce", "alltoall": "Alltoall"}


@dataclass(frozen=True)
class Case:
    """One exchange of one size, and the busbw that measures it."""

    kind: str
    size_bytes: int
    ranks: int
    busbw: tuple[str, ...]

    @property
    def command(self) -> list[str]:
        """The busbw command that measures this case in stream mode."""
        size = ["-b", str(self.size_bytes), "-e", str(self.size_bytes)]
        return [*self.busbw, self.kind, *size, "-n", str(self.ranks), "--mode", "stream", "--json"]


def main() -> int:
    """Print a row for each case; exit 1 when one is over the limit with its whole interval."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--venv", type=Path, default=Path(sys.prefix), help="environment with busbw")
    arguments.add_argument("--mpirun", help="the mpirun that busbw shall use")
    arguments.add_argument("--rounds", type=int, default=9)
    arguments.add_argument("-n", "--ranks", type=int, default=2)
    given = arguments.parse_args()
    chosen = ("--mpirun", given.mpirun) if given.mpirun else ()
    busbw = (str(given.venv.absolute() / "bin" / "busbw"), "run", *chosen)
    over = False
    with tempfile.TemporaryDirectory() as scratch:
        for kind, size_bytes in CASES:
            if kind != "latency" or given.ranks % 2 == 0:
                over |= compare(Case(kind, size_bytes, given.ranks, busbw), Path(scratch), given.rounds)
    return 1 if over else 0


def compare(case: Case, scratch: Path, rounds: int) -> bool:
    """Print one row. Returns whether busbw is slower than allowed beyond what the rounds' spread explains."""
    plan = json.loads(output([*case.command, "--plan"]))
    name, peer = peer_of(case, plan, scratch)
    version = f"{plan['mpi']['family']} {plan['mpi']['version']}"
    title = f"{version}, {case.kind} {case.size_bytes} B, {case.ranks} ranks: busbw / {name}"
    return in_turn(title, lambda: busbw(case), peer, rounds)


def in_turn(
    title: str, our: Callable[[], float], peer: Callable[[], float], rounds: int, limit_s: float = LIMIT_S
) -> bool:
    """Print a row of times that two programs took in turn. Returns whether ours is over the limit, as `compare`."""
    ours, theirs = [], []
    for turn in range(rounds):
        for measure_ours in (True, False) if turn % 2 else (False, True):
            (ours if measure_ours else theirs).append(our() if measure_ours else peer())
    ratios = sorted(mine / other for mine, other in zip(ours, theirs, strict=True))
    low, high = ratios[rounds // 5], ratios[-1 - rounds // 5]
    mine, other = statistics.median(ours), statistics.median(theirs)
    print(
        f"{title} = {statistics.median(ratios):.3f} [{low:.3f}, {high:.3f}] over {rounds} rounds; "
        f"medians {mine * 1e6:.3f} and {other * 1e6:.3f} us, {(mine - other) * 1e9:+.0f} ns",
        flush=True,
    )
    return low > LIMIT_RATIO and mine - other > limit_s


def peer_of(case: Case, plan: dict, scratch: Path) -> tuple[str, Callable[[], float]]:
    """Return the peer's name and what measures one exchange with it, in seconds, by busbw's own mpirun line."""
    launcher = launcher_of(plan)
    if plan["mpi"]["family"] == "Intel MPI":
        return "IMB-MPI1", lambda: imb(case, launcher)
    program = scratch / "bare"
    if not program.exists():
        output([Path(launcher[0]).with_name("mpicc"), "-O3", "-o", program, HERE / "bare.c"])
    repeats = str(3000 if case.size_bytes < 2**16 else 1000 if case.size_bytes < 2**22 else 100)
    command = [*launcher, program, case.kind, str(case.size_bytes), repeats]
    return "bare C", lambda: float(output(command, beside=launcher[0])) * 1e-9


def launcher_of(plan: dict) -> list[str]:
    """Return the words of a plan that start a program on each rank."""
    argv = plan["job"]["argv"]
    return argv[: argv.index("-P") - 1]


def imb(case: Case, launcher: list[str]) -> float:
    """Return IMB-MPI1's time of one exchange; its alltoall counts bytes a peer, ours bytes a rank."""
    message = case.size_bytes // case.ranks if case.kind == "alltoall" else case.size_bytes
    program = [Path(launcher[0]).with_name("IMB-MPI1"), IMB_NAMES[case.kind], "-npmin", str(case.ranks)]
    # IMB prints a mean: enough calls that the first ones, still warming, do not count.
    calls = 20_000 if case.size_bytes < 2**16 else 2000 if case.size_bytes < 2**22 else 100
    if case.kind == "message_rate":
        # Of 64 messages each.
        calls //= 10
    repeats = ["-iter", str(calls), "-iter_policy", "off"]
    # Lengths listed with -msglen are cut at 4 MiB.
    exponent = message.bit_length() - 1
    lengths = ["-msglog", f"{exponent}:{exponent}", "-mem", "4"]
    text = output([*launcher, *program, *lengths, *repeats], beside=launcher[0])
    for line in text.splitlines():
        fields = line.split()
        if fields[:1] == [str(message)] and re.fullmatch(r"\d+", fields[1]):
            if case.kind == "message_rate":
                return 1 / float(fields[3])
            return float(fields[2] if case.kind == "latency" else fields[4]) * 1e-6
    raise SystemExit(f"no row for {message} bytes in IMB's output:\n{text}")


def busbw(case: Case) -> float:
    """Return busbw's median of one exchange in stream mode, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        # Exit codes 1 and 4 are verdicts, not failures.
        text = output([*case.command, "--time-limit", "3", "-o", f"{folder}/run"], fine=(0, 1, 4))
        return json.loads(text)["measurements"][0]["median_s"]


def output(command: list, beside: str | None = None, fine: tuple[int, ...] = (0,)) -> str:
    """Return what a command prints. `beside`: an mpirun whose programs and libraries it needs."""
    environment = dict(os.environ)
    if beside is not None:
        folder = Path(beside).parent
        environment["PATH"] = f"{folder}:{environment['PATH']}"
        environment["LD_LIBRARY_PATH"] = f"{folder.parent / 'lib'}:{environment.get('LD_LIBRARY_PATH', '')}"
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode not in fine:
        raise SystemExit(f"{command[0]} failed with code {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
