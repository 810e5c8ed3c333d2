"""Whether a run can go on from where busbw is now: its command is carried out word for word, on its own hosts."""

from pathlib import Path

from busbw.base import layout
from busbw.base.errors import InputError
from busbw.base.hostlist import compressed
from busbw.machine.capture import allocation as batch_systems
from busbw.machine.capture import host as capture
from busbw.measure.plan.choosing import SYSTEMS
from busbw.model.plan import Plan
from busbw.store.directory import read_plan

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
        if not (place / layout.PLAN_FILE).is_file():
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
        system = SYSTEMS.get(plan.launcher)
        if system is not None:
            raise InputError(
                f"this run was started by {plan.launcher} on {names}, and this is no job of {system.title}",
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
