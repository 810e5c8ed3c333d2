"""The commands of a run: the one that starts the ranks, and those that look after them on other hosts."""

from dataclasses import dataclass

import msgspec

from busbw.measure.launchers import aprun, flux, jsrun, mpirun, srun
from busbw.measure.launchers.visiting import visit_each, visit_here
from busbw.model.launch import Start
from busbw.model.plan import Job, Program

# By name: what starts ranks on several hosts, and what looks after them there, on all at once and on each alone. An
# application of ALPS has its nodes to itself until ALPS has ended it.
_JOBS = {each.name: each.job for each in (mpirun, srun, flux, jsrun, aprun)}
_VISITS = {each.name: each.visit for each in (mpirun, srun, flux)}
_VISITS_OF_ONE = {**_VISITS, jsrun.name: jsrun.visit}
LAUNCHERS = tuple(_JOBS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Jobs:
    """The commands of one run; without other hosts there is nobody to visit."""

    job: Job
    visit: Job | None = None
    visit_each: tuple[Job, ...] = ()


def jobs_here(job: Job, visitor: Program) -> Jobs:
    """Return the commands of a run on this host alone: a look at it needs no launcher."""
    return Jobs(job=job, visit=visit_here(visitor))


def jobs(launcher: str, start: Start, visiting: Start, visitor: Program) -> Jobs:
    """Return the commands of a run on the hosts of its placement.

    `visiting`: the start outside of any container; `visitor`: what is started once on each host.

    Raises InputError for what the launcher cannot do.
    """
    visiting = msgspec.structs.replace(visiting, program=visitor, options=())
    all_at_once, one = _VISITS.get(launcher), _VISITS_OF_ONE.get(launcher)
    return Jobs(
        job=_JOBS[launcher](start),
        visit=all_at_once(visiting) if all_at_once is not None else None,
        visit_each=visit_each(one, visiting) if one is not None else (),
    )
