"""What every launcher needs of a start: hosts, CPUs of ranks, the words of the program, how long it may take."""

import shlex
from collections.abc import Callable
from enum import Enum

import msgspec

from busbw.base.cpus import format_cpu_list, parse_cpu_list
from busbw.base.errors import InputError
from busbw.base.hostlist import check_host_name
from busbw.model.launch import Start
from busbw.model.plan import Job, JobFile, Program

HOST_FILE = "hosts"


def processes_of_hosts(start: Start) -> tuple[int, ...]:
    """Return how many processes each host starts, in the order of the hosts.

    Raises InputError for host names that are none or come twice, and for ranks that do not fill the processes.
    """
    placement = start.placement
    for host in placement.hosts if start.placement.is_spread else ():
        check_host_name(host)
    if len(set(placement.hosts)) < len(placement.hosts):
        twice = next(host for host in placement.hosts if placement.hosts.count(host) > 1)
        raise InputError(f"host {twice} is named twice", hint="name it once, with all of its ranks")
    ranks = placement.ranks_of_hosts if start.placement.is_spread else (placement.ranks,)
    if len(ranks) != len(placement.hosts) or sum(ranks) != placement.ranks or min(ranks) < 1:
        raise InputError(f"{placement.ranks} ranks are not those of {len(placement.hosts)} hosts, {ranks}")
    if any(count % start.per_process for count in ranks):
        raise InputError(f"ranks of hosts, {ranks}, do not fill processes of {start.per_process} ranks each")
    return tuple(count // start.per_process for count in ranks)


def even(counts: tuple[int, ...]) -> int | None:
    """Return what all hosts start alike; None where they differ."""
    return counts[0] if len(set(counts)) == 1 else None


def one_each(start: Start) -> Start:
    """Return a start of one process on each host."""
    hosts = start.placement.hosts
    placement = msgspec.structs.replace(
        start.placement,
        ranks=len(hosts),
        ranks_of_hosts=(1,) * len(hosts),
        binding="none",
        masks=(),
        oversubscribed=False,
    )
    return msgspec.structs.replace(start, placement=placement, per_process=1, through_mpi4py=False)


def host_file(start: Start, line: str, counts: tuple[int, ...]) -> JobFile:
    """Return the file that names the hosts and their slots, each as `line` has it: `{host} slots={slots}`."""
    lines = (line.format(host=host, slots=count) for host, count in zip(start.placement.hosts, counts, strict=True))
    return JobFile(path=HOST_FILE, text="".join(f"{each}\n" for each in lines))


def path_of(start: Start, file: JobFile) -> str:
    """Return the path of a file of a job, the same on every host."""
    return f"{start.directory}/{file.path}"


_FILE = "on-cpus"


def cpus_of_ranks(start: Start) -> tuple[tuple[int, ...], ...]:
    """Return the CPUs of each process of a host, in their order.

    Raises InputError for lists that are none, and where a host has more processes than there are lists.
    """
    found = []
    for text in start.placement.masks:
        cpus = parse_cpu_list(text)
        if not cpus:
            raise InputError(f"{text[:80]!r} is not a list of CPUs", hint="a list looks like 0-11,24")
        found.append(cpus)
    most = max(processes_of_hosts(start))
    if len(found) < most:
        raise InputError(f"CPUs are given for {len(found)} ranks of a host, and {most} are to start there")
    return tuple(found[:most])


def binding_program(
    start: Start, variable: str, *, among: int | None = None
) -> tuple[tuple[JobFile, ...], tuple[str, ...]]:
    """Return the file of a program that gives each rank its CPUs, and what the ranks' command line begins with.

    It is for launchers that count in cores or threads of a machine they look at themselves: a rankfile of Open MPI
    means `slot=8` to be the ninth core, or the ninth thread in the order of cores, which is not CPU 8. `variable` is
    where the launcher tells a rank its number on its host; with `among`, its number in all, and how many each host has,
    one host after the other. Nothing without masks.
    """
    if start.placement.binding != "masks":
        return (), ()
    lines = (f"{rank}) cpus={format_cpu_list(cpus)} ;;" for rank, cpus in enumerate(cpus_of_ranks(start)))
    number = f"${{{variable}-}}" if among is None else f"$((${{{variable}:?}} % {among}))"
    text = "\n".join(
        (
            "#!/bin/sh",
            "# Starts a program on the CPUs of its rank: on-cpus PROGRAM [ARGUMENTS]",
            f'case "{number}" in',
            *lines,
            f'*) echo "on-cpus: no CPUs are given for {variable}=${{{variable}-}}" >&2; exit 1 ;;',
            "esac",
            'exec taskset -c "$cpus" "$@"',
        )
    )
    file = JobFile(path=_FILE, text=text + "\n", executable=True)
    return (file,), (path_of(start, file),)


class Role(Enum):
    """Whether ranks measure or a process looks at each host."""

    # Hosts and their slots are in a file; processes work in the run directory.
    MEASURING = "measuring"
    # Everything is in the command line, since the run directory may be what is wrong: full, or gone from a host.
    VISITING = "visiting"


# Start-up, machine rates, verification and ending of a run over MPI.
MPI_GRACE_S = 60.0
# The same where ranks find each other by variables, which may be pods that wait for a name.
JOINING_GRACE_S = 120.0
# A look at every host.
VISIT_S = 60.0
# An answer of a batch system.
SUBMITTING_S = 60.0


# They begin another program wherever they stand.
_SEPARATOR = ":"


def check_arguments(start: Start, launcher: str, taken: frozenset[str] = frozenset()) -> None:
    """Raise InputError for words of the program that `launcher` takes for its own: `taken`, and a colon alone."""
    for word in start.program.argv:
        if word == _SEPARATOR or word in taken:
            raise InputError(
                f"{launcher} does not hand {word!r} on to a program",
                where=" ".join(start.program.argv)[:200],
                hint="start a script that has this word in it",
            )
        if "\0" in word:
            raise InputError("a command line cannot contain NUL", where=" ".join(start.program.argv)[:200])


def visit_each(visit: Callable[[Start], Job], start: Start) -> tuple[Job, ...]:
    """Return the `visit` of a launcher to each host alone: one that is gone does not keep the others from answering.

    Raises InputError as `visit` does.
    """
    return tuple(visit(_only(start, host)) for host in start.placement.hosts)


def _only(start: Start, host: str) -> Start:
    placement = msgspec.structs.replace(start.placement, ranks=1, hosts=(host,), ranks_of_hosts=(1,))
    return msgspec.structs.replace(start, placement=placement, per_process=1)


def over_remote_shell(start: Start, launcher: str) -> Job:
    """Return the command that starts the program once on the one host of the placement, over ssh.

    Raises InputError for several hosts.
    """
    each = one_each(start)
    if len(each.placement.hosts) != 1:
        raise InputError(f"{launcher} starts nothing beside the ranks: hosts are visited one by one")
    shell = start.remote_shell or ("ssh", "-o", "BatchMode=yes")
    return Job(
        argv=(*shell, each.placement.hosts[0], shlex.join(each.program.argv)),
        env=each.program.env,
        timeout_s=VISIT_S,
        stall_s=VISIT_S,
    )


def visit_here(visitor: Program) -> Job:
    """Return the look at this host, which needs no launcher."""
    return Job(argv=visitor.argv, env=visitor.env, timeout_s=VISIT_S, stall_s=VISIT_S)
