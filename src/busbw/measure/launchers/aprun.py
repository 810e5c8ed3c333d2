"""`aprun` of Cray's ALPS, inside a job of PBS on an XC. Never run here: written from its manual.

https://www.hpe.com/psnow/resources/ebooks/a00114008en_us_v2/Run_Applications_Using_the_aprun_Command.html, and the
manual page at http://www.nersc.gov/users/computational-systems/hopper/running-jobs/aprun/aprun-man-page/
"""

import re

from busbw.base.errors import InputError
from busbw.measure.launchers import variables
from busbw.measure.launchers.hosts import binding_program
from busbw.measure.launchers.launcher import BatchSystem, Launchers, RankLauncher, words_of_job
from busbw.measure.launchers.srun import is_cray
from busbw.measure.launchers.variables import Option, processes_of_each_host, step
from busbw.model.launch import Allocation, Start
from busbw.model.machine import MpiLibrary
from busbw.model.plan import Job
from busbw.model.request import Request

name = "aprun"

# It sets these.
_OWN = ("ALPS_", "APRUN_", "PMI_")
# ALPS knows nodes by number, and their hosts are called so.
_NODE = re.compile(r"nid0*(\d{1,9})(?:\..*)?")
_BINDINGS = {"core": "cpu", "numa": "numa_node", "none": "none", "masks": "none"}


def job(start: Start) -> Job:
    """Return the command that starts the ranks, in the folder that it is started in.

    Raises InputError for what aprun cannot do.
    """
    if start.launcher_program is None:
        raise InputError("there is no aprun here", hint="start it inside a job of an XC, or take --launcher mpirun")
    _check_mpi(start)
    placement = start.placement
    if placement.oversubscribed:
        raise InputError("aprun starts no more ranks on a node than it has CPUs", hint="--ranks-per-node N")
    each = processes_of_each_host(start, name, "--ranks-per-node N")
    is_free = placement.binding in ("none", "masks")
    options: tuple[Option, ...] = (
        # It would copy the program to the nodes, and an interpreter that starts from the copy misses its libraries.
        ("-b",),
        # Its line of resources at the end would stand among what rank 0 prints.
        ("-q",),
        ("-n", str(each * len(placement.hosts))),
        ("-N", str(each)),
        # All hardware threads are the ranks', not only the first of each core.
        *((("-j", "0"),) if is_free else ()),
        *((("-cc", _BINDINGS[placement.binding]),) if placement.binding in _BINDINGS else ()),
        *((("-L", _nodes(start)),) if placement.is_spread and start.hosts_are_named else ()),
    )
    # Ranks are numbered one node after the other, each with as many.
    files, binding = binding_program(start, "ALPS_APP_PE", among=each)
    before = (*variables.adjusting(start, extended=True), *binding)
    return step(start, name, (start.launcher_program,), options, refused=_OWN, before=before, files=files)


def _check_mpi(start: Start) -> None:
    if start.mpi is not None and not is_cray(start.mpi):
        raise InputError(
            f"aprun introduces ranks to each other for Cray MPICH, and this is {start.mpi.family}: they would start as "
            "so many runs of one rank each",
            where=start.mpi.library,
            hint="load cray-mpich",
        )


def _nodes(start: Start) -> str:
    """Return the numbers of the nodes. Raises InputError for hosts whose names are not those of nodes."""
    numbers = []
    for host in start.placement.hosts:
        match = _NODE.fullmatch(host)
        if match is None:
            raise InputError(
                f"aprun takes nodes by number, as nid00012 has it, and cannot tell that of {host}",
                hint="name the nodes: --hosts nid000[12-15]",
            )
        numbers.append(int(match[1]))
    return ",".join(map(str, numbers))


def _why_not(_request: Request, allocation: Allocation, mpi: MpiLibrary, _there: Launchers) -> str | None:
    if not is_cray(mpi):
        return f"it introduces ranks to each other for Cray MPICH, and this is {mpi.family}"
    if any(_NODE.fullmatch(host.name) is None for host in allocation.hosts):
        return "it takes nodes by number, and these names do not tell them; --launcher aprun --hosts nid000[12-15] does"
    return None


# An application of ALPS has its nodes to itself until ALPS has ended it: nobody visits them.
LAUNCHER = RankLauncher(
    name=name,
    job=job,
    system=BatchSystem("pbs", "PBS", "start busbw inside of a job of PBS, or take --launcher mpirun"),
    program="aprun",
    is_tried=False,
    why_not=_why_not,
    words=words_of_job(job, usual_mpi="cray-mpich"),
)
