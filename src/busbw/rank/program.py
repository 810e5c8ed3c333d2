"""What one rank does from its start to its end."""

import contextlib
import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, cast

from busbw import _core
from busbw.base import layout
from busbw.model import codec
from busbw.model.plan import Plan, points_of
from busbw.model.record import (
    EVENT_PREFIX,
    Ending,
    Event,
    Failed,
    Finished,
    Hello,
    Measuring,
    PointEnded,
    Preparing,
    Record,
)
from busbw.model.train.replay import StepPlan
from busbw.rank.admission import read_plan, refuse, suspicion, wrong_count
from busbw.rank.bench import Bench
from busbw.rank.budget import PointLedger, Turn
from busbw.rank.heart import Heart, hearts_of, remove_left
from busbw.rank.journal import Journal, Presence, introduce
from busbw.rank.sampling import Budget, Controls, Report
from busbw.rank.world import World, open_world

if TYPE_CHECKING:
    from busbw.rank.stepping.replay import Stepper

Reason = Literal["complete", "time", "stopped"]

# What rank 0 tells the others by number; None: the run goes on.
_REASONS: tuple[Reason | None, ...] = (None, "complete", "time", "stopped")
ABORT_CODE = 3
WRONG_SIZE_CODE = 4
# A compiler's complaint may be pages long; all of it is in the trace on standard error.
_MOST_WORDS = 600


def main(arguments: Sequence[str]) -> int:
    """Measure the points of the plan in a run directory. Arguments: the directory, the attempt, points to leave out."""
    directory, attempt = Path(arguments[0]), int(arguments[1])
    done = frozenset(int(number) for number in arguments[2].split(",") if number)
    try:
        plan = read_plan(directory)
    except RuntimeError as error:
        refuse(str(error))
        return ABORT_CODE
    # On one host the launching side writes into the heartbeat, and whoever ends a rank with a signal wants it to end.
    requests = StopRequests(plan.job.stop_grace_s, plan.job.stall_s) if plan.placement.is_spread else None
    if plan.mpi is not None and (doubt := suspicion(plan.mpi.family, plan.mpi.library, os.environ)) is not None:
        print(f"busbw rank failed at loading MPI, possibly: {doubt}", file=sys.stderr, flush=True)
    try:
        world = open_world(plan, directory, attempt)
    except (ImportError, OSError, RuntimeError) as error:
        # The launching side repeats this line.
        step = "meeting the others" if plan.mpi is None else "loading MPI"
        print(f"busbw rank failed at {step}: {_one_line(error)}", file=sys.stderr)
        return ABORT_CODE
    per_process = plan.gpu_setup.per_process if plan.gpu_setup is not None else 1
    if world.ranks * per_process != plan.placement.ranks:
        words = wrong_count(world, plan.placement.ranks // per_process, os.environ)
        if words is not None:
            refuse(words)
        world.abort(WRONG_SIZE_CODE)
    heart: Heart | None = None
    journals: tuple[Journal, ...] = ()
    try:
        raw = directory / layout.RAW_DIRECTORY
        mine = range(world.rank * per_process, (world.rank + 1) * per_process)
        if world.local_rank == 0:
            remove_left()
        hearts = hearts_of(plan, raw, attempt)
        heart = Heart([hearts.folder / layout.heartbeat_name(rank) for rank in mine], plan.sweeps)
        if requests is not None:
            requests.tell(heart.ask_to_stop, heart.read)
        presence = Presence(
            hearts.folder, mine, keeps_counters=world.local_rank == 0, is_own_folder=hearts.lock is not None
        )
        journals = tuple(Journal(raw / layout.records_name(rank, attempt)) for rank in mine)
        carry_out = _run if plan.fabric is None else functools.partial(_sweep, attempt)
        carry_out(plan, world, heart, presence, journals, done)
        presence.leave()
    except Exception as error:  # noqa: BLE001 - whatever it is, the other ranks must not wait for this one
        step = heart.step if heart is not None else "starting"
        _give_up(world, journals, step, error, stays_s=plan.job.stall_s if isinstance(error, _core.Stalled) else 0.0)
    world.leave()
    if plan.gpu_setup is None:
        # All that is the rank's is on disk; what Python would tidy up takes 10 ms of every rank.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    return 0


def _run(
    plan: Plan,
    world: World,
    heart: Heart,
    presence: Presence,
    journals: Sequence[Journal],
    done: frozenset[int],
) -> None:
    say = _speaker(world)
    bench = _open_bench(plan, world, heart)
    hellos = bench.hellos()
    _write(journals, hellos)
    if plan.placement.is_spread or not world.one_host:
        heart.enter("comparing the hosts")
        _compare_hosts(plan, world, hellos, journals[0])
    say(Preparing(what="memory copies and loopback streams" if plan.gpu_setup is None else "joining"))
    heart.enter("machine rates")
    for records in bench.rates():
        _write(journals, records)
    bench.prepare()
    # By now the MPI library has made its segments.
    presence.note()
    reason = _measure(plan, world, heart, presence, journals, bench, say, done)
    if plan.step is not None and reason != "stopped":
        reason = _replay(plan, plan.step, world, heart, journals[0], bench, say)
    _write(journals, [Finished(reason=reason)] * len(journals))
    heart.enter("done")
    world.barrier()
    say(Ending(reason=reason))


def _open_bench(plan: Plan, world: World, heart: Heart) -> Bench:
    """Return what the plan's backend measures with; each rank loads one of the two."""
    if plan.gpu_setup is not None:
        from busbw.rank.nccl.bench import NcclBench  # noqa: PLC0415

        return NcclBench(plan, world, heart)
    from busbw.rank.mpi_bench import MpiBench  # noqa: PLC0415
    from busbw.rank.mpi_world import MpiWorld  # noqa: PLC0415

    return MpiBench(plan, cast("MpiWorld", world), heart)


def _open_stepper(plan: Plan, bench: Bench, step: StepPlan) -> "Stepper":
    """Return what repeats a step with what the bench measures with; few runs replay one."""
    if plan.gpu_setup is not None:
        from busbw.rank.nccl.bench import NcclBench  # noqa: PLC0415
        from busbw.rank.stepping import over_nccl  # noqa: PLC0415

        return over_nccl.stepper_of(cast("NcclBench", bench), step)
    from busbw.rank.mpi_bench import MpiBench  # noqa: PLC0415
    from busbw.rank.stepping import over_mpi  # noqa: PLC0415

    return over_mpi.stepper_of(cast("MpiBench", bench), step)


def _replay(
    plan: Plan,
    step: StepPlan,
    world: World,
    heart: Heart,
    journal: Journal,
    bench: Bench,
    say: Callable[[Event], None],
) -> Reason:
    from busbw.rank.stepping.replay import replay_steps  # noqa: PLC0415 - few runs replay a step

    heart.enter("joining")
    stepper = _open_stepper(plan, bench, step)
    return "stopped" if replay_steps(step, world, heart, journal, stepper, say) else "complete"


def _sweep(
    attempt: int,
    plan: Plan,
    world: World,
    heart: Heart,
    presence: Presence,
    journals: Sequence[Journal],
    _done: frozenset[int],
) -> None:
    """Carry out a sweep over a fabric: no rank waits for all others once the hosts have been compared."""
    from busbw.rank.sweeping import counting, fabric  # noqa: PLC0415 - few runs have a sweep

    say = _speaker(world)
    hellos = (introduce(world, world.rank),)
    _write(journals, hellos)
    heart.enter("comparing the hosts")
    _compare_hosts(plan, world, hellos, journals[0])
    say(Preparing(what="comparing the hosts"))
    presence.note()
    keeper = counting.CounterKeeper(journals[0], keeps=world.local_rank == 0)
    keeper.keep("before")
    reason = fabric.carry_out(plan, world, heart, journals[0], say, attempt, keeper)
    _write(journals, [Finished(reason=reason)])
    heart.enter("done")
    say(Ending(reason=reason))


def _measure(
    plan: Plan,
    world: World,
    heart: Heart,
    presence: Presence,
    journals: Sequence[Journal],
    bench: Bench,
    say: Callable[[Event], None],
    done: frozenset[int],
) -> Reason:
    """Measure turn after turn until every point is known well enough, time is over, or somebody stops the run."""
    points = points_of(plan.sweeps)
    todo = [(number, point) for number, point in enumerate(points) if number not in done]
    ledger = PointLedger(plan.sampling, todo, traces=bench.traces)
    while True:
        turn = _agreed_turn(world, heart, ledger)
        if isinstance(turn, str):
            return turn
        presence.begin_point()
        budget = ledger.budget(turn)
        calls, sync_rounds = world.from_first([ledger.calls(turn.point), ledger.sync_rounds(turn)])
        controls = Controls(
            sampling=plan.sampling,
            turn=turn.number,
            calls=calls,
            sync_rounds=sync_rounds,
            earlier_ns=ledger.earlier_ns(turn.point),
            budget=budget,
            yields=plan.placement.oversubscribed,
            report=_reporter(say, turn.point, budget),
        )
        taken = bench.measure(turn.point, points[turn.point], controls)
        heart.enter("writing")
        _write(journals, taken.records)
        world.barrier()
        ledger.note(turn, taken, spent_s=time.monotonic() - budget.began_s)
        first = taken.records[0]
        samples = len(first.duration_ns)
        say(PointEnded(point=turn.point, turn=turn.number, samples=samples, median_s=None, ended=first.ended))


def _agreed_turn(world: World, heart: Heart, ledger: PointLedger) -> Turn | Reason:
    """Return what rank 0 says comes next: a turn, or why the run ends."""
    turn = ledger.next_turn()
    reason = "stopped" if heart.stop_asked else ledger.reason() if turn is None else None
    said = (-1, 0) if turn is None else (turn.point, turn.number)
    ends, point, number = world.from_first([_REASONS.index(reason), *said])
    if (ended := _REASONS[ends]) is not None:
        return ended
    return Turn(point=point, number=number, share_s=turn.share_s if turn is not None else 0.0)


def _compare_hosts(plan: Plan, world: World, hellos: Sequence[Hello], journal: Journal) -> None:
    from busbw.rank.preflight import admit, inspect_nodes  # noqa: PLC0415 - 7 ms that ranks of one host save

    nodes = inspect_nodes(world, hellos, journal.path.parent)
    for node in nodes:
        journal.write(node)
    admit(plan, world, nodes)


def _write(journals: Sequence[Journal], records: Sequence[Record]) -> None:
    """Write one record for each rank of this process."""
    for journal, record in zip(journals, records, strict=True):
        journal.write(record)


def _speaker(world: World) -> Callable[[Event], None]:
    """Return what sends progress to the launching side: a line of standard output from rank 0, nothing elsewhere."""

    def say(event: Event) -> None:
        if world.rank == 0:
            sys.stdout.write(EVENT_PREFIX + codec.encode(event).decode() + "\n")
            sys.stdout.flush()

    return say


def _reporter(say: Callable[[Event], None], number: int, budget: Budget) -> Report:
    def report(phase: str, samples: int, median_s: float | None, half_width: float | None) -> None:
        say(
            Measuring(
                point=number,
                phase=phase,
                samples=samples,
                median_s=median_s,
                half_width=half_width,
                remaining_s=max(budget.run_left_s, 0.0),
            )
        )

    return report


def _keep_ras_status(path: Path) -> None:
    from busbw.rank.visit_processes import ras_status  # noqa: PLC0415 - for runs that hang

    if status := ras_status():
        with contextlib.suppress(OSError):
            path.write_bytes(status)


def _one_line(error: Exception) -> str:
    return "; ".join(line.strip() for line in str(error).splitlines() if line.strip())[:_MOST_WORDS]


def _give_up(world: World, journals: Sequence[Journal], step: str, error: Exception, *, stays_s: float) -> None:
    """Tell why in the records, if they can still be written, and on standard error; then end every rank.

    `stays_s`: how long it leaves to the launching side, which sees all ranks, to say which one the others wait for.
    """
    words = _one_line(error)
    cause = words if type(error) in (RuntimeError, _core.Stalled) else f"{type(error).__name__}: {words}"
    for journal in journals:
        try:
            journal.write(Failed(step=step, cause=cause))
        except OSError as unwritten:
            print(f"busbw rank {world.rank} cannot write its records: {unwritten}", file=sys.stderr)
    if stays_s > 0 and journals:
        _keep_ras_status(journals[0].path.with_name(layout.RAS_FILE))
    time.sleep(stays_s)
    print(f"busbw rank {world.rank} failed at {step}: {cause}", file=sys.stderr)
    import traceback  # noqa: PLC0415 - it takes 2 ms of every rank

    traceback.print_exception(error, file=sys.stderr)
    sys.stderr.flush()
    world.abort(ABORT_CODE)


# Launchers forward the first; batch systems and launchers send the second before they kill.
_SIGNALS = (signal.SIGUSR1, signal.SIGTERM)
_LOOK_S = 5.0
_ALONE_STALLS = 2
_ALONE_S = 60.0
_EXIT_CODE = 128 + signal.SIGTERM


class StopRequests:
    """Listens from the start of a rank, before any library makes threads of its own.

    A thread waits for the signals, which all others block: a rank that is inside a call of MPI for long is told too.
    The measuring loops let go of Python's lock, and nothing wakes this thread but a signal, and a look now and then
    whether anything moves at all: a host that is cut off has nobody who would end its ranks.
    """

    def __init__(self, grace_s: float, stall_s: float) -> None:
        self._grace_s = grace_s
        # The launching side, which can say more, gives up first.
        self._alone_s = _ALONE_STALLS * stall_s + _ALONE_S
        self._asked = False
        self._obey: Callable[[], None] | None = None
        self._progress: Callable[[], bytes] = bytes
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        threading.Thread(target=self._listen, daemon=True).start()

    def tell(self, obey: Callable[[], None], progress: Callable[[], bytes]) -> None:
        """Have `obey` called at each request, at once if there was one; `progress` differs when there is any."""
        self._progress = progress
        self._obey = obey
        if self._asked:
            obey()

    def _listen(self) -> None:
        seen, seen_s = b"", time.monotonic()
        while True:
            info = signal.sigtimedwait(_SIGNALS, _LOOK_S)
            now = self._progress()
            if now != seen:
                seen, seen_s = now, time.monotonic()
            if time.monotonic() - seen_s > self._alone_s:
                _leave(f"saw nothing move for {self._alone_s:.0f} s, and was not ended")
            if info is None:
                continue
            self._asked = True
            if self._obey is not None:
                self._obey()
            if info.si_signo == signal.SIGTERM:
                self._end_after_grace()

    def _end_after_grace(self) -> None:
        """Leave the rank its time to write down what it has, then end it, whatever it waits for."""
        again = signal.sigtimedwait((signal.SIGTERM,), self._grace_s)
        _leave("was told to end twice" if again is not None else f"did not stop within {self._grace_s:g} s of SIGTERM")


def _leave(why: str) -> NoReturn:
    sys.stderr.write(f"busbw: this rank {why}\n")
    sys.stderr.flush()
    os._exit(_EXIT_CODE)
