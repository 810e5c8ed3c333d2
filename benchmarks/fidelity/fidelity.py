"""busbw against a bare C program for the same MPI, and against IMB-MPI1 where Intel MPI is the MPI.

Both run in turn, pinned alike by the same mpirun line; the medians of the rounds are compared, as ratios. Shared
machines drift: a round whose two neighbours of the same kind differ a lot says nothing, so the interval of the ratio
over rounds is printed beside it.

usage: python benchmarks/fidelity/fidelity.py [--venv DIR] [--rounds N] [-n RANKS]
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

CASES = (("latency", 8), ("all_reduce", 2**20), ("all_reduce", 2**24), ("alltoall", 2**20), ("alltoall", 2**24))
LIMIT_RATIO = 1.03
LIMIT_S = 20e-9
HERE = Path(__file__).resolve().parent


def main() -> int:
    """Print a row for each case; exit 1 when one is over the limit with its whole interval."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument(
        "--venv", type=Path, default=Path(sys.prefix), help="environment with busbw and an MPI wheel"
    )
    arguments.add_argument("--rounds", type=int, default=9)
    arguments.add_argument("-n", "--ranks", type=int, default=2)
    given = arguments.parse_args()
    venv, ranks = given.venv.absolute(), given.ranks
    over = False
    with tempfile.TemporaryDirectory() as scratch:
        for kind, size_bytes in CASES:
            if kind == "latency" and ranks % 2:
                continue
            plan = busbw_plan(venv, kind, size_bytes, ranks)
            name, peer = peer_of(venv, plan, kind, size_bytes, Path(scratch))
            over |= compare(venv, kind, size_bytes, ranks, name, peer, given.rounds)
    return 1 if over else 0


def busbw_plan(venv: Path, kind: str, size_bytes: int, ranks: int) -> dict:
    """Return the plan busbw makes: its mpirun line is used for the peer too."""
    command = [
        venv / "bin/busbw",
        "run",
        kind,
        *size(size_bytes),
        "-n",
        str(ranks),
        "--mode",
        "stream",
        "--plan",
        "--json",
    ]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def size(size_bytes: int) -> list[str]:
    """Return the options for one size."""
    return ["-b", str(size_bytes), "-e", str(size_bytes)]


def peer_of(venv: Path, plan: dict, kind: str, size_bytes: int, scratch: Path):
    """Return the peer's name and a function that measures one exchange with it, in seconds."""
    argv = plan["job"]["argv"]
    launcher = argv[: argv.index("-P") - 1]
    if plan["mpi"]["family"] == "Intel MPI":
        return "IMB-MPI1", lambda: imb(venv, launcher, kind, size_bytes)
    program = scratch / "bare"
    if not program.exists():
        subprocess.run([venv / "bin/mpicc", "-O3", "-o", program, HERE / "bare.c"], check=True)
    repeats = str(3000 if size_bytes < 2**16 else 1000 if size_bytes < 2**22 else 100)
    return "bare C", lambda: float(output([*launcher, program, kind, str(size_bytes), repeats])) * 1e-9


def imb(venv: Path, launcher: list[str], kind: str, size_bytes: int) -> float:
    """Return IMB-MPI1's time of one exchange; its alltoall counts bytes a peer, ours bytes a rank."""
    name = {"latency": "PingPong", "all_reduce": "Allreduce", "alltoall": "Alltoall"}[kind]
    ranks = int(launcher[launcher.index("-n") + 1])
    message = size_bytes // ranks if kind == "alltoall" else size_bytes
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as lengths:
        lengths.write(f"{message}\n")
        lengths.flush()
        iterations = "20000" if size_bytes < 2**16 else "100"
        text = output(
            [
                *launcher,
                venv / "bin/IMB-MPI1",
                name,
                "-msglen",
                lengths.name,
                "-npmin",
                str(ranks),
                "-iter",
                iterations,
                "-iter_policy",
                "off",
                "-off_cache",
                "-1",
            ]
        )
    for line in text.splitlines():
        fields = line.split()
        if fields[:1] == [str(message)] and re.fullmatch(r"\d+", fields[1]):
            return float(fields[2] if kind == "latency" else fields[4]) * 1e-6
    raise SystemExit(f"no row for {message} bytes in IMB's output:\n{text}")


def output(command: list) -> str:
    """Return what a command prints; it must succeed."""
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{Path(command[0]).parent.parent / 'lib'}"}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def busbw(venv: Path, kind: str, size_bytes: int, ranks: int) -> float:
    """Return busbw's median of one exchange in stream mode, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            venv / "bin/busbw",
            "run",
            kind,
            *size(size_bytes),
            "-n",
            str(ranks),
            "--mode",
            "stream",
            "--time-limit",
            "3",
            "--json",
            "-o",
            f"{folder}/run",
        ]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode not in (0, 1, 4):
            raise SystemExit(done.stderr)
        return json.loads(done.stdout)["measurements"][0]["median_s"]


def compare(venv: Path, kind: str, size_bytes: int, ranks: int, name: str, peer, rounds: int) -> bool:
    """Print one row. Returns whether busbw is slower than allowed beyond what the rounds' spread explains."""
    ours, theirs = [], []
    for _round in range(rounds):
        theirs.append(peer())
        ours.append(busbw(venv, kind, size_bytes, ranks))
    ratios = sorted(mine / other for mine, other in zip(ours, theirs, strict=True))
    low, high = ratios[rounds // 5], ratios[-1 - rounds // 5]
    mine, other = statistics.median(ours), statistics.median(theirs)
    print(
        f"{kind:>10} {size_bytes:>9} B, {ranks} ranks: busbw / {name} = {statistics.median(ratios):.3f} "
        f"[{low:.3f}, {high:.3f}] over {rounds} rounds; medians {mine * 1e6:.3f} and {other * 1e6:.3f} us",
        flush=True,
    )
    return low > LIMIT_RATIO and mine - other > LIMIT_S


if __name__ == "__main__":
    sys.exit(main())
