"""The environment of the ranks: what a launcher is given, and what none of them can hand on."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from busbw.base.cpus import format_cpu_list
from busbw.base.errors import InputError
from busbw.measure.launchers import hosts
from busbw.measure.launchers.hosts import check_arguments, even, processes_of_hosts
from busbw.model.launch import Start, check_name, check_variable
from busbw.model.machine import MpiFamily, MpiLibrary
from busbw.model.plan import Job, JobFile

# Characters that mean something within the double quotes of a shell.
_OF_SHELLS = re.compile(r"[\"$`\\!\n\r]")
# Launchers put folders of their own before these.
_EXTENDED = ("PATH", "LD_LIBRARY_PATH")


def environment(start: Start) -> dict[str, str]:
    """Return what the program needs, by name, in its order.

    Raises InputError for names and values that no process can have, and for names that shall be set and unset.
    """
    found = dict(start.program.env)
    for name in (*start.forward, *start.unset, *(name for name, _folder in start.prepend)):
        check_name(name)
    for name, value in found.items():
        check_variable(name, value)
    for name in start.unset:
        if name in found or name in start.forward:
            raise InputError("to be set and to be unset", where=name)
    return found


def check_passes_a_shell(values: Mapping[str, str], launcher: str) -> None:
    """Raise InputError for values that a launcher hands to another host's shell without quoting them."""
    for name, value in values.items():
        found = _OF_SHELLS.search(value)
        if found is not None:
            raise InputError(
                f"{launcher} writes this value into a command of the other hosts' shells, which would read its "
                f"{found[0]!r}",
                where=name,
                hint="use another value, or a file of settings on every host",
            )


def adjusting(start: Start, *, extended: bool) -> tuple[str, ...]:
    """Return what ranks' command lines begin with so that variables are there, or not, whatever came on the way.

    Names are unset that logins of other hosts may set. `extended`: the launcher puts folders of its own first in
    lists of folders, which are set once more.
    """
    unset = start.unset if start.placement.is_spread else ()
    longer = {name for name, _folder in start.prepend}
    again = [
        f"{name}={value}" for name, value in start.program.env if extended and name in _EXTENDED and name not in longer
    ]
    if not unset and not again:
        return ()
    return ("env", *(word for name in unset for word in ("-u", name)), *again)


# Where a run directory keeps links to libraries.
_LINKS = "lib"


@dataclass(frozen=True, slots=True)
class LibraryVariables:
    """Variables, lists that begin with a folder, and links in the run directory."""

    env: tuple[tuple[str, str], ...] = ()
    prepend: tuple[tuple[str, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()


def library_variables(start: Start, mpi: MpiLibrary) -> LibraryVariables:
    """Return what ranks need that load MPI through mpi4py; nothing for programs that bring their own idea of it."""
    if not start.through_mpi4py:
        return LibraryVariables()
    env = (("MPI4PY_LIBMPI", mpi.library),)
    if PurePosixPath(mpi.library).name.startswith("libmpich."):
        # Debian's name for MPICH's library; mpi4py's extension asks the loader for the name of the MPICH ABI.
        folder = f"{start.directory}/{_LINKS}"
        return LibraryVariables(env, (("LD_LIBRARY_PATH", folder),), ((f"{_LINKS}/libmpi.so.12", mpi.library),))
    return LibraryVariables(env)


def mpich_settings(start: Start) -> dict[str, str]:
    """Return the variables of MPICH."""
    found = {}
    if start.placement.oversubscribed:
        # MPICH 5's shared-memory collectives spin without ever yielding: 8000 us a barrier instead of 30.
        found = {"MPIR_CVAR_DEVICE_COLLECTIVES": "none", "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
    if start.interface is not None:
        # Its network layer is built on UCX or on libfabric, and each reads its own.
        found |= {"UCX_NET_DEVICES": start.interface, "FI_TCP_IFACE": start.interface}
    return found


_GENERATION = re.compile(r"(\d+)(?:\.(\d+))?")
# Its mpiexec may say the version of the MPICH that it is built on: 3.2.1 in MVAPICH2 2.3.7, 3.4.3 in MVAPICH 3.0rc.
_MPICH_OF_THIRD = 4


def mvapich_generation(mpi: MpiLibrary) -> int | None:
    """Return 2, 3 or 4, by the version of MVAPICH or of the MPICH in it; None: it is not known."""
    found = _GENERATION.match(mpi.version or "")
    if found is None:
        return None
    major, minor = int(found[1]), int(found[2] or 0)
    if major == 3:
        return 3 if minor in (0, _MPICH_OF_THIRD) else 2
    return major


# By what MPI_Init binds: 2 by MV2_, 3 by MVP_ where its own network layer is used, 4 not at all.
_BINDS_ITSELF = {2: ("MV2_",), 3: ("MVP_",), 4: (), None: ("MV2_", "MVP_")}


def mvapich_settings(start: Start) -> dict[str, str]:
    """Return the variables of MVAPICH, which binds ranks once more in MPI_Init unless told not to."""
    generation = mvapich_generation(start.mpi) if start.mpi is not None else None
    prefixes = _BINDS_ITSELF.get(generation, ())
    return mpich_settings(start) | {f"{prefix}ENABLE_AFFINITY": "0" for prefix in prefixes}


# It keeps no more of a mapping (_POSIX2_LINE_MAX, hwloc_bind.c).
_LONGEST_MAPPING = 2_047


def mvapich_binding(start: Start) -> dict[str, str]:
    """Return the variables by which MVAPICH2 and 3 bind ranks in MPI_Init. Raises InputError for too long a mapping."""
    generation = mvapich_generation(start.mpi) if start.mpi is not None else None
    prefix = "MVP_" if generation == 3 else "MV2_"
    placement = start.placement
    if placement.binding == "none" or placement.oversubscribed:
        return {f"{prefix}ENABLE_AFFINITY": "0"}
    found = {f"{prefix}ENABLE_AFFINITY": "1"}
    if placement.binding == "masks":
        mapping = ":".join(format_cpu_list(cpus) for cpus in hosts.cpus_of_ranks(start))
        if len(mapping) > _LONGEST_MAPPING:
            raise InputError(f"MVAPICH reads {_LONGEST_MAPPING} characters of a mapping, and this has {len(mapping)}")
        return found | {f"{prefix}CPU_MAPPING": mapping}
    policy, level = ("scatter", "numanode") if placement.binding == "numa" else ("bunch", "core")
    return found | {f"{prefix}CPU_BINDING_POLICY": policy, f"{prefix}CPU_BINDING_LEVEL": level}


def intel_settings(start: Start) -> dict[str, str]:
    """Return the variables of Intel MPI."""
    return {"FI_TCP_IFACE": start.interface} if start.interface is not None else {}


def open_mpi_settings(start: Start) -> dict[str, str]:
    """Return the variables of Open MPI, for launchers that are not its mpirun."""
    found = {}
    if start.placement.oversubscribed:
        found["OMPI_MCA_mpi_yield_when_idle"] = "1"
    if start.interface is not None:
        found["OMPI_MCA_btl_tcp_if_include"] = start.interface
    return found


def settings_without_mpirun(start: Start) -> dict[str, str]:
    """Return the variables of ranks that something else than their MPI's mpirun starts."""
    family: MpiFamily = start.mpi.family if start.mpi is not None else "unknown"
    if family == "Open MPI":
        return open_mpi_settings(start)
    if family == "MVAPICH":
        return mvapich_settings(start)
    if family == "MPICH":
        return mpich_settings(start)
    if family == "Intel MPI":
        # Pinning is left to the launcher.
        return intel_settings(start) | {"I_MPI_PIN": "off"}
    return {}


# An option and its values, a word each.
Option = tuple[str, ...]
# Options that are told apart by the name before the second equals sign.
_NAMED = "--setopt="


def step(
    start: Start,
    launcher: str,
    command: tuple[str, ...],
    options: Iterable[Option],
    *,
    refused: tuple[str, ...],
    own: LibraryVariables | None = None,
    before: tuple[str, ...] = (),
    files: tuple[JobFile, ...] = (),
    unset: tuple[str, ...] = (),
) -> Job:
    """Return the job whose settings are in the environment of the launcher.

    `refused`: what the names of its own variables begin with; `own`: what the ranks' MPI needs, by default what
    mpi4py does; `before`: words between the launcher's and the program's; `unset`: further names that ranks must not
    have. A user's option takes the place of ours of the same name. Raises InputError for what cannot arrive.
    """
    check_arguments(start, launcher)
    given = environment(start)
    wrong = next((each for each in given if each.startswith(refused)), None)
    if wrong is not None:
        raise InputError(f"{launcher} sets this variable itself", where=wrong)
    if own is None:
        own = library_variables(start, start.mpi) if start.mpi is not None else LibraryVariables()
    asked = {_key(word) for word in start.options}
    return Job(
        argv=(
            *command,
            *(word for option in options if _key(option[0]) not in asked for word in option),
            *start.options,
            *before,
            *start.program.argv,
        ),
        env=tuple((dict(own.env) | settings_without_mpirun(start) | given).items()),
        prepend=(*own.prepend, *start.prepend),
        links=own.links,
        files=files,
        unset=(*start.unset, *unset),
        timeout_s=start.measuring_s + hosts.MPI_GRACE_S,
        stall_s=start.stall_s,
    )


def processes_of_each_host(start: Start, launcher: str, hint: str) -> int:
    """Return how many processes every host starts. Raises InputError where hosts differ in it."""
    counts = processes_of_hosts(start)
    each = even(counts)
    if each is None:
        raise InputError(
            f"{launcher} starts as many processes on every host, and these are {min(counts)} to {max(counts)}",
            hint=hint,
        )
    return each


def _key(word: str) -> str:
    """Return what an option is called: `--cpu-bind` of `--cpu-bind=cores`, `--setopt=pmi` of `--setopt=pmi=pmix`."""
    if word.startswith(_NAMED):
        return _NAMED + word.removeprefix(_NAMED).partition("=")[0]
    return word.partition("=")[0]
