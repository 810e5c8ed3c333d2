"""Plan, execute, store, load: the main job."""

import dataclasses
import shlex
from pathlib import Path

from busbw.base import layout
from busbw.base.errors import InputError
from busbw.base.hostlist import compressed
from busbw.base.units import format_size
from busbw.machine.capture import allocation as batch_systems
from busbw.machine.capture import host as capture
from busbw.measure.backends import registry
from busbw.measure.execute.launch import Execution, Listener
from busbw.measure.launchers.registry import known
from busbw.measure.plan.hosts import check_started_once
from busbw.model.plan import SMALL_NCCL_BYTES, Plan, points_of
from busbw.model.run import Measurement, Outcome, Run
from busbw.store import directory as directories
from busbw.store import outcome as outcomes
from busbw.store import raw
from busbw.store.directory import read_plan
from busbw.store.files import is_file


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
    check_started_once()
    plan = directories.read_plan(directory)
    check_hosts(plan, directory)
    return go_on(plan, directory, finished(plan, directory), listener)


def go_on(plan: Plan, directory: Path, done: frozenset[int], listener: Listener) -> Run:
    """Start the plan of a run directory again, but for the points that are done."""
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
    from busbw.measure.execute import run as execution  # noqa: PLC0415 - planning needs none of it

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
    carry_out = _launched if registry.find(plan.backend).is_ours else _stepped
    ended = carry_out(plan, directory, done, listener)
    outcomes.write(
        directory, Outcome(**dataclasses.asdict(ended), counters_before=before, counters_after=capture.counters())
    )
    from busbw.api.loading import load  # noqa: PLC0415 - importing it takes as long as starting a rank

    return load(directory)


_MOST_STARTS = 1000


def check_hosts(plan: Plan, directory: Path) -> None:
    """Raise InputError where the hosts of a plan are not those that a run would have now."""
    if plan.placement.ranks_of_hosts:
        _check_several(plan, directory)
        return
    here = capture.host()
    if here.name not in plan.placement.hosts:
        raise InputError(
            f"this run belongs to {', '.join(plan.placement.hosts)}, and this is {here.name}",
            where=str(directory),
            hint="resume it there",
        )


def place_of(directory: Path) -> tuple[bool, Path]:
    """Return whether a folder holds a run that can go on with these hosts, and else a folder for a new one.

    A job that a batch system starts again may be given other hosts: what they measure is another run.
    """
    place = directory
    for number in range(1, _MOST_STARTS):
        if not is_file(place / layout.PLAN_FILE):
            return False, place
        plan = read_plan(place)
        try:
            check_hosts(plan, place)
        except InputError:
            place = directory.with_name(f"{directory.name}.again-{number}")
            continue
        return True, place
    raise InputError(f"{_MOST_STARTS} runs lie beside each other already", where=str(directory))


def _check_several(plan: Plan, directory: Path) -> None:
    found = batch_systems.allocation()
    names = compressed(plan.placement.hosts)
    if found is None:
        launcher = known(plan.launcher)
        system = launcher.system if launcher is not None else None
        if system is not None:
            raise InputError(
                f"this run was started by {plan.launcher} on {names}, and this is not a job of {system.title}",
                where=str(directory),
                hint="resume it inside a job on these hosts"
                + (f": salloc --nodelist={names}" if system.kind == "slurm" else ""),
            )
        return
    missing = sorted(set(plan.placement.hosts) - {host.name for host in found.hosts})
    if missing:
        raise InputError(
            f"this run belongs to {names}, and {compressed(missing)} is not among the hosts of this job ({found.how})",
            where=str(directory),
            hint="measurements of other hosts are another run: start it anew, without --resume",
        )


def finished(plan: Plan, directory: Path) -> frozenset[int]:
    """Return the points, or of programs of the user the steps, that need not be measured again.

    Raises InputError when that is all, or in another folder than the plan was made for.
    """
    backend = registry.find(plan.backend)
    where: Path | None
    if backend.is_ours:
        from busbw.api.loading import parse  # noqa: PLC0415 - it brings what judges, and a first start needs none

        parsed, _unreadable = parse(plan, directory)
        done = frozenset(one.point for one in parsed.measurements if _is_done(plan, one))
        every, where = len(points_of(plan.sweeps)), Path(plan.job.argv[-1])
    else:
        from busbw.measure.backends import foreign  # noqa: PLC0415 - as above

        done = foreign.finished(foreign.as_foreign(backend), plan, raw.read_printed(directory))
        every, where = len(plan.steps), _folder_of_steps(plan)
    if len(done) == every:
        raise InputError("nothing is missing in this run", where=str(directory), hint=f"busbw show {directory.name}")
    if where is not None and where.resolve() != directory.resolve():
        raise InputError(
            f"this run was planned for another folder, {where}, and its command is carried out word for word",
            where=str(directory),
            hint=f"move it back: mv {shlex.quote(str(directory))} {shlex.quote(str(where))}",
        )
    return done


def _folder_of_steps(plan: Plan) -> Path | None:
    """Return the run directory that steps write their reports to; None where none does."""
    for step in plan.steps:
        ending = f"/{layout.RAW_DIRECTORY}/{step.report}"
        for word in step.job.argv if step.report is not None else ():
            if word.endswith(ending):
                return Path(word.removesuffix(ending))
    return None


def _stepped(plan: Plan, directory: Path, done: frozenset[int], listener: Listener) -> Execution:
    """Carry out the steps that are not done. Raises RunError when one cannot be started or stored."""
    from busbw.measure.backends.foreign import as_foreign  # noqa: PLC0415 - as above
    from busbw.measure.execute import foreign as execution  # noqa: PLC0415 - as above

    backend = as_foreign(registry.find(plan.backend))
    try:
        return execution.execute(plan, directory, raw.attempts(directory), done, listener, backend)
    finally:
        raw.withhold(directory)
