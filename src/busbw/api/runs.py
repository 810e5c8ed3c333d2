"""Plan, execute, store, load: the main job."""

import dataclasses
import shlex
from pathlib import Path

from busbw.base.errors import InputError
from busbw.base.units import format_size
from busbw.machine.capture import host as capture
from busbw.measure.execute import run as execution
from busbw.measure.execute.execution import Execution, Listener
from busbw.measure.plan.hosts import check_started_once
from busbw.model.measurement import Measurement
from busbw.model.plan import Plan
from busbw.model.run import Outcome, Run
from busbw.model.sweep import SMALL_NCCL_BYTES, points_of
from busbw.store import directory as directories
from busbw.store import outcome as outcomes
from busbw.store import raw


def start(plan: Plan, directory: Path, listener: Listener) -> Run:
    """Carry out a plan in a new run directory and return what came of it.

    Raises InputError when the directory cannot be made, RunError when nothing could be started or stored.
    """
    directories.create(plan, directory)
    return _carry_out(plan, directory, frozenset(), listener)


def resume(directory: Path, listener: Listener) -> Run:
    """Measure what is missing in a run directory, with its own plan, and return the whole.

    Raises InputError when nothing is missing, when this is another machine or folder than the plan was made for, and
    where a launcher started busbw several times.
    """
    from busbw.api.loading import rebuild  # noqa: PLC0415 - as below
    from busbw.api.resuming import check_hosts  # noqa: PLC0415 - the same

    check_started_once()
    plan = directories.read_plan(directory)
    check_hosts(plan, directory)
    if plan.steps:
        from busbw.api import foreign_run  # noqa: PLC0415 - for programs of others alone

        done = foreign_run.finished(plan, directory)
        directories.reopen(directory)
        return _carry_out(plan, directory, done, listener)
    run = rebuild(directory)
    done = frozenset(one.point for one in run.measurements if _is_done(plan, one))
    if len(done) == len(points_of(plan.sweeps)):
        raise InputError("nothing is missing in this run", where=str(directory), hint=f"busbw show {directory.name}")
    planned = Path(plan.job.argv[-1])
    if planned.resolve() != directory.resolve():
        raise InputError(
            f"this run was planned for another folder, {planned}, and its command is carried out word for word",
            where=str(directory),
            hint=f"move it back: mv {shlex.quote(str(directory))} {shlex.quote(str(planned))}",
        )
    directories.reopen(directory)
    return _carry_out(plan, directory, done, listener)


def _is_done(plan: Plan, measurement: Measurement) -> bool:
    """Whether a point needs no further start: time or a person ended the others before they had enough samples."""
    if measurement.ended in ("interval", "samples", "wrong"):
        return True
    return measurement.ended == "time" and measurement.samples >= plan.sampling.min_samples


def _launched(plan: Plan, directory: Path, done: frozenset[int], listener: Listener) -> Execution:
    """Start our own ranks, and again for small points as often as the plan says; not after one that failed.

    What is resumed is started once.
    """
    ended = execution.execute(plan, directory, raw.attempts(directory), done, listener)
    large = {number for number, point in enumerate(points_of(plan.sweeps)) if point.size_bytes >= SMALL_NCCL_BYTES}
    for launch in range(2, (plan.sampling.launches if not done else 1) + 1):
        if ended.ended not in ("complete", "time"):
            break
        listener.remark(
            f"start {launch} of {plan.sampling.launches}: sizes below {format_size(SMALL_NCCL_BYTES)} again"
        )
        again = execution.execute(plan, directory, raw.attempts(directory), frozenset(large), listener)
        # What the first start had no time for is missing whatever the others do.
        how = ended.ended if again.ended == "complete" else again.ended
        ended = dataclasses.replace(again, ended=how, wall_s=ended.wall_s + again.wall_s)
    return ended


def _carry_out(plan: Plan, directory: Path, done: frozenset[int], listener: Listener) -> Run:
    before = capture.counters()
    if plan.steps:
        from busbw.api import foreign_run  # noqa: PLC0415 - the same

        ended = foreign_run.execute(plan, directory, done, listener)
    else:
        ended = _launched(plan, directory, done, listener)
    outcomes.write(
        directory, Outcome(**dataclasses.asdict(ended), counters_before=before, counters_after=capture.counters())
    )
    from busbw.api.loading import load  # noqa: PLC0415 - importing it takes as long as starting a rank

    return load(directory)
