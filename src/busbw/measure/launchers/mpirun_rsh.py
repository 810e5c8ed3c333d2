"""`mpirun_rsh` of MVAPICH2 and of the pre-releases of MVAPICH 3: settings are words before the program. Never run here.

Written from its sources, MVAPICH2 2.3.7-1, src/pm/mpirun: mpirun_params.c (options), mpirun_rsh.c (the command of each
host), environ.c (`-export-all`), src/hostfile/parser.y (the host file).
"""

import re

import msgspec

from busbw.base.errors import InputError
from busbw.measure.launchers import hosts, variables
from busbw.measure.launchers.hosts import (
    check_arguments,
    host_file,
    over_remote_shell,
    path_of,
    processes_of_hosts,
)
from busbw.measure.launchers.launcher import LaunchWords, RankLauncher
from busbw.measure.launchers.variables import library_variables, mvapich_binding, mvapich_generation, mvapich_settings
from busbw.model.launch import Allocation, LaunchRequest, Start
from busbw.model.machine import MpiLibrary
from busbw.model.plan import Job
from busbw.model.request import Request

name = "mpirun_rsh"

# A value stands in the command of a host's shell as it is, without quotes.
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_@%+=:,./^-]")
# The lists that it hands on by itself.
_HANDED_ON = frozenset(("LD_LIBRARY_PATH",))
# What it sets in each rank.
_OWN = ("MPISPAWN_", "PMI_", "MPIRUN_", "MV2_COMM_WORLD_")
_LAST = 3


def job(start: Start) -> Job:
    """Return the command that starts the ranks. Raises InputError for what mpirun_rsh cannot do."""
    program, mpi = _program(start), _known(start)
    _check_words(start)
    counts = processes_of_hosts(start)
    if not start.placement.is_spread:
        # A host alone needs a name too.
        start = msgspec.structs.replace(start, placement=msgspec.structs.replace(start.placement, hosts=("localhost",)))
    given = _settings(start, mpi)
    plain = {name: value for name, value in given.items() if _NOT_PLAIN.search(value) is None}
    own = library_variables(start, mpi)
    prepend = (*own.prepend, *start.prepend)
    others = {*(given.keys() - plain.keys()), *start.forward, *(each for each, _folder in prepend)} - _HANDED_ON
    file = host_file(start, "{host}:{slots}", counts)
    return Job(
        argv=(
            program,
            *("-np", str(sum(counts))),
            *("-hostfile", path_of(start, file)),
            # All of the environment, through a socket: no shell reads it.
            *(("-export-all",) if others else ()),
            *start.options,
            *(f"{name}={value}" for name, value in plain.items()),
            *variables.adjusting(start, extended=False),
            *start.program.argv,
        ),
        env=tuple((each, value) for each, value in given.items() if each not in plain),
        prepend=prepend,
        links=own.links,
        files=(file,),
        unset=start.unset,
        timeout_s=start.measuring_s + hosts.MPI_GRACE_S,
        stall_s=start.stall_s,
    )


def visit(start: Start) -> Job:
    """Return the command that starts the program on the one host of the placement, over ssh.

    Raises InputError for several hosts.
    """
    return over_remote_shell(start, name)


def _settings(start: Start, mpi: MpiLibrary) -> dict[str, str]:
    given = variables.environment(start)
    wrong = next((each for each in given if each.startswith(_OWN)), None)
    if wrong is not None:
        raise InputError(f"{name} sets this variable itself", where=wrong)
    # What was asked for goes before what busbw binds by.
    return dict(library_variables(start, mpi).env) | mvapich_settings(start) | mvapich_binding(start) | given


def _program(start: Start) -> str:
    if start.launcher_program is None:
        raise InputError(
            "there is no mpirun_rsh here", hint="put the bin folder of MVAPICH2 on PATH, or take --launcher mpirun"
        )
    return start.launcher_program


def _known(start: Start) -> MpiLibrary:
    mpi = start.mpi
    if mpi is None or mpi.family != "MVAPICH":
        raise InputError(
            f"mpirun_rsh starts ranks of MVAPICH2, not of {mpi.family if mpi is not None else 'no MPI'}",
            where=mpi.library if mpi is not None else None,
            hint="load MVAPICH2, or take --launcher mpirun",
        )
    generation = mvapich_generation(mpi)
    if generation is not None and generation > _LAST:
        raise InputError(
            f"MVAPICH {generation} has no mpirun_rsh: Hydra's mpiexec starts its ranks",
            where=mpi.mpirun,
            hint="--launcher mpirun, or an MVAPICH2: --mpi mvapich2",
        )
    return mpi


def _check_words(start: Start) -> None:
    """Raise InputError for words that do not arrive: each is put between single quotes, and nothing else is done."""
    check_arguments(start, name)
    words = start.program.argv
    if any("'" in word for word in words):
        raise InputError(
            "mpirun_rsh puts each word between single quotes for the other hosts' shells, and this one has one",
            where=" ".join(words)[:200],
            hint="start a script that has this word in it",
        )
    if "=" in words[0]:
        raise InputError("mpirun_rsh takes a first word with an equals sign for a setting", where=words[0][:200])
    if start.remote_shell:
        raise InputError(
            "mpirun_rsh has its remote shell built in",
            where=" ".join(start.remote_shell),
            hint="--launcher-option=-launcher and --launcher-option=rsh, or srun, choose one of the three it knows",
        )


def _check(_request: Request, allocation: Allocation) -> None:
    if allocation.kind == "this host":
        raise InputError("mpirun_rsh starts ranks over ssh", hint="name hosts with --hosts, or take --launcher mpirun")


def _words(start: Start, _request: LaunchRequest) -> Job:
    return job(start)


LAUNCHER = RankLauncher(
    name=name,
    job=job,
    program="mpirun_rsh",
    is_tried=False,
    check=_check,
    visit_one=visit,
    words=LaunchWords(job=_words, hosts_of="nobody", usual_mpi="mvapich2"),
)
