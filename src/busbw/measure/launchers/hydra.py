"""mpiexec of the Hydra family: MPICH, MVAPICH, Intel MPI. It hands its whole environment to every rank."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from busbw.measure.launchers import hosts, variables
from busbw.measure.launchers.hosts import (
    Role,
    binding_program,
    check_arguments,
    cpus_of_ranks,
    host_file,
    path_of,
    processes_of_hosts,
)
from busbw.measure.launchers.variables import (
    intel_settings,
    library_variables,
    mpich_settings,
    mvapich_binding,
    mvapich_generation,
    mvapich_settings,
)
from busbw.model.launch import Start
from busbw.model.machine import MpiLibrary
from busbw.model.plan import Job, JobFile

_FILE = "remote-shell"


@dataclass(frozen=True, slots=True)
class ShellProgram:
    """The path of the program, None for the launcher's own choice; and the file that has to be written for it."""

    path: str | None
    files: tuple[JobFile, ...]


def shell_program(start: Start) -> ShellProgram:
    """Return the remote shell as a program: itself, or a script that adds its words."""
    if not start.remote_shell:
        return ShellProgram(None, ())
    if len(start.remote_shell) == 1:
        return ShellProgram(start.remote_shell[0], ())
    file = JobFile(path=_FILE, text=f'#!/bin/sh\nexec {shlex.join(start.remote_shell)} "$@"\n', executable=True)
    return ShellProgram(path_of(start, file), (file,))


# Left to itself, Hydra kills the other ranks of a host within a millisecond of an early end and may say nothing, so
# that nobody could tell which rank was first. Where busbw is on their host it sees it, and ends them itself.
_NO_CLEANUP = "-disable-auto-cleanup"


@dataclass(frozen=True, slots=True)
class _HydraWords:
    """What the members of the family spell differently."""

    hosts: str
    # Option that names the kind of remote shell, and the one that names the program.
    agent: tuple[str, str]
    binding: Callable[[Start], tuple[str, ...]]
    settings: Callable[[Start], dict[str, str]]
    prepend: Callable[[MpiLibrary], tuple[tuple[str, str], ...]]
    # Where it tells a rank its number on its host, if only a program can give ranks their CPUs.
    local_rank: str | None = None


def job(start: Start, mpi: MpiLibrary, role: Role) -> Job:
    """Return the command that starts the processes. Raises InputError for what this mpiexec cannot do."""
    words = _WORDS[mpi.family]
    check_arguments(start, "mpiexec of Hydra")
    counts = processes_of_hosts(start)
    given = variables.environment(start)
    own = library_variables(start, mpi)
    files, binding = binding_program(start, words.local_rank) if words.local_rank is not None else ((), ())
    reaching: tuple[str, ...] = ()
    if start.placement.is_spread:
        reaching, more = _reaching(start, words, role, counts)
        files = (*more, *files)
    return Job(
        argv=(
            mpi.mpirun,
            # Of other hosts busbw hears by Hydra alone, and with this option Hydra says nothing of a rank's end.
            *((_NO_CLEANUP,) if not start.placement.is_spread else ()),
            *("-n", str(sum(counts))),
            *reaching,
            *words.binding(start),
            *start.options,
            *variables.adjusting(start, extended=bool(words.prepend(mpi))),
            *binding,
            *start.program.argv,
        ),
        env=tuple({**dict(own.env), **words.settings(start), **given}.items()),
        prepend=(*words.prepend(mpi), *own.prepend, *start.prepend),
        links=own.links,
        files=files,
        unset=start.unset,
        timeout_s=start.measuring_s + hosts.MPI_GRACE_S,
        stall_s=start.stall_s,
    )


def _reaching(
    start: Start, words: _HydraWords, role: Role, counts: tuple[int, ...]
) -> tuple[tuple[str, ...], tuple[JobFile, ...]]:
    """Return where processes start, how mpiexec reaches the other hosts, and the files that takes."""
    agent = shell_program(start)
    found = (
        *((words.agent[0], "ssh", words.agent[1], agent.path) if agent.path is not None else ()),
        *(("-iface", start.interface) if start.interface is not None else ()),
    )
    if role is Role.VISITING:
        return ("-hosts", ",".join(start.placement.hosts), "-ppn", "1", *found), agent.files
    hosts = host_file(start, "{host}:{slots}", counts)
    return (words.hosts, path_of(start, hosts), "-wdir", start.directory, *found), (hosts, *agent.files)


def _mpich_binding(start: Start) -> tuple[str, ...]:
    placement = start.placement
    if placement.binding in ("none", "default"):
        return ()
    if placement.binding == "masks":
        # Numbers of the kernel; it reads no ranges.
        users = ("+".join(map(str, cpus)) for cpus in cpus_of_ranks(start))
        return ("-bind-to", "user:" + ",".join(users))
    return ("-bind-to", placement.binding)


def _binds_itself(start: Start) -> bool:
    """Whether MPI_Init binds the ranks, which Hydra then leaves alone: MVAPICH2 does."""
    return start.mpi is not None and mvapich_generation(start.mpi) == 2


def _mvapich_binding(start: Start) -> tuple[str, ...]:
    return ("-bind-to", "none") if _binds_itself(start) else _mpich_binding(start)


def _mvapich_settings(start: Start) -> dict[str, str]:
    return mvapich_settings(start) | (mvapich_binding(start) if _binds_itself(start) else {})


def _intel_binding(start: Start) -> tuple[str, ...]:
    # Pins each rank to a core of its own by default, and gives up pinning when there are more ranks than cores.
    placement = start.placement
    if placement.binding == "default":
        return ()
    if placement.binding == "masks":
        # Its own masks, I_MPI_PIN_DOMAIN=[...], may not overlap, and ranks of one NUMA node share CPUs.
        return ("-genv", "I_MPI_PIN", "off")
    if placement.binding == "numa":
        return ("-genv", "I_MPI_PIN_DOMAIN", "numa")
    if placement.binding == "none" and (start.placement.is_spread or not placement.oversubscribed):
        return ("-genv", "I_MPI_PIN", "off")
    # A rank alone on its host would have all of its cores.
    return ("-genv", "I_MPI_PIN_DOMAIN", "core") if start.placement.is_spread else ()


def _intel_prepend(mpi: MpiLibrary) -> tuple[tuple[str, str], ...]:
    # Its mpirun is a script that looks for mpiexec.hydra on PATH; its library looks for libfabric beside itself.
    return ("PATH", str(PurePosixPath(mpi.mpirun).parent)), ("LD_LIBRARY_PATH", str(PurePosixPath(mpi.library).parent))


_WORDS = {
    "MPICH": _HydraWords("-f", ("-launcher", "-launcher-exec"), _mpich_binding, mpich_settings, lambda _mpi: ()),
    "MVAPICH": _HydraWords("-f", ("-launcher", "-launcher-exec"), _mvapich_binding, _mvapich_settings, lambda _mpi: ()),
    "Intel MPI": _HydraWords(
        "-machinefile",
        ("-bootstrap", "-bootstrap-exec"),
        _intel_binding,
        intel_settings,
        _intel_prepend,
        local_rank="MPI_LOCALRANKID",
    ),
}
