"""srun inside an allocation of Slurm, and which of its ways to introduce ranks to each other an MPI understands."""

import re
from collections.abc import Collection, Sequence

import msgspec

from busbw.base.cpus import mask_bits
from busbw.base.errors import InputError
from busbw.measure.launchers import hosts
from busbw.measure.launchers.hosts import cpus_of_ranks, even, one_each, processes_of_hosts
from busbw.measure.launchers.launcher import BatchSystem, Launchers, LaunchWords, RankLauncher
from busbw.measure.launchers.variables import LibraryVariables, step
from busbw.model.launch import Allocation, Slurm, Start
from busbw.model.machine import MpiLibrary
from busbw.model.plan import Job
from busbw.model.request import Request

_PMIX = re.compile(r"pmix(?:_v(\d+))?")
_NONE = "none"
_SHASTA = "cray_shasta"
_PMI2 = "pmi2"
# Without it Intel MPI does not ask Slurm at all.
_INTEL_VARIABLE = "I_MPI_PMI_LIBRARY"
_ALONE = "ranks that find no PMI start as so many runs of one rank each, which look fine and measure nothing"


def mpi_type(mpi: MpiLibrary | None, slurm: Slurm, options: Sequence[str], settings: Collection[str]) -> str:
    """Return the word for `srun --mpi=`, where it gets `options` and each rank has the variables named `settings`.

    Raises InputError where Slurm has none that this MPI understands.
    """
    if mpi is None:
        return _NONE
    for each in options:
        if each.startswith("--mpi="):
            return each.removeprefix("--mpi=")
    if mpi.family == "Intel MPI" and _INTEL_VARIABLE not in settings:
        raise InputError(
            f"Intel MPI asks Slurm only where {_INTEL_VARIABLE} names Slurm's library: {_ALONE}",
            hint=f"export {_INTEL_VARIABLE}=PATH/libpmi2.so",
        )
    wanted = _types_for(mpi, slurm.mpi_types)
    found = next((each for each in wanted if each in slurm.mpi_types), None)
    if found is None:
        raise InputError(
            f"this Slurm has no PMI that {mpi.family} understands: {_ALONE}",
            where=f"{slurm.srun} --mpi=list: {', '.join(slurm.mpi_types) or 'nothing'}; "
            f"{mpi.library} needs {' or '.join(wanted) or 'PMIx'}",
            hint="take the mpirun of this MPI inside the allocation: --launcher mpirun",
        )
    return found


def _types_for(mpi: MpiLibrary, types: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words that would do, the best first."""
    if mpi.family == "Open MPI":
        versions = [each for each in types if _PMIX.fullmatch(each)]
        # Without a number it is the newest that this Slurm was built with.
        return tuple(sorted(versions, key=_newest_first)) or ("pmix",)
    if is_cray(mpi):
        return (_SHASTA, _PMI2)
    return (_PMI2,)


def _newest_first(kind: str) -> int:
    number = _PMIX.fullmatch(kind)
    return -int(number[1]) if number is not None and number[1] is not None else -1000


def is_cray(mpi: MpiLibrary) -> bool:
    """Whether this is the MPICH of a Cray, which has ways of its own."""
    return mpi.family == "MPICH" and "/cray/" in mpi.library


name = "srun"

_VERSION = re.compile(r"(\d+)\.(\d+)")
_BINDINGS = {"core": "cores", "numa": "ldoms", "none": "none"}
# A job that asked for GPUs by task hands this to its steps, whose tasks then see one GPU each.
_BY_TASK = ("SLURM_GPUS_PER_TASK", "SLURM_NTASKS_PER_GPU", "SLURM_GPU_BIND", "SLURM_TRES_PER_TASK")
# srun writes these itself.
_OWN = ("SLURM_",)
# A step began to keep its resources to itself with the first; since the second one with --overlap overlaps all others,
# whether they asked for it or not. Between them both say it.
_STEPS_EXCLUDE = (20, 11)
_VISITORS_OVERLAP = (22, 5)


def job(start: Start) -> Job:
    """Return the command that starts the ranks as one step. Raises InputError for what srun cannot do."""
    slurm = _slurm(start)
    counts = processes_of_hosts(start)
    settings = (*start.forward, *(name for name, _value in start.program.env))
    kind = mpi_type(start.mpi, slurm, start.options, settings)
    options = (
        f"--mpi={kind}",
        *_where(start, counts),
        *_binding(start),
        *_gpus(start),
        "--kill-on-bad-exit=1",
        *(("--overlap",) if _STEPS_EXCLUDE <= _version(slurm) < _VISITORS_OVERLAP else ()),
        f"--chdir={start.directory}",
        "--export=ALL",
    )
    return _step(start, slurm, options, None)


def visit(start: Start) -> Job:
    """Return the command that starts the program once on each host, beside the step of the ranks.

    Raises InputError as `job` does.
    """
    slurm = _slurm(start)
    each = msgspec.structs.replace(one_each(start), mpi=None, options=(), gpus_per_host=None)
    options = (
        "--mpi=none",
        *_where(each, processes_of_hosts(each)),
        "--cpu-bind=none",
        *(("--overlap",) if _version(slurm) >= _STEPS_EXCLUDE else ()),
        "--export=ALL",
    )
    job = _step(each, slurm, options, LibraryVariables())
    return msgspec.structs.replace(job, timeout_s=hosts.VISIT_S, stall_s=hosts.VISIT_S)


def _step(start: Start, slurm: Slurm, options: tuple[str, ...], own: LibraryVariables | None) -> Job:
    return step(
        start,
        name,
        (slurm.srun,),
        ((option,) for option in options),
        refused=_OWN,
        own=own,
        unset=_BY_TASK if start.gpus_per_host is not None else (),
    )


def _slurm(start: Start) -> Slurm:
    if start.slurm is None:
        raise InputError("there is no srun here", hint="start it inside an allocation of Slurm, or take mpirun")
    return start.slurm


def _version(slurm: Slurm) -> tuple[int, int]:
    """Return year and month of a release; one that does not tell is taken for a new one."""
    found = _VERSION.search(slurm.version or "")
    return (int(found[1]), int(found[2])) if found is not None else (99, 0)


def _where(start: Start, counts: tuple[int, ...]) -> tuple[str, ...]:
    """Return the hosts and how many tasks they take. Slurm numbers even tasks in its own order of the hosts."""
    hosts = start.placement.hosts
    alike = even(counts)
    found = (f"--nodes={len(counts)}", f"--ntasks={sum(counts)}")
    if alike is None:
        # A host once for each of its tasks.
        tasks = (host for host, count in zip(hosts, counts, strict=True) for _task in range(count))
        return (*found, f"--nodelist={','.join(tasks)}", "--distribution=arbitrary")
    # Where it knows the hosts of its allocation and nobody else does, it chooses.
    is_named = start.placement.is_spread and start.hosts_are_named
    nodelist = (f"--nodelist={','.join(hosts)}",) if is_named else ()
    return (*found, f"--ntasks-per-node={alike}", *nodelist)


def _binding(start: Start) -> tuple[str, ...]:
    """Return the CPUs of the tasks, said outright: srun otherwise takes what an outer srun or the site left.

    That is what the binding `default` asks for.
    """
    placement = start.placement
    per_task: tuple[str, ...] = ()
    if start.batch is not None and start.batch.cpus_per_task is not None:
        # Since 22.05 a step does not inherit it from the job.
        per_task = (f"--cpus-per-task={start.batch.cpus_per_task}",)
    if placement.binding == "default":
        return (*per_task, *(("--overcommit",) if placement.oversubscribed else ()))
    if placement.oversubscribed:
        return (*per_task, "--overcommit", "--cpu-bind=none")
    if placement.binding == "masks":
        masks = ",".join(f"{mask_bits(cpus):x}" for cpus in cpus_of_ranks(start))
        return (*per_task, f"--cpu-bind=mask_cpu:{masks}")
    return (*per_task, f"--cpu-bind={_BINDINGS[placement.binding]}")


def _gpus(start: Start) -> tuple[str, ...]:
    """Return how every task sees every GPU of its host, and takes the one of its number there.

    With --gpus-per-task, a task sees one GPU, as device 0, and NCCL's peer-to-peer transports between the tasks of a
    host may fail or fall back (github.com/NVIDIA/nccl/issues/1066, github.com/open-mpi/ompi/issues/11949).
    """
    if start.gpus_per_host is None:
        return ()
    return (f"--gpus-per-node={start.gpus_per_host}", "--gpu-bind=none")


def _why_not(request: Request, _allocation: Allocation, mpi: MpiLibrary, there: Launchers) -> str | None:
    if there.slurm is None:
        return None
    try:
        mpi_type(mpi, there.slurm, request.launcher_options, there.settings)
    except InputError as error:
        return error.cause
    return None


LAUNCHER = RankLauncher(
    name=name,
    job=job,
    system=BatchSystem("slurm", "Slurm", "salloc first, or submit with --launcher sbatch, or take --launcher mpirun"),
    is_expected=True,
    is_there=lambda there: there.slurm is not None,
    why_not=_why_not,
    visit=visit,
    of_containers="srun",
    words=LaunchWords(job=lambda start, _request: job(start), takes_words_of_srun=True),
)
