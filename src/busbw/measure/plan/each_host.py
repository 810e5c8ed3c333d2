"""Commands that start one program of ours on each host of a list or an allocation, through the launchers of runs."""

from typing import NamedTuple

from busbw.base.errors import InputError
from busbw.machine.capture import host as capture
from busbw.measure.backends import registry
from busbw.measure.launchers.hosts import visit_each
from busbw.measure.plan.hosts import check_started_once, hosts_of, said
from busbw.measure.plan.placing import launcher_of
from busbw.measure.plan.surroundings import looked_at, surroundings_of
from busbw.model.launch import Start
from busbw.model.plan import Job, Placement, Program
from busbw.model.request import Request

# Ranks are started by MPI's words, whatever the program is.
_BACKEND = "native-mpi"


class EachHost(NamedTuple):
    """The hosts in their order, and the commands: each with the hosts that it reaches."""

    hosts: tuple[str, ...]
    jobs: tuple[tuple[Job, tuple[str, ...]], ...]
    notes: tuple[str, ...]


def on_each_host(request: Request, arguments: tuple[str, ...], directory: str) -> EachHost:
    """Return how `python -P -m busbw ARGUMENTS` is started once on each host of a request.

    Raises InputError where the request names no hosts, and for what the launcher cannot do.
    """
    check_started_once()
    host = capture.host()
    allocation = hosts_of(request, host.name)
    if allocation is None:
        raise InputError("no hosts are named", hint="--hosts n[0-3], or --nodes 4 inside an allocation")
    backend = registry.find(_BACKEND)
    seen = looked_at(request, surroundings_of(host, allocation), backend, ())
    chosen = launcher_of(request, seen, backend)
    launcher = chosen.launcher
    hosts = tuple(each.name for each in allocation.hosts)
    start = Start(
        program=Program(argv=(seen.python, "-P", "-m", "busbw", *arguments), env=()),
        placement=Placement(
            ranks=len(hosts), hosts=hosts, ranks_of_hosts=(1,) * len(hosts), binding="none", oversubscribed=False
        ),
        directory=directory,
        mpi=seen.mpi,
        slurm=seen.slurm,
        launcher_program=seen.launchers.get(launcher.program or launcher.name),
        python=seen.python,
        interface=request.interface,
        remote_shell=request.remote_shell,
        as_root=seen.as_root,
        measuring_s=request.time_limit_s,
        stall_s=request.stall_s,
    )
    one = launcher.visit_one or launcher.visit
    if launcher.visit is not None and launcher.visit_one is None and launcher.system is not None:
        # A step of the batch system reaches all of them at once.
        jobs: tuple[tuple[Job, tuple[str, ...]], ...] = ((launcher.visit(start), hosts),)
    elif one is not None:
        jobs = tuple((job, (name,)) for job, name in zip(visit_each(one, start), hosts, strict=True))
    else:
        raise InputError(
            f"{launcher.name} starts nothing beside ranks", where=f"--launcher {launcher.name}", hint="mpirun, srun"
        )
    return EachHost(hosts=hosts, jobs=jobs, notes=said(allocation, chosen))
