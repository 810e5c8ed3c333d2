"""Where runs are kept and how one is found again: by path, by the beginning of its name, or as the last one."""

import os
from pathlib import Path

from busbw.base import layout
from busbw.base.collectives import COLLECTIVES, DTYPE_BYTES, OPERATIONS
from busbw.base.errors import InputError, RunError
from busbw.model import codec
from busbw.model.plan import PLAN_SCHEMA, Groups, Plan
from busbw.model.train.replay import StepPlan
from busbw.store import files
from busbw.store.files import read_whole, write_whole

_MAX_PLAN_BYTES = 64 * 2**20
_HINT = "see what there is with: busbw runs"


def root() -> Path:
    """Return the folder runs go to: $BUSBW_RUNS, else busbw/runs in the user's data folder (XDG)."""
    chosen = os.environ.get("BUSBW_RUNS")
    if chosen:
        return Path(chosen)
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(data, "busbw", "runs")


def create(plan: Plan, directory: Path) -> None:
    """Make a run directory with its plan. Raises InputError when it cannot be made or holds something already."""
    try:
        if directory.exists() and any(directory.iterdir()):
            raise InputError(
                f"{directory} is not empty",
                hint="choose another folder with -o, or go on with: --resume " + str(directory),
            )
        (directory / layout.RAW_DIRECTORY).mkdir(parents=True)
        for name, target in plan.job.links:
            (directory / name).parent.mkdir(exist_ok=True)
            (directory / name).symlink_to(target)
    except OSError as error:
        raise InputError(
            f"cannot make the run's folder: {error.strerror or error}",
            where=str(directory),
            hint="choose another folder with -o",
        ) from error
    steps = (step.job for step in plan.steps)
    visits = (plan.visit,) if plan.visit is not None else ()
    files.write((file for job in (plan.job, *steps, *visits, *plan.visit_each) for file in job.files), directory)
    write_whole(directory / layout.PLAN_FILE, codec.encode_pretty(plan))


def read_plan(directory: Path) -> Plan:
    """Return the plan of a run directory."""
    path = directory / layout.PLAN_FILE
    content = read_whole(path, _MAX_PLAN_BYTES)
    codec.check_schema(content, PLAN_SCHEMA, where=str(path))
    plan = codec.decode(content, Plan, where=str(path))
    for sweep in plan.sweeps:
        known = sweep.collective in COLLECTIVES and sweep.dtype in DTYPE_BYTES and sweep.op in OPERATIONS
        if not known or not sweep.sizes_bytes or min(sweep.sizes_bytes) < 1 or not _is_grouped(sweep.within):
            raise _unreadable(f"{sweep.collective!r} of {sweep.dtype!r}, {sweep.op!r}", path)
    if plan.step is not None and not _is_step(plan.step, len(plan.sweeps)):
        raise _unreadable(f"a step of {len(plan.step.calls)} kinds of call, and {len(plan.sweeps)} sweeps", path)
    return plan


def _unreadable(what: str, path: Path) -> InputError:
    return InputError(
        f"not a plan this busbw can read: {what}", where=str(path), hint="read it with the busbw that made it"
    )


def _is_grouped(groups: Groups | None) -> bool:
    return groups is None or (len(groups.sizes) == len(groups.strides) and min((*groups.sizes, *groups.strides, 1)) > 0)


def _is_step(step: StepPlan, sweeps: int) -> bool:
    """Whether each kind of call has its sweep, and can be one."""
    calls = all(
        call.collective in COLLECTIVES and min(call.calls, call.ranks, call.groups, call.size_bytes) > 0
        for call in step.calls
    )
    return calls and len(step.calls) == sweeps > 0 and step.asked.scale_down > 0


def reopen(directory: Path) -> None:
    """Forget what an earlier attempt came to; raw records stay. Raises RunError when that is not allowed.

    A result that an interrupted resume left behind would hide what was measured since.
    """
    try:
        for name in (layout.RUN_FILE, layout.OUTCOME_FILE):
            (directory / name).unlink(missing_ok=True)
    except OSError as error:
        raise RunError(
            f"cannot write into the run's folder: {error.strerror or error}",
            where=str(directory),
            hint="copy the run to another folder and go on there",
        ) from error


def find(name: str, base: Path) -> Path:
    """Return the run directory that `name` means: a path, `last`, or the beginning of one run's name.

    Raises InputError when there is none or more than one.
    """
    path = Path(name)
    if _is_run(path):
        return path
    if path.name == layout.RUN_FILE and _is_run(path.parent):
        return path.parent
    known = directories(base)
    if name == "last":
        if not known:
            raise InputError("there is no run yet", where=str(base), hint="make one with: busbw run")
        return known[-1]
    matching = [directory for directory in known if directory.name.startswith(name)]
    exact = [directory for directory in matching if directory.name == name]
    if len(exact or matching) == 1:
        return (exact or matching)[0]
    if matching:
        names = ", ".join(directory.name for directory in matching[:3])
        raise InputError(f"{name!r} means {len(matching)} runs: {names}", hint="write more of the name")
    raise InputError(f"no run {name!r}", where=str(base), hint=_HINT)


def directories(base: Path) -> list[Path]:
    """Return every run directory under `base`, oldest first (names begin with the time)."""
    try:
        entries = sorted(base.iterdir())
    except OSError:
        return []
    return [entry for entry in entries if _is_run(entry)]


def _is_run(path: Path) -> bool:
    try:
        return (path / layout.PLAN_FILE).is_file()
    except (OSError, ValueError):
        # A name too long for the file system, or with a null byte in it, is not a run's.
        return False
