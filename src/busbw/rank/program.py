"""What one rank does from its start to its end."""

import os
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from busbw import _core, codec, layout
from busbw.model.event import EVENT_PREFIX, Ending, Event, Measuring, PointEnded, Preparing
from busbw.model.plan import Plan
from busbw.model.record import Failed, Finished, Hello
from busbw.model.sweep import points_of
from busbw.rank import rates
from busbw.rank.budget import Budget
from busbw.rank.exchange import Buffers
from busbw.rank.heart import Heart
from busbw.rank.journal import Journal
from busbw.rank.point import Bench, measure_point
from busbw.rank.world import World

ABORT_CODE = 3
WRONG_SIZE_CODE = 4


def main(arguments: Sequence[str]) -> int:
    """Measure the points of the plan in a run directory. Arguments: the directory, the attempt, points to leave out."""
    directory, attempt = Path(arguments[0]), int(arguments[1])
    done = frozenset(int(number) for number in arguments[2].split(",") if number)
    plan = codec.decode((directory / layout.PLAN_FILE).read_bytes(), Plan, where=layout.PLAN_FILE)
    world = World()
    if world.ranks != plan.placement.ranks:
        print(
            f"busbw rank {world.rank}: {world.ranks} rank{'s' if world.ranks > 1 else ''} started, "
            f"{plan.placement.ranks} planned; loaded {world.version} from {world.core.library}",
            file=sys.stderr,
        )
        world.abort(WRONG_SIZE_CODE)
    heart: Heart | None = None
    journal: Journal | None = None
    try:
        raw = directory / layout.RAW_DIRECTORY
        heart = Heart(raw / layout.heartbeat_name(world.rank))
        journal = Journal(raw / layout.records_name(world.rank, attempt))
        _run(plan, world, heart, journal, done)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other ranks must not wait for this one
        _give_up(world, journal, heart.step if heart is not None else "starting", error)
    return 0


def _run(plan: Plan, world: World, heart: Heart, journal: Journal, done: frozenset[int]) -> None:
    say = _speaker(world)
    journal.write(_hello(plan, world))
    say(Preparing(what="memory copies and loopback streams"))
    heart.enter("machine rates")
    _measure_rates(plan, world, journal)
    buffers = Buffers(world, plan.sweeps)
    bench = Bench(plan=plan, world=world, heart=heart, buffers=buffers, shared_clock=world.clock_identity())
    run_ends_s = time.monotonic() + plan.sampling.time_limit_s
    reason: Literal["complete", "time", "stopped"] = "complete"
    todo = [(number, point) for number, point in enumerate(points_of(plan.sweeps)) if number not in done]
    for place, (number, point) in enumerate(todo):
        budget = Budget.for_next(run_ends_s, len(todo) - place)
        over, stop = world.from_first([int(budget.run_left_s <= 0), int(heart.stop_asked)])
        if over or stop:
            reason = "stopped" if stop else "time"
            break
        measured = measure_point(bench, number, point, budget, _reporter(say, number, budget))
        heart.enter("writing")
        journal.write(measured)
        world.barrier()
        say(PointEnded(point=number, samples=len(measured.duration_ns), median_s=None, ended=measured.ended))
        if measured.ended == "stopped":
            reason = "stopped"
            break
    journal.write(Finished(reason=reason))
    heart.enter("done")
    world.barrier()
    say(Ending(reason=reason))


def _measure_rates(plan: Plan, world: World, journal: Journal) -> None:
    largest_bytes = max(size_bytes for sweep in plan.sweeps for size_bytes in sweep.sizes_bytes)
    if not world.one_host:
        return
    for record in (*rates.copied(world, largest_bytes), *rates.streamed(world)):
        journal.write(record)


def _hello(plan: Plan, world: World) -> Hello:
    quality = _core.clock_quality(10_000)
    small = {world.reducer(sweep.dtype, sweep.op).by for sweep in plan.sweeps if sweep.dtype in ("float16", "bfloat16")}
    return Hello(
        rank=world.rank,
        ranks=world.ranks,
        host=socket.gethostname(),
        process_id=os.getpid(),
        cpus=tuple(sorted(os.sched_getaffinity(0))),
        mpi_version=world.version,
        mpi_library=world.core.library,
        handle_bytes=world.handle_bytes,
        thread_level=world.thread_level,
        interposed=tuple(world.core.interposed),
        small_float_reductions="busbw" if "busbw" in small else "mpi",
        clock_cost_ns=quality.cost_ns,
        clock_step_ns=quality.step_ns,
    )


def _speaker(world: World) -> Callable[[Event], None]:
    """Return what sends progress to the launching side: a line of standard output from rank 0, nothing elsewhere."""

    def say(event: Event) -> None:
        if world.rank == 0:
            sys.stdout.write(EVENT_PREFIX + codec.encode(event).decode() + "\n")
            sys.stdout.flush()

    return say


def _reporter(
    say: Callable[[Event], None], number: int, budget: Budget
) -> Callable[[str, int, float | None, float | None], None]:
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


def _give_up(world: World, journal: Journal | None, step: str, error: Exception) -> None:
    """Tell why on standard error and, if it can still be written, in the records; then end every rank."""
    cause = f"{type(error).__name__}: {error}"
    print(f"busbw rank {world.rank} failed at {step}: {cause}", file=sys.stderr)
    traceback.print_exception(error, file=sys.stderr)
    sys.stderr.flush()
    if journal is not None:
        try:
            journal.write(Failed(step=step, cause=cause))
        except OSError as unwritten:
            print(f"busbw rank {world.rank} cannot write its records: {unwritten}", file=sys.stderr)
    world.abort(ABORT_CODE)
