"""`jsrun` of IBM's Job Step Manager, inside a job of LSF as on Summit. Never run here: written from its manual.

Resource sets: https://docs.olcf.ornl.gov/systems/summit_user_guide.html, options and explicit resource files:
https://www.ibm.com/support/knowledgecenter/en/SSWRJV_10.1.0/jsm/jsrun.html and erf_format.html beside it.
"""

from busbw.base.cpus import format_cpu_list
from busbw.base.errors import InputError
from busbw.measure.launchers import variables
from busbw.measure.launchers.hosts import cpus_of_ranks, over_remote_shell, path_of, processes_of_hosts
from busbw.measure.launchers.launcher import BatchSystem, Launchers, RankLauncher, words_of_job
from busbw.measure.launchers.variables import Option, processes_of_each_host, step
from busbw.model.launch import Allocation, Start
from busbw.model.machine import MpiFamily, MpiLibrary
from busbw.model.plan import Job, JobFile
from busbw.model.request import Request

name = "jsrun"

_RESOURCES = "resources.erf"
# It is a server of PMIx, and sets these.
_OWN = ("JSM_", "LSB_", "PMIX_")
_FAMILIES: tuple[MpiFamily, ...] = ("Open MPI", "MVAPICH")
# Ranks of a node share its CPUs and GPUs, and numbers are the kernel's (github.com/olcf-tutorials/ERF-CPU-Indexing).
_PREAMBLE = (
    "cpu_index_using: physical",
    "overlapping_rs: allow",
    "oversubscribe_cpu: allow",
    "oversubscribe_gpu: allow",
    "oversubscribe_mem: allow",
    "launch_distribution: packed",
)


def job(start: Start) -> Job:
    """Return the command that starts the ranks as one step. Raises InputError for what jsrun cannot do."""
    program = _program(start)
    _check_mpi(start)
    files: tuple[JobFile, ...] = ()
    if start.placement.binding == "masks":
        files = (_explicit(start),)
        where: tuple[Option, ...] = ((f"--erf_input={path_of(start, files[0])}",),)
    else:
        where = _resource_sets(start)
    options = (
        *where,
        # Programs without MPI must not get its libraries put before them.
        *((("--smpiargs=none",),) if start.mpi is None else ()),
        ("--exit_on_error=1",),
        (f"--chdir={start.directory}",),
    )
    before = variables.adjusting(start, extended=True)
    return step(start, name, (program,), options, refused=_OWN, before=before, files=files)


def visit(start: Start) -> Job:
    """Return the command that starts the program on the one host of the placement, over ssh.

    A second step would wait for resources, all of which the step of the ranks has.
    Raises InputError for several hosts.
    """
    return over_remote_shell(start, name)


def _program(start: Start) -> str:
    if start.launcher_program is None:
        raise InputError("there is no jsrun here", hint="start it inside a job of LSF, or take --launcher mpirun")
    return start.launcher_program


def _check_mpi(start: Start) -> None:
    if start.mpi is not None and start.mpi.family not in _FAMILIES:
        raise InputError(
            f"jsrun introduces ranks by PMIx, which {start.mpi.family} does not understand: they would start as so "
            "many runs of one rank each",
            where=start.mpi.library,
            hint="load an Open MPI that has PMIx, or take --launcher mpirun",
        )


def _resource_sets(start: Start) -> tuple[Option, ...]:
    """Return one resource set a host, so that every rank sees all of its GPUs."""
    each = processes_of_each_host(start, name, "--ranks-per-node N, or --bind-to masks")
    placement = start.placement
    if placement.binding == "numa" and not placement.oversubscribed:
        raise InputError("jsrun binds to cores and to CPUs by number, not to NUMA nodes", hint="--bind-to masks")
    bound = placement.binding == "core" and not placement.oversubscribed
    return (
        (f"--nrs={len(placement.hosts)}",),
        ("--rs_per_host=1",),
        (f"--tasks_per_rs={each}",),
        ("--cpu_per_rs=ALL_CPUS",),
        (f"--gpu_per_rs={'ALL_GPUS' if start.gpus_per_host is not None else 0}",),
        ("--launch_distribution=packed",),
        *(((f"--bind={'packed:1' if bound else 'none'}",),) if placement.binding != "default" else ()),
    )


def _explicit(start: Start) -> JobFile:
    """Return the file that gives each rank its host and CPUs. Hosts without names are counted from 1, the first."""
    hosts = (
        tuple(f"hostname: {host}" for host in start.placement.hosts)
        if start.placement.is_spread and start.hosts_are_named
        else tuple(f"host: {number}" for number in range(1, len(start.placement.hosts) + 1))
    )
    masks = cpus_of_ranks(start)
    gpus = "gpu: * ; " if start.gpus_per_host is not None else ""
    counts = zip(hosts, processes_of_hosts(start), strict=True)
    places = ((host, masks[rank]) for host, count in counts for rank in range(count))
    lines = (
        f"rank: {number}: {{ {host}; cpu: {_ranges(cpus)} ; {gpus}mem: * }}"
        for number, (host, cpus) in enumerate(places)
    )
    return JobFile(path=_RESOURCES, text="\n".join((*_PREAMBLE, *lines)) + "\n")


def _ranges(cpus: tuple[int, ...]) -> str:
    return ",".join(f"{{{part}}}" for part in format_cpu_list(cpus).split(","))


def _why_not(_request: Request, _allocation: Allocation, mpi: MpiLibrary, _there: Launchers) -> str | None:
    if mpi.family not in _FAMILIES:
        return f"it introduces ranks by PMIx, which {mpi.family} does not understand"
    return None


def _check(request: Request, allocation: Allocation) -> None:
    if request.binding != "masks" and (allocation.kind != "lsf" or allocation.is_part):
        raise InputError(
            "jsrun chooses the hosts itself where it is not told the CPUs of each rank",
            where=allocation.how,
            hint="--bind-to masks, or take all hosts of the job",
        )


LAUNCHER = RankLauncher(
    name=name,
    job=job,
    system=BatchSystem("lsf", "LSF", "start busbw inside of a job of LSF, or take --launcher mpirun"),
    program="jsrun",
    is_tried=False,
    why_not=_why_not,
    check=_check,
    visit_one=visit,
    words=words_of_job(job),
)
