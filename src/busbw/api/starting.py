"""The commands of a run: the one that starts the ranks, and those that look after them on other hosts."""

from dataclasses import dataclass

import msgspec

from busbw.api.request import Request
from busbw.errors import InputError
from busbw.launchers import mpirun, srun
from busbw.launchers.visiting import visit_each, visit_here
from busbw.model.launch import Start
from busbw.model.plan import Job, Program

# By name: what starts ranks on several hosts.
_LAUNCHERS = {mpirun.name: mpirun, srun.name: srun}
LAUNCHERS = tuple(_LAUNCHERS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Jobs:
    """The commands of one run; without other hosts there is nobody to visit."""

    job: Job
    visit: Job | None = None
    visit_each: tuple[Job, ...] = ()


def launcher_of(request: Request, *, has_slurm: bool, in_slurm: bool) -> str:
    """Return who starts the ranks on several hosts. Raises InputError for a launcher that there is not."""
    if request.launcher is None:
        return srun.name if has_slurm and in_slurm else mpirun.name
    if request.launcher not in _LAUNCHERS:
        raise InputError(
            f"there is no launcher {request.launcher!r} for several hosts", hint="one of: " + ", ".join(_LAUNCHERS)
        )
    if request.launcher == srun.name and not has_slurm:
        raise InputError("there is no srun on PATH", where="--launcher srun", hint="--launcher mpirun")
    return request.launcher


def jobs_here(job: Job, visitor: Program) -> Jobs:
    """Return the commands of a run on this host alone: a look at it needs no launcher."""
    return Jobs(job=job, visit=visit_here(visitor))


def jobs(launcher: str, start: Start, visiting: Start, visitor: Program) -> Jobs:
    """Return the commands of a run on the hosts of its placement.

    `visiting`: the start outside of any container; `visitor`: what is started once on each host.

    Raises InputError for what the launcher cannot do.
    """
    module = _LAUNCHERS[launcher]
    visiting = msgspec.structs.replace(visiting, program=visitor, options=())
    return Jobs(
        job=module.job(start),
        visit=module.visit(visiting),
        visit_each=visit_each(module.visit, visiting),
    )
