"""mpirun of Open MPI 4 (ORTE), of Open MPI 5 (PRRTE), and of HPC-X, which is Open MPI 4 with UCX."""

import re
from dataclasses import dataclass

import msgspec

from busbw.base.errors import InputError
from busbw.measure.launchers import hosts, variables
from busbw.measure.launchers.hosts import (
    Role,
    binding_program,
    check_arguments,
    even,
    host_file,
    path_of,
    processes_of_hosts,
)
from busbw.measure.launchers.variables import library_variables
from busbw.model.launch import Start
from busbw.model.machine import MpiLibrary
from busbw.model.plan import Job, JobFile, Placement

_MAJOR = re.compile(r"(\d+)\.")
# mpirun reads these itself, and hands them to the ranks.
_SETTINGS = {"OMPI_MCA_": "--mca", "PRTE_MCA_": "--prtemca", "PMIX_MCA_": "--pmixmca"}
_OWN = ("OMPI_", "PRTE_", "PMIX_")
# It rewrites these wherever they stand, or reads them itself (5.0.11).
_TAKEN = frozenset(
    ("--map-by", "--mapby", "--rank-by", "--rankby", "--bind-to", "--bindto", "--runtime-options", "--rtos")
)
# A rank that loses its connection to one that died aborts, and mpirun ends the job without a word of the dead one. In
# these seconds it hears of that one too (tried with 5.0.11: named in 20 of 20 kills, and in 6 of 8 without).
_ABORT_DELAY = {"OMPI_MCA_opal_abort_delay": "2"}
_LOCAL_RANK = "OMPI_COMM_WORLD_LOCAL_RANK"


@dataclass(frozen=True, slots=True)
class _OpenMpiWords:
    """What the two generations spell differently."""

    title: str
    # Option and name of the remote shell and of the launcher's own interface.
    agent: tuple[str, str]
    interface: tuple[str, str]
    # Settings whose values go through the shells of the other hosts.
    through_shells: tuple[str, ...]
    # Whether it splits the name of the host file at commas.
    splits_host_file: bool
    # Whether `--map-by ppr:N:node --bind-to numa` puts every rank on the first NUMA node.
    first_numa_only: bool


_ORTE = _OpenMpiWords(
    title="mpirun of Open MPI 4",
    agent=("--mca", "plm_rsh_agent"),
    interface=("--mca", "oob_tcp_if_include"),
    through_shells=("OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_"),
    splits_host_file=False,
    first_numa_only=False,
)
_PRRTE = _OpenMpiWords(
    title="mpirun of Open MPI 5",
    agent=("--prtemca", "plm_ssh_agent"),
    interface=("--prtemca", "prte_if_include"),
    through_shells=("PRTE_MCA_", "PMIX_MCA_"),
    splits_host_file=True,
    first_numa_only=True,
)


def job(start: Start, mpi: MpiLibrary, role: Role) -> Job:
    """Return the command that starts the ranks. Raises InputError for what this mpirun cannot do."""
    return _several(start, mpi, role) if start.placement.is_spread else _here(start, mpi)


def _here(start: Start, mpi: MpiLibrary) -> Job:
    """Return the job of one host, whose ranks have the environment of mpirun."""
    check_arguments(start, "mpirun of Open MPI", _TAKEN)
    processes = sum(processes_of_hosts(start))
    variables.environment(start)
    own = library_variables(start, mpi)
    files, binding = binding_program(start, _LOCAL_RANK)
    return Job(
        argv=(
            mpi.mpirun,
            *_as_root(start),
            *("-n", str(processes)),
            *_binding_here(start.placement),
            *start.options,
            *variables.adjusting(start, extended=True),
            *binding,
            *start.program.argv,
        ),
        env=(*own.env, *start.program.env),
        prepend=(*own.prepend, *start.prepend),
        links=own.links,
        files=files,
        unset=start.unset,
        timeout_s=start.measuring_s + hosts.MPI_GRACE_S,
        stall_s=start.stall_s,
    )


def _several(start: Start, mpi: MpiLibrary, role: Role) -> Job:
    words = _words(mpi)
    check_arguments(start, words.title, _TAKEN)
    counts = processes_of_hosts(start)
    where, host_files = _where(start, words, role, counts)
    own = library_variables(start, mpi)
    files, binding = binding_program(start, _LOCAL_RANK)
    # Ranks of other hosts have what `-x` names, and what their logins set.
    env = dict(own.env) | variables.environment(start)
    if start.through_mpi4py and role is Role.MEASURING:
        env = _ABORT_DELAY | env
    start = msgspec.structs.replace(start, prepend=(*own.prepend, *start.prepend))
    return Job(
        argv=(
            mpi.mpirun,
            *_as_root(start),
            *("-n", str(sum(counts)), *where),
            *_mapping(start.placement, words, counts),
            *(("--wdir", start.directory) if role is Role.MEASURING else ()),
            *_reaching(start, words),
            *_variables(start, words, env),
            *start.options,
            *variables.adjusting(start, extended=True),
            *binding,
            *start.program.argv,
        ),
        env=(),
        prepend=start.prepend,
        links=own.links,
        files=(*host_files, *files),
        unset=start.unset,
        timeout_s=start.measuring_s + hosts.MPI_GRACE_S,
        stall_s=start.stall_s,
    )


def _where(
    start: Start, words: _OpenMpiWords, role: Role, counts: tuple[int, ...]
) -> tuple[tuple[str, ...], tuple[JobFile, ...]]:
    """Return the option that names the hosts, and the file it names."""
    if role is Role.VISITING:
        hosts = (f"{host}:{count}" for host, count in zip(start.placement.hosts, counts, strict=True))
        return ("--host", ",".join(hosts)), ()
    if words.splits_host_file and "," in start.directory:
        raise InputError(f"{words.title} splits the path of its host file at commas", where=start.directory)
    file = host_file(start, "{host} slots={slots}", counts)
    return ("--hostfile", path_of(start, file)), (file,)


def _words(mpi: MpiLibrary) -> _OpenMpiWords:
    major = _MAJOR.match(mpi.version or "")
    if major is None:
        raise InputError(
            f"cannot tell whether this is Open MPI 4 or 5 ({mpi.version or 'no version'})", where=mpi.mpirun
        )
    return _PRRTE if int(major[1]) >= 5 else _ORTE


def _as_root(start: Start) -> tuple[str, ...]:
    # It refuses to start as root unless told to.
    return ("--allow-run-as-root",) if start.as_root else ()


def _binding_here(placement: Placement) -> tuple[str, ...]:
    if placement.oversubscribed:
        # Without yielding, a waiting rank keeps the core its partner needs: milliseconds instead of microseconds.
        return ("--oversubscribe", *_bind_to(placement), "--mca", "mpi_yield_when_idle", "1")
    if placement.binding == "default":
        return ()
    if placement.binding in ("none", "masks"):
        return ("--bind-to", "none")
    return ("--map-by", placement.binding, "--bind-to", placement.binding)


def _mapping(placement: Placement, words: _OpenMpiWords, counts: tuple[int, ...]) -> tuple[str, ...]:
    """Return how ranks fill the slots of the host file, one host after the other."""
    alike = even(counts)
    by = ("--map-by", f"ppr:{alike}:node" if alike is not None else "slot")
    if placement.binding == "numa" and words.first_numa_only:
        by = ("--map-by", "numa")
    if placement.oversubscribed:
        return ("--oversubscribe", *by, *_bind_to(placement), "--mca", "mpi_yield_when_idle", "1")
    return (*by, *_bind_to(placement))


def _bind_to(placement: Placement) -> tuple[str, ...]:
    """Return the CPUs of ranks that need not be placed for it; nothing where mpirun is to choose them."""
    if placement.binding == "default":
        return ()
    is_free = placement.oversubscribed or placement.binding == "masks"
    return ("--bind-to", "none" if is_free else placement.binding)


def _reaching(start: Start, words: _OpenMpiWords) -> tuple[str, ...]:
    """Return how mpirun reaches the other hosts, and over which interface it and MPI talk to them."""
    shell = start.remote_shell
    if any(not word or set(word) & set(" :\t\n\"'") for word in shell):
        raise InputError(
            f"{words.title} splits the remote shell at spaces and colons",
            where=" ".join(shell),
            hint="put the words into a script, and name that",
        )
    found = (*words.agent, " ".join(shell)) if shell else ()
    if start.interface is not None:
        found = (*found, *words.interface, start.interface, "--mca", "btl_tcp_if_include", start.interface)
    return found


def _variables(start: Start, words: _OpenMpiWords, env: dict[str, str]) -> tuple[str, ...]:
    """Return the options that make variables arrive, the settings of Open MPI itself first."""
    settings = {name: value for name, value in env.items() if _setting_option(name) is not None}
    through = {name: value for name, value in settings.items() if name.startswith(words.through_shells)}
    variables.check_passes_a_shell(through, words.title)
    found: list[str] = []
    for name, value in settings.items():
        prefix = name[: name.index("_MCA_") + len("_MCA_")]
        found += (_SETTINGS[prefix], name.removeprefix(prefix), value)
    for name, value in env.items():
        if name not in settings:
            found += ("-x", f"{name}={value}")
    lists = [name for name, _folder in start.prepend if name not in env]
    for name in dict.fromkeys((*lists, *start.forward)):
        if name not in env and not name.startswith(_OWN):
            found += ("-x", name)
    return tuple(found)


def _setting_option(name: str) -> str | None:
    return next((option for prefix, option in _SETTINGS.items() if name.startswith(prefix) and name != prefix), None)
