"""The hosts of a start: names that can be names, and how many processes each takes."""

import msgspec

from busbw.base.errors import InputError
from busbw.base.hostlist import check_host_name
from busbw.model.launch import Start
from busbw.model.plan import JobFile

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
