"""Rules about what happens inside a node: how GPUs reach each other, the topology file, CPUs, NVLink SHARP."""

import re
from collections.abc import Iterator

from busbw.facts.rules import finding
from busbw.logs.case import JobLogs, Way, lines_of, words
from busbw.model.finding import Finding
from busbw.model.platform import Platform

# NCCL looks there by itself, and mostly nothing is.
_DEFAULT_FILE = "/var/run/nvidia-topologyd/"


def node_findings(case: JobLogs) -> Iterator[Finding]:
    """Yield what is wrong inside nodes."""
    inside = [way for way in case.ways if way.place == "within nodes"]
    yield from _host_memory(case, inside)
    yield from _network_inside(case, inside)
    yield from _topology_file(case)
    yield from _affinity(case)
    yield from _nvls(case)


def _host_memory(case: JobLogs, inside: list[Way]) -> Iterator[Finding]:
    through = [way for way in inside if way.via.startswith("SHM")]
    if not through:
        return
    members = {member for way in through for member in way.members}
    direct = any(way.via.startswith("P2P") for way in inside)
    disabled = case.setting("NCCL_P2P_DISABLE")
    level = case.setting("NCCL_P2P_LEVEL")
    links = bool(case.has("NVLink")) or (case.platform is not None and bool(case.platform.nvlink.generation))
    evidence = f"{lines_of(through)} of {words(members)} via {through[0].via}"
    if disabled not in {None, "0"} or level is not None:
        name, value = ("NCCL_P2P_DISABLE", disabled) if disabled not in {None, "0"} else ("NCCL_P2P_LEVEL", level)
        yield finding(
            "LOG010",
            evidence=f'{evidence}; {name} = "{value}"',
            fix=f"unset {name}",
            confidence="certain" if name == "NCCL_P2P_DISABLE" else "likely",
        )
    elif _is_odd(case, through, inside):
        yield finding(
            "LOG010",
            evidence=f"{evidence}, on {', '.join(sorted(case.hosts_of(members)))} alone; the other nodes have P2P",
            fix="compare these nodes with the others: nvidia-smi topo -p2p r must say OK; look at the fabric manager, "
            "MIG, NCCL_P2P_DISABLE and the container",
            confidence="likely",
        )
    elif links:
        yield finding(
            "LOG010",
            evidence=f"{evidence}, on a machine with NVLinks",
            fix="nvidia-smi topo -p2p r must say OK: look at the fabric manager, MIG and the container",
            confidence="likely",
        )
    else:
        yield finding(
            "LOG011",
            evidence=f"{evidence}{', others via P2P' if direct else ''}",
            fix="nvidia-smi topo -m and -p2p r tell whether these GPUs could reach each other",
            confidence="possible",
        )


def _is_odd(case: JobLogs, through: list[Way], inside: list[Way]) -> bool:
    """Whether few nodes have nothing else, and all others have direct ways alone."""
    members = {member for way in through for member in way.members}
    direct = {member for way in inside if way.via.startswith("P2P") for member in way.members}
    return case.are_few_nodes(members) and bool(direct) and not case.hosts_of(members) & case.hosts_of(direct)


def _network_inside(case: JobLogs, inside: list[Way]) -> Iterator[Finding]:
    over = [way for way in inside if way.network is not None and way.via.startswith("NET/")]
    if not over:
        return
    members = {member for way in over for member in way.members}
    switches = [
        f'{name} = "{value}"'
        for name in ("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_NET_DISABLE_INTRA")
        if (value := case.setting(name)) not in {None, "0"}
    ]
    yield finding(
        "LOG012",
        evidence=f"{lines_of(over)} of {words(members)} via {over[0].via}"
        + (f"; {' and '.join(switches)}" if switches else ""),
        fix="unset NCCL_P2P_DISABLE and NCCL_SHM_DISABLE, unless the NICs themselves are to be tested",
        confidence="certain" if switches else "likely",
    )


def _topology_file(case: JobLogs) -> Iterator[Finding]:
    for value, who in case.has("topology file missing").items():
        if not value.startswith(_DEFAULT_FILE):
            yield finding(
                "LOG013",
                evidence=f"{words(who)}: {value}",
                fix="put the file on every node, and into the container, or unset NCCL_TOPO_FILE",
                effect="NCCL goes on with what it sees itself, which in a virtual machine may be too little",
                confidence="certain",
            )


def _affinity(case: JobLogs) -> Iterator[Finding]:
    for value, who in case.has("cpu affinity").items():
        if not value.startswith("empty"):
            continue
        of_gpu, _, of_process = value.removeprefix("empty: GPU ").partition(", process ")
        if of_gpu == "none":
            yield finding(
                "LOG014",
                evidence=f"{words(who)}: the system names no CPUs near the GPU",
                fix="busbw topo masks: bind the ranks yourself, where the machine's layout is known",
                confidence="likely",
            )
        else:
            yield finding(
                "LOG015",
                evidence=f"{words(who)}: bound to CPUs {of_process}, and the GPU's are {of_gpu}",
                fix="busbw topo masks --help: bind each rank to CPUs beside its GPU",
                confidence="certain",
            )


def _nvls(case: JobLogs) -> Iterator[Finding]:
    lacking = case.has("NVLS").get("not available", ())
    platform = case.platform
    if platform is None or not platform.nvlink.nvls or not lacking:
        return
    if case.setting("NCCL_NVLS_ENABLE") == "0":
        return
    yield finding(
        "LOG016",
        evidence=f"{words(lacking)}: NVLS multicast is not available, and {platform.id} has it",
        fix="systemctl status nvidia-fabricmanager, in the driver's version; after a restart of it reset the GPUs "
        "(sudo nvidia-smi -r) or reboot; a container needs the fabric's devices",
        confidence="likely",
    )


# What one channel carries at most in NCCL's search for rings, in bytes per second, by compute capability times ten:
# the first of the speeds it tries within a node (src/graph/search.cc, v2.28.9-1).
_FASTEST = ((100, 90e9), (90, 60e9), (0, 40e9))
_LIMITS = ("NCCL_MAX_NCHANNELS", "NCCL_MAX_NRINGS", "NCCL_MAX_CTAS")
# NVSwitches give many more; GPUs on PCIe mostly have this many.
_FEW = 4
_RAILED = frozenset({"InfiniBand", "RoCE"})
_COUNT = re.compile(r"(\d{1,6}) collective", re.ASCII)


def channel_findings(case: JobLogs) -> Iterator[Finding]:
    """Yield that there are too few channels, or that nothing tells."""
    counts = {
        int(match[1]): who for value, who in case.has("channels").items() if (match := _COUNT.match(value)) is not None
    }
    if not counts or (case.rank_index.ranks or 0) < 2:
        return
    channels = min(counts)
    cause = _cause(case, channels)
    said = f"{words(counts[channels])}: {channels} collective channels{f'; {cause}' if cause else ''}"
    needed = _needed(case, case.platform) if case.platform is not None else None
    if needed is not None:
        least, because = needed
        if channels < least:
            yield finding(
                "LOG017",
                evidence=f"{said}; {because}",
                fix=_fix(cause),
                confidence="certain" if cause else "likely",
                channels=channels,
            )
        return
    doubt = _doubt(case, channels, cause)
    if doubt is not None:
        yield finding(
            "LOG018",
            evidence=f"{said}; {doubt}",
            fix="busbw doctor --platform ID tells, where the machine is known",
            confidence="possible",
            channels=channels,
        )


def _cause(case: JobLogs, channels: int) -> str | None:
    """Return the setting that allows no more channels."""
    for name in _LIMITS:
        value = (case.setting(name) or "").strip()
        if value.isascii() and value.isdecimal() and 0 < int(value[:9]) <= channels:
            return f'{name} = "{value}" allows no more'
    return None


def _needed(case: JobLogs, platform: Platform) -> tuple[int, str] | None:
    """Return how many channels a platform's links need at the least, and why; None: nobody can tell."""
    ranks, nodes = case.rank_index.ranks or 0, case.nodes
    if nodes is None:
        return None
    if nodes == 1:
        return _within(case, platform)
    ports = platform.nic.ports
    if platform.fabric.kind not in _RAILED or not ports or ranks < nodes * max(platform.gpu.count, ports):
        return None
    return ports, f"a node of {platform.id} has {ports} NICs, and one channel fills one NIC at most"


def _within(case: JobLogs, platform: Platform) -> tuple[int, str] | None:
    rate, sm = platform.nvlink.gpu_Bps, platform.gpu.sm
    direct = [way for way in case.ways if way.place == "within nodes" and way.via.startswith("P2P")]
    if not platform.nvlink.switched or rate is None or sm is None or not direct:
        return None
    fastest = next(speed for capability, speed in _FASTEST if sm >= capability)
    least = int(rate // fastest)
    return least, (
        f"a GPU of {platform.id} has {rate / 1e9:g} GB/s of NVLink in each direction, and NCCL plans at most "
        f"{fastest / 1e9:g} GB/s for a channel"
    )


def _doubt(case: JobLogs, channels: int, cause: str | None) -> str | None:
    """Return what in the log makes few channels worth a word."""
    for platform in case.fitting.platforms:
        needed = _needed(case, platform)
        if needed is not None and channels < needed[0]:
            return f"if this is {platform.id}, it needs {needed[0]}: {needed[1]}"
    if cause is not None:
        return "what NCCL would choose itself is not known"
    inside = [way for way in case.ways if way.place == "within nodes"]
    if inside and not any(way.via.startswith("P2P") for way in inside):
        return None  # few channels are what such a way needs, and the way has its own finding
    if case.nodes == 1 and channels <= _FEW and (case.has("NVLink") or "available" in case.has("NVLS")):
        return "GPUs behind NVSwitches mostly have 16 and more, two GPUs with a few links have 2 to 4"
    listed = max((len(re.findall(r"\[\d+\]", value)) for value in case.has("NICs")), default=0)
    full = case.nodes is not None and case.nodes > 1 and (case.rank_index.ranks or 0) >= case.nodes * listed
    if full and channels < listed and "IB" in " ".join(case.has("network")):
        return f"NET/IB lists {listed} NICs, of which some may be for other uses, and one channel fills one NIC at most"
    return None


def _fix(cause: str | None) -> str:
    if cause is not None:
        return f"unset {cause.split(' ', 1)[0]}"
    return (
        "NCCL_DEBUG_SUBSYS=INIT,GRAPH shows what NCCL searched with; GPUs without peer access, a topology file of "
        "another machine and NCCL_CROSS_NIC take channels away"
    )
