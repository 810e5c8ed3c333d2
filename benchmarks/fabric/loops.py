"""The loops of `busbw fabric` against a bare C program for the same MPI, or IMB-MPI1 where Intel MPI is the MPI.

Latency and message rate of 8 bytes, between two ranks of one host, started by the same mpirun line and measured in
turn as `benchmarks/fidelity` does it. busbw's waits have a deadline; those of its peers block.

With `--together` both loops run in the same two processes, by turns of 20 ms, so that other work on the cores meets
both alike; the peer is then the C loops of `bare_loops.c`, whatever the MPI.

usage: python benchmarks/fabric/loops.py [--venv DIR] [--mpirun PROGRAM] [--rounds N] [--together]
"""

import argparse
import ctypes
import json
import mmap
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fidelity"))

from fidelity import LIMIT_RATIO, LIMIT_S, Case, in_turn, launcher_of, output, peer_of

SIZE_BYTES = 8
# As `measure.plan.fabric` has them: round trips of a sample, messages of a window.
CALLS = {"latency": 50, "message_rate": 64}
# Of a sample of a rate, as a repeat of the C program: windows are put together until they take as long.
SAMPLE_NS = 500_000
BUDGET_NS = 2_000_000_000
# Of a turn where both loops run in the same processes: calls of the C loops, each time so often.
TURN_NS, TURNS = 20_000_000, 60
BARE_CALLS, BARE_TIMES = {"latency": 500, "message_rate": 60}, 40


def main() -> int:
    """Print a row for each metric; exit 1 when one is over the limit with its whole interval."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--venv", type=Path, default=Path(sys.prefix), help="environment with busbw")
    arguments.add_argument("--mpirun", help="the mpirun that busbw shall use")
    arguments.add_argument("--rounds", type=int, default=15)
    arguments.add_argument("--together", action="store_true", help="both loops in the same processes")
    arguments.add_argument("--as-rank", choices=list(CALLS), help=argparse.SUPPRESS)
    arguments.add_argument("--beside", type=Path, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.as_rank:
        as_rank(given.as_rank, given.beside)
        return 0
    bin_ = given.venv.absolute() / "bin"
    busbw = (str(bin_ / "busbw"), "run", *(("--mpirun", given.mpirun) if given.mpirun else ()))
    over = False
    with tempfile.TemporaryDirectory() as scratch:
        for kind in CALLS:
            case = Case(kind, SIZE_BYTES, 2, busbw)
            if given.together:
                over |= together_in_turn(case, bin_ / "python", Path(scratch), given.rounds)
                continue
            over |= compare(case, bin_ / "python", Path(scratch), given.rounds)
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


def together_in_turn(case: Case, python: Path, scratch: Path, rounds: int) -> bool:
    """Print a row of differences in the same processes, over several starts. Returns whether busbw is too slow."""
    launcher = launcher_of(json.loads(output([*case.command, "--plan"])))
    library = scratch / "bare_loops.so"
    if not library.exists():
        source = Path(__file__).with_name("bare_loops.c")
        output([Path(launcher[0]).with_name("mpicc"), "-O3", "-shared", "-fPIC", "-o", library, source])
    command = [*launcher, python, "-P", Path(__file__).resolve(), "--as-rank", case.kind, "--beside", library]
    starts = [json.loads(output(command, beside=launcher[0])) for _ in range(rounds)]
    ours, bare = ([turn[at] for start in starts for turn in start] for at in (0, 1))
    medians = sorted(statistics.median(mine - other for mine, other in start) for start in starts)
    middle = statistics.median(mine - other for mine, other in zip(ours, bare, strict=True))
    share = middle / statistics.median(bare)
    print(
        f"{case.kind} {case.size_bytes} B in the same processes: busbw fabric {statistics.median(ours):.1f} ns, bare C "
        f"{statistics.median(bare):.1f}; median difference {middle:+.1f} ns ({100 * share:+.1f} %), of {rounds} starts "
        f"{medians[0]:+.1f} to {medians[-1]:+.1f}",
        flush=True,
    )
    return share > LIMIT_RATIO - 1 and middle > (LIMIT_S * 1e9 if case.kind == "latency" else 0.0)


def as_rank(kind: str, beside: Path | None) -> None:
    """Be one of the two ranks; rank 0 prints what half a round trip, or a message, takes in nanoseconds.

    `beside`: C loops to take turns with; then it prints both of each turn.
    """
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
    memory = mmap.mmap(-1, 64)

    def ours(budget_ns: int) -> list[int]:
        task = _core.PairTask(
            peer=1 - world.rank, tag=1, leads=world.rank == 0, size=SIZE_BYTES, calls=CALLS[kind],
            budget_ns=budget_ns, least=3, most=10**6, limit_ns=10 * BUDGET_NS,
        )  # fmt: skip
        samples = _core.test_pair(tester, memory, "ping_pong" if kind == "latency" else "one_way", task)
        if samples.gave_up:
            raise SystemExit("the other rank did not answer")
        return samples.duration_ns

    messages = CALLS[kind] * (2 if kind == "latency" else 1)
    if beside is None:
        durations_ns = ours(BUDGET_NS)
        if world.rank == 0:
            print(f"{statistics.median(together(durations_ns)) / messages:.3f}")
        return
    loop = getattr(ctypes.CDLL(str(beside)), kind)
    loop.restype = ctypes.c_double
    out, into = ctypes.create_string_buffer(room), ctypes.create_string_buffer(room)
    turns = []
    for _ in range(TURNS):
        bare = statistics.median(loop(out, into, SIZE_BYTES, BARE_CALLS[kind]) for _ in range(BARE_TIMES))
        mine = ours(TURN_NS)
        if world.rank == 0:
            turns.append((statistics.median(mine) / messages, bare))
    if world.rank == 0:
        print(json.dumps(turns))


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
