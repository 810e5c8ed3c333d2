"""Which hosts a run may use, from the environment and the files of whoever starts it."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from busbw.base.errors import InputError
from busbw.base.hostlist import compressed
from busbw.machine.read import batch_systems
from busbw.machine.read.batch_systems import Seen, grid_engine_file, host_file, host_list, node_file
from busbw.model.launch import Allocation

_SHOWN = 60


class _System(NamedTuple):
    name: str
    # The variables that it sets in its jobs; one of them is enough.
    variables: tuple[str, ...]
    read: Callable[[Seen], Allocation]


def _pbs(seen: Seen) -> Allocation:
    path = seen.environment["PBS_NODEFILE"]
    job_id = seen.environment.get("PBS_JOBID")
    hosts = node_file(seen.file("PBS_NODEFILE"), path)
    return Allocation(kind="pbs", hosts=hosts, job_id=job_id, how=f"PBS_NODEFILE={path}{of_job(job_id)}")


def _grid_engine(seen: Seen) -> Allocation:
    path = seen.environment["PE_HOSTFILE"]
    job_id = seen.environment.get("JOB_ID")
    hosts = grid_engine_file(seen.file("PE_HOSTFILE"), path)
    return Allocation(kind="sge", hosts=hosts, job_id=job_id, how=f"PE_HOSTFILE={path}{of_job(job_id)}")


# The first of these that is there is followed. Flux stands first because it clears Slurm's variables where it starts a
# shell (flux-environment(7)): found together, Flux is the inner one.
_SYSTEMS = (
    _System("Flux", ("FLUX_URI",), batch_systems.flux_allocation),
    _System("Slurm", ("SLURM_JOB_NODELIST", "SLURM_NODELIST"), batch_systems.slurm_allocation),
    _System("LSF", ("LSB_DJOB_HOSTFILE", "LSB_MCPU_HOSTS", "LSB_HOSTS"), batch_systems.lsf_allocation),
    _System("PBS", ("PBS_NODEFILE",), _pbs),
    _System("Grid Engine", ("PE_HOSTFILE",), _grid_engine),
)
# Variables whose values name files with hosts.
FILE_VARIABLES = ("LSB_DJOB_HOSTFILE", "PBS_NODEFILE", "PE_HOSTFILE")


def allocation(seen: Seen) -> Allocation | None:
    """Return the hosts that a batch system gave to this job; None outside of one.

    Raises InputError where the first that is found cannot be understood: another one's hosts would be a guess.
    """
    found = [system for system in _SYSTEMS if any(seen.environment.get(name) for name in system.variables)]
    if not found:
        return None
    return with_passed_over(found[0].read(seen), [_passed_over(system, seen, found[0]) for system in found[1:]])


def chosen(text: str, file: str | None, here: Allocation | None) -> Allocation:
    """Return the hosts that `--hosts` names: `file` is the text of the file of that name, None where there is none.

    `here` is the allocation around, which is passed over. Raises InputError.
    """
    if file is not None:
        made = Allocation(kind="host file", hosts=host_file(file, text), how=f"host file {text}")
    else:
        made = Allocation(
            kind="host list", hosts=host_list(text, f"--hosts {_short(text)}"), how=f"--hosts {_short(text)}"
        )
    if here is None:
        return made
    given = {host.name for host in here.hosts}
    outside = [host.name for host in made.hosts if host.name not in given]
    sentence = f"{here.how}: --hosts was given"
    if outside:
        sentence += f"; {_short(compressed(outside))} {'is' if len(outside) == 1 else 'are'} not of it"
    return with_passed_over(made, [sentence, *here.passed_over])


def with_passed_over(made: Allocation, sentences: Sequence[str]) -> Allocation:
    """Return an allocation that names what else was found."""
    return Allocation(
        kind=made.kind,
        hosts=made.hosts,
        job_id=made.job_id,
        ends_unix_s=made.ends_unix_s,
        how=made.how,
        passed_over=(*made.passed_over, *sentences),
    )


def of_job(job_id: str | None) -> str:
    """Return ` of job 17`; empty where the job has no number."""
    return f" of job {_short(job_id)}" if job_id else ""


def multiplied(environment: Mapping[str, str]) -> str | None:
    """Return why this process must not start ranks: a launcher started it several times; None where it may."""
    for counted, launcher in (
        ("OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun"),
        ("PMI_SIZE", "a launcher that speaks PMI"),
        ("SLURM_STEP_NUM_TASKS", "srun"),
        ("FLUX_JOB_SIZE", "flux run"),
        ("JSM_NAMESPACE_SIZE", "jsrun"),
    ):
        count = environment.get(counted, "")
        # An interactive shell of Slurm is a step of one task.
        if count.isdecimal() and len(count) < len(str(10**9)) and int(count) > 1:
            return (
                f"{launcher} started busbw {int(count)} times ({counted}={int(count)}): busbw starts the ranks itself"
            )
    return None


def _passed_over(system: _System, seen: Seen, followed: _System) -> str:
    try:
        found = system.read(seen)
    except InputError as error:
        return f"{system.name}: {error.cause}"
    return f"{found.how}: {followed.name} was found too, and is followed"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
