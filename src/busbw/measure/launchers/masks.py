"""The CPUs of each rank of a host, by the numbers that its kernel gives them."""

from busbw.base.cpus import format_cpu_list, parse_cpu_list
from busbw.base.errors import InputError
from busbw.measure.launchers.hosts import path_of, processes_of_hosts
from busbw.model.launch import Start
from busbw.model.plan import JobFile

_FILE = "on-cpus"


def cpus_of_ranks(start: Start) -> tuple[tuple[int, ...], ...]:
    """Return the CPUs of each process of a host, in their order.

    Raises InputError for lists that are none, and where a host has more processes than there are lists.
    """
    found = []
    for text in start.placement.masks:
        cpus = parse_cpu_list(text)
        if not cpus:
            raise InputError(f"{text[:80]!r} is no list of CPUs", hint="a list looks like 0-11,24")
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
