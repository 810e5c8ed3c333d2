"""What to set for a job, on a platform or on this host."""

from typing import get_args

from busbw.api.machine import detect_here
from busbw.base.collectives import COLLECTIVES, NCCL_COLLECTIVES, not_a_collective
from busbw.base.errors import InputError
from busbw.base.text import maybe
from busbw.env.recommend import recommend
from busbw.env.recommend.host import platform_of_host
from busbw.machine.named import hardware_here, platform, platforms
from busbw.model.platform import Platform
from busbw.model.recommendation import Recommendation
from busbw.model.request import Goal

GOALS: tuple[Goal, ...] = get_args(Goal)


def recommendation(
    name: str | None,
    *,
    nodes: int = 2,
    collective: str | None = None,
    size_bytes: int | None = None,
    goal: str = "bandwidth",
    follow: str | None = None,
    nccl: str | None = None,
    mpi: str | None = None,
) -> Recommendation:
    """Return the settings for a job on the platform called `name`; None: on whatever this host is.

    `mpi`: settings for this MPI too.
    Raises InputError for an unknown platform, MPI, goal, collective, version or source.
    """
    if collective is not None and collective not in COLLECTIVES:
        raise not_a_collective(collective, NCCL_COLLECTIVES)
    if collective is not None and collective not in NCCL_COLLECTIVES:
        raise InputError(f"NCCL has no {collective}", hint=f"--collective {NCCL_COLLECTIVES[0]}")
    return recommend(
        platform(name).platform if name is not None else platform_here(),
        nodes=nodes,
        collective=collective,
        size_bytes=size_bytes,
        goal=_goal(goal),
        follow=follow,
        nccl=nccl,
        mpi_name=mpi,
        siblings=tuple(each.platform for each in platforms()),
    )


def platform_here() -> Platform:
    """Return the platform this host is, or, where nobody has described it, what its hardware shows of one."""
    found = detect_here()
    if found.platform is not None:
        return platform(found.platform).platform
    return platform_of_host(hardware_here())


def _goal(text: str) -> Goal:
    for goal in GOALS:
        if goal == text:
            return goal
    raise InputError(f"{text[:80]!r} is not a goal{maybe(text[:80], GOALS)}", hint=f"goals: {', '.join(GOALS)}")
