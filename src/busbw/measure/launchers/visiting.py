"""A look at each host of a run by a start of its own."""

from collections.abc import Callable

import msgspec

from busbw.measure.launchers import times
from busbw.model.launch import Start
from busbw.model.plan import Job, Program


def visit_each(visit: Callable[[Start], Job], start: Start) -> tuple[Job, ...]:
    """Return the `visit` of a launcher to each host alone: one that is gone does not keep the others from answering.

    Raises InputError as `visit` does.
    """
    return tuple(visit(_only(start, host)) for host in start.placement.hosts)


def _only(start: Start, host: str) -> Start:
    placement = msgspec.structs.replace(start.placement, ranks=1, hosts=(host,), ranks_of_hosts=(1,))
    return msgspec.structs.replace(start, placement=placement, per_process=1)


def visit_here(visitor: Program) -> Job:
    """Return the look at this host, which needs no launcher."""
    return Job(argv=visitor.argv, env=visitor.env, timeout_s=times.VISIT_S, stall_s=times.VISIT_S)
