"""Rules about ranks that are not like the others: versions and settings."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from busbw.facts.findings import finding
from busbw.logs.case import Case
from busbw.logs.ranks import Member, words
from busbw.model.finding import Finding

# Rank 0 alone has a use for them, or the launcher gives every rank its own.
_DIFFER_RIGHTLY = frozenset(
    {
        "NCCL_COMM_ID",
        "NCCL_DEBUG_FILE",
        "NCCL_GRAPH_DUMP_FILE",
        "NCCL_GRAPH_DUMP_FILE_RANK",
        "NCCL_HOSTID",
        "NCCL_RAS_ADDR",
        "NCCL_TOPO_DUMP_FILE",
        "NCCL_TOPO_DUMP_FILE_RANK",
    }
)
# Who has no network to set up reads none of them.
_READ_BY_SOME = ("NCCL_IB_", "NCCL_NET", "NCCL_SOCKET_", "NCCL_NSOCKS", "NCCL_GDR", "NCCL_TUNER", "NCCL_COLLNET")
_FEW = 3


def difference_findings(case: Case) -> Iterator[Finding]:
    """Yield in what ranks differ that should be alike."""
    versions = {value.split("+")[0]: who for value, who in case.has("version").items()}
    if len(versions) > 1:
        yield finding(
            "LOG020",
            evidence="; ".join(f"{value}: {words(who)}" for value, who in _common_first(versions)),
            fix="make every rank load the same libnccl.so.2: compare images, LD_LIBRARY_PATH and LD_PRELOAD",
            confidence="certain",
        )
    for name, values in sorted(case.settings.items()):
        if name in _DIFFER_RIGHTLY:
            continue
        if len(values) > 1:
            yield _unequal(name, values)
        elif not case.state.leaves_out:
            yield from _alone(case, name, values)


def _unequal(name: str, values: Mapping[str, tuple[Member, ...]]) -> Finding:
    shown = "; ".join(f'"{value}": {words(who)}' for value, who in _common_first(values)[:4])
    return finding(
        "LOG021",
        evidence=shown,
        fix=f"set {name} alike on every rank, or on none",
        confidence="certain",
        name=name,
    )


def _alone(case: Case, name: str, values: Mapping[str, tuple[Member, ...]]) -> Iterator[Finding]:
    """Yield where a few ranks take a variable that the others do not speak of, or the other way round.

    NCCL says what it took when it first needs it, so that one silent rank proves little.
    """
    value = next(iter(values))
    # A process is where a variable is set; those that make no communicator need none.
    settled = {
        process.name: case.people.of_process(process)
        for process in case.state.processes.values()
        if any(seat.started for seat in process.seats.values())
    }
    having = {process.name for process in case.state.processes.values() if name in process.settings} & set(settled)
    lacking = set(settled) - having
    few = having if len(having) <= len(lacking) else lacking
    if not having or not lacking or len(settled) < 2 or (len(few) > _FEW and not _is_one_host(case, few)):
        return
    members = {member for each in few for member in settled[each]}
    if few is having and (0 in members or _are_first_of_hosts(case, few)):
        return
    doubtful = name.startswith(_READ_BY_SOME) or len(settled) == 2
    setting = f'{name} = "{value}"'
    seen = (
        f"{setting} only from {words(members)}, of {len(settled)} processes"
        if few is having
        else f"{setting} from {len(having)} processes, and not from {words(members)}"
    )
    yield finding(
        "LOG022" if doubtful else "LOG021",
        evidence=seen,
        fix=f"set {name} alike on every rank, or on none",
        confidence="possible" if doubtful else "likely",
        name=name,
    )


def _are_first_of_hosts(case: Case, names: set[str]) -> bool:
    """Whether processes are those of the lowest rank of each of their hosts: what is needed once a node they read."""
    first: dict[str, tuple[int, str]] = {}
    by_host: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for rank, (process, _seat) in case.people.seats.items():
        by_host[process.host].append((rank, process.name))
    for host, every in by_host.items():
        first[host] = min(every)
    return bool(first) and names <= {name for _rank, name in first.values()} and len(case.hosts) > 1


def _is_one_host(case: Case, names: set[str]) -> bool:
    """Whether processes are those of one host, of several."""
    return len(case.hosts) > 2 and len({case.state.processes[name].host for name in names}) == 1


def _common_first(values: Mapping[str, tuple[Member, ...]]) -> list[tuple[str, tuple[Member, ...]]]:
    return sorted(values.items(), key=lambda item: (-len(item[1]), item[0]))
