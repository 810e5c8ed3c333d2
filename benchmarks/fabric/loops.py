"""The loops of `busbw fabric` against a bare C program for the same MPI, or IMB-MPI1 where Intel MPI is the MPI.

Latency and message rate of 8 bytes, between two ranks of one host, started by the same mpirun line and measured in
turn as `benchmarks/fidelity` does it. busbw's waits have a deadline; those of its peers block.

usage: python benchmarks/fabric/loops.py [--venv DIR] [--mpirun PROGRAM] [--rounds N]
"""

import argparse
import json
import mmap
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fidelity"))

from fidelity import LIMIT_S, Case, in_turn, launcher_of, output, peer_of

SIZE_BYTES = 8
# As `measure.plan.fabric` has them: round trips of a sample, messages of a window.
CALLS = {"latency": 50, "message_rate": 64}
# Of a sample of a rate, as a repeat of the C program: windows are put together until they take as long.
SAMPLE_NS = 500_000
BUDGET_NS = 2_000_000_000


def main() -> int:
    """Print a row for each metric; exit 1 when one is over the limit with its whole interval."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--venv", type=Path, default=Path(sys.prefix), help="environment with busbw")
    arguments.add_argument("--mpirun", help="the mpirun that busbw shall use")
    arguments.add_argument("--rounds", type=int, default=15)
    arguments.add_argument("--as-rank", choices=list(CALLS), help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.as_rank:
        as_rank(given.as_rank)
        return 0
    bin_ = given.venv.absolute() / "bin"
    busbw = (str(bin_ / "busbw"), "run", *(("--mpirun", given.mpirun) if given.mpirun else ()))
    over = False
    with tempfile.TemporaryDirectory() as scratch:
        for kind in CALLS:
            over |= compare(Case(kind, SIZE_BYTES, 2, busbw), bin_ / "python", Path(scratch), given.rounds)
    return 1 if over else 0


def compare(case: Case, python: Path, scratch: Path, rounds: int) -> bool:
    """Print one row. Returns whether busbw is slower than allowed beyond what the rounds' spread explains."""
    plan = json.loads(output([*case.command, "--plan"]))
    launcher = launcher_of(plan)
    name, peer = peer_of(case, plan, scratch)
    command = [*launcher, python, "-P", Path(__file__).resolve(), "--as-rank", case.kind]
    title = f"{plan['mpi']['family']} {plan['mpi']['version']}, {case.kind} {case.size_bytes} B: busbw fabric / {name}"
    # 20 ns are much of the time that one message of a window takes.
    limit_s = LIMIT_S if case.kind == "latency" else 0.0
    return in_turn(title, lambda: float(output(command, beside=launcher[0])) * 1e-9, peer, rounds, limit_s)


def as_rank(kind: str) -> None:
    """Be one of the two ranks; rank 0 prints what half a round trip, or a message, takes in nanoseconds."""
    from busbw import _core  # noqa: PLC0415 - the ranks alone have it
    from busbw.rank.mpi_world import MpiWorld  # noqa: PLC0415 - begins MPI

    world = MpiWorld()
    room = 2**20
    send, receive = _core.Buffer(room), _core.Buffer(room)
    for buffer in (send, receive):
        buffer.touch(room)
    handle = world.handle(world.communicator)
    tester = _core.make_pair_tester(
        world.core, communicator=handle, byte=world.byte, send=send, receive=receive, window=CALLS[kind]
    )
    task = _core.PairTask(
        peer=1 - world.rank, tag=1, leads=world.rank == 0, size=SIZE_BYTES, calls=CALLS[kind],
        budget_ns=BUDGET_NS, least=3, most=10**6, limit_ns=10 * BUDGET_NS,
    )  # fmt: skip
    memory = mmap.mmap(-1, 64)
    samples = _core.test_pair(tester, memory, "ping_pong" if kind == "latency" else "one_way", task)
    if samples.gave_up:
        raise SystemExit("the other rank did not answer")
    if world.rank == 0:
        messages = CALLS[kind] * (2 if kind == "latency" else 1)
        print(f"{statistics.median(together(samples.duration_ns)) / messages:.3f}")


def together(durations_ns: list[int]) -> list[float]:
    """Return the mean of each lot of samples that takes half a millisecond: a hiccup is in one of them."""
    means, lot = [], []
    for each in durations_ns:
        lot.append(each)
        if sum(lot) >= SAMPLE_NS:
            means.append(statistics.fmean(lot))
            lot = []
    return means or [statistics.fmean(durations_ns)]


if __name__ == "__main__":
    sys.exit(main())
