"""What differs between the hosts of a run, and which differences make its numbers those of a mixture."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from busbw.base.hostlist import compressed
from busbw.base.text import listed
from busbw.base.units import format_size
from busbw.base.value import Value
from busbw.model.record import Node

# Libraries of which hosts must have the same one; the others are noted where they differ.
_SAME_LIBRARIES = ("libmpi", "libnccl", "librccl", "libcuda", "libnccl-net", "libucp", "libfabric")
_LIBRARY_NAMES = {
    "libmpi": "MPI", "libnccl": "NCCL", "librccl": "RCCL", "libcuda": "the CUDA driver", "libucp": "UCX",
    "libfabric": "libfabric", "libnccl-net": "NCCL's network plug-in",
}  # fmt: skip
# Set by launchers and batch systems, differently in each process or on each host: how ranks are started and not how
# they send. Those of Open MPI 4 are named by the parts of its launcher.
_PLACES = re.compile(
    r"(?:PRTE_MCA_|PMIX_MCA_|SLURM_"
    r"|OMPI_MCA_(?:orte|ess|plm|routed|oob|rml|grpcomm|state|errmgr|iof|odls|ras|rmaps|regx|schizo|filem)(?:_|$)"
    r"|OMPI_MCA_(?:initial_wdir|mpi_oversubscribe)$"
    # Intel MPI 2021.18's Hydra: the rank's place and CPUs, and what it found of the processor.
    r"|I_MPI_(?:PIN_MAPPING$|PIN_INFO$|INFO_))"
)
# Which GPUs a process is given is its own; how many CUDA shows it is compared.
_RANK_NAMES = frozenset(
    {
        "RANK", "LOCAL_RANK", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES", "MELLANOX_VISIBLE_DEVICES",
    }
)  # fmt: skip
_LONGEST_VALUE = 60
_LONGEST_NAMES = 60
_NOT_SET = "not set"
_NONE = "none"
# Clocks that NTP holds together differ by milliseconds; gathering takes less than this.
_CLOCKS_S = 2.0
_MOST_SENTENCES = 6
# What a process may lock where nobody has set it (Linux, include/uapi/linux/resource.h since 5.16; 64 KiB before).
_DEFAULT_LOCKED_BYTES = 8 * 2**20
_SHOWN_DIGITS = 8


class _Aspect(NamedTuple):
    """One thing that hosts are compared by."""

    what: str
    # Words for a host that has none of it.
    missing: str
    stops: bool


class _Seen(NamedTuple):
    """What one host has of it: as it is compared, and as it is shown."""

    compared: str | None
    shown: str


class Difference(Value, kw_only=True, frozen=True):
    """Something that not all hosts have alike."""

    what: str
    # (what it is, the hosts that have it so), the most hosts first.
    values: tuple[tuple[str, tuple[str, ...]], ...]
    # Numbers of such a run are of a mixture: it does not begin unless that was asked for.
    stops: bool


def is_setting(name: str) -> bool:
    """Whether a variable says how a library sends, and not where a launcher has put a process."""
    return name not in _RANK_NAMES and _PLACES.match(name) is None


def differences(nodes: Sequence[Node]) -> tuple[Difference, ...]:
    """Return what differs between hosts, what stops a run first."""
    aspects = [dict(_aspects(node)) for node in nodes]
    names = dict.fromkeys(name for found in aspects for name in found)
    found = [difference for aspect in names if (difference := _difference(aspect, nodes, aspects)) is not None]
    found.extend(_clocks(nodes))
    return tuple(sorted(found, key=lambda difference: not difference.stops))


def troubles(nodes: Sequence[Node], *, hosts: int, locked_bytes: int) -> tuple[str, ...]:
    """Return what keeps these hosts from being measured together, a sentence each, whether or not they differ.

    `hosts`: how many there should be; `locked_bytes`: how much memory a rank registers with its network device.
    """
    found = []
    if len(nodes) != hosts:
        names = _short(compressed([node.host for node in nodes]), _LONGEST_NAMES)
        found.append(f"the ranks are on {len(nodes)} host{'s' if len(nodes) != 1 else ''} ({names}), {hosts} planned")
    blind = [node.host for node in nodes if not node.sees_directory]
    if blind:
        found.append(f"{_hosts(blind)}: another run directory of the same name: what rank 0 writes there is not seen")
    for node in nodes:
        locked = next((limit.most for limit in node.limits if limit.name == "memlock"), None)
        has_rdma = any("/" in port.name for port in node.ports)
        if has_rdma and locked is not None and locked < locked_bytes and locked <= _DEFAULT_LOCKED_BYTES:
            found.append(
                f"{node.host}: a process may lock {format_size(locked)} of memory (ulimit -l), and the RDMA devices "
                f"there need {format_size(locked_bytes)} of each rank"
            )
    return tuple(found)


def sentence(difference: Difference) -> str:
    """Return a difference in words: `n2: NCCL 2.27.7, the 3 others 2.28.9`."""
    values = difference.values
    if not _has_majority(values):
        parts = ", ".join(f"{value} on {_hosts(hosts)}" for value, hosts in values)
        return f"{difference.what} differs: {parts}"
    (usual, most), odd = values[0], values[1:]
    parts = "; ".join(f"{_hosts(hosts)}: {difference.what} {value}" for value, hosts in odd)
    return f"{parts}, the {len(most)} others {usual}"


def sentences(found: Sequence[Difference]) -> str:
    """Return the first differences in words, and how many there are more."""
    return listed(map(sentence, found), _MOST_SENTENCES, between="; ")


def _aspects(node: Node) -> Iterator[tuple[_Aspect, _Seen]]:
    for what, value, stops in (
        ("busbw", f"{node.busbw} ({node.busbw_fingerprint})", True),
        ("MPI", node.mpi, True),
        ("GPUs", str(len(node.gpus)), True),
        ("GPUs that CUDA shows", _told(node.cuda_devices), True),
        ("Python", node.python, False),
        ("mpi4py", _told(node.mpi4py), False),
        ("processor", _told(node.cpu_model), False),
        ("CPUs", str(node.cpus), False),
        ("NUMA nodes", str(node.numa_nodes), False),
        ("threads of a core", _told(node.threads_per_core), False),
        # What the kernel keeps for itself differs by some MiB from boot to boot.
        ("memory", format_size(round(node.memory_bytes / 2**30) * 2**30), False),
        ("kernel", node.kernel, False),
        ("governor", _told(node.governor), False),
        ("NUMA balancing", _told(node.numa_balancing), False),
        ("CPU quota", f"{node.cpu_quota:g} CPUs" if node.cpu_quota is not None else _NONE, False),
        ("shared memory", format_size(round(node.shared_memory_bytes / 2**20) * 2**20), False),
    ):
        yield _Aspect(what, _NONE, stops), _Seen(value, value)
    yield from _library_aspects(node)
    for name, setting in node.environment:
        if is_setting(name):
            yield _Aspect(name, _NOT_SET, stops=True), _Seen(setting, f'"{_short(setting, _LONGEST_VALUE)}"')
    for path, fingerprint in node.settings_files:
        yield _Aspect(path, "not there", stops=True), _Seen(fingerprint, f"of content {fingerprint}")
    for limit in node.limits:
        most = str(limit.most) if limit.most is not None else "unlimited"
        yield _Aspect(f"limit of {limit.name}", _NONE, stops=False), _Seen(most, most)
    for port in node.ports:
        state = {True: "up", False: "down", None: "not told"}[port.up]
        words = f"{state}, {port.rate}" if port.rate else state
        yield _Aspect(f"port {port.name}", "not there", stops=False), _Seen(words, words)


def _library_aspects(node: Node) -> Iterator[tuple[_Aspect, _Seen]]:
    for library in node.libraries:
        what = _LIBRARY_NAMES.get(library.name, library.name)
        # Its version says of itself what MPI it is, and is compared before.
        version = f"{library.version} " if library.version is not None and library.name != "libmpi" else ""
        shown = f"{version}at {library.path}, build {library.fingerprint[:_SHOWN_DIGITS]}"
        yield _Aspect(what, _NONE, library.name in _SAME_LIBRARIES), _Seen(library.fingerprint, shown)


def _difference(aspect: _Aspect, nodes: Sequence[Node], aspects: Sequence[dict[_Aspect, _Seen]]) -> Difference | None:
    absent = _Seen(None, aspect.missing)
    seen = [found.get(aspect, absent) for found in aspects]
    counts = Counter(one.compared for one in seen)
    if len(counts) == 1:
        return None
    shown = {one.compared: one.shown for one in reversed(seen)}
    return Difference(
        what=aspect.what,
        values=tuple(
            (shown[value], tuple(node.host for node, one in zip(nodes, seen, strict=True) if one.compared == value))
            for value, _count in counts.most_common()
        ),
        stops=aspect.stops,
    )


def _clocks(nodes: Sequence[Node]) -> Iterator[Difference]:
    """Yield the hosts whose time of day is not that of the middle one."""
    middle = sorted(node.unix_s for node in nodes)[len(nodes) // 2]
    off: dict[str, list[str]] = {}
    for node in nodes:
        apart_s = node.unix_s - middle
        words = "right" if abs(apart_s) <= _CLOCKS_S else f"{abs(apart_s):.0f} s {'fast' if apart_s > 0 else 'slow'}"
        off.setdefault(words, []).append(node.host)
    if len(off) > 1:
        values = sorted(off.items(), key=lambda pair: -len(pair[1]))
        yield Difference(what="clock", values=tuple((words, tuple(hosts)) for words, hosts in values), stops=False)


def _has_majority(values: Sequence[tuple[str, tuple[str, ...]]]) -> bool:
    return 2 * len(values[0][1]) > sum(len(hosts) for _value, hosts in values)


def _hosts(names: Sequence[str]) -> str:
    return _short(compressed(names), _LONGEST_NAMES)


def _told(value: str | int | None) -> str:
    return str(value) if value is not None else "not told"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."
