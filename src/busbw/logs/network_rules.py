"""Rules about the network between nodes: which one is used, whether it is the right one, whether it reaches GPUs."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from busbw.base.text import listed
from busbw.base.units import format_rate
from busbw.facts.rules import finding
from busbw.limits.ceiling import ceiling
from busbw.limits.rates import rates_of_platform
from busbw.logs.case import JobLogs, Way, lines_of, words
from busbw.logs.differentials import differential_called
from busbw.logs.excerpts import lines_of as excerpt_lines
from busbw.logs.lines import DIRECT
from busbw.logs.troubles import TroubleEvent
from busbw.model.finding import Finding
from busbw.model.platform import Platform


class NetworkBound(NamedTuple):
    """Bus bandwidth of a ring between nodes at best, and where the number comes from."""

    rate_Bps: float
    words: str


def network_reach(platform: Platform, nodes: int) -> NetworkBound | None:
    """Return what a ring over the platform's own network can reach; None: it cannot be told."""
    if platform.kind != "gpu" or platform.gpu.count < 1 or nodes < 2:
        return None
    limit = ceiling(rates_of_platform(platform), nodes=nodes, collective="all_reduce", algorithm="ring")
    bound = limit.bounds[0]
    if bound.busbw_Bps is None:
        return None
    return NetworkBound(bound.busbw_Bps, f"busbw limit --platform {platform.id} --nodes {nodes}")


def socket_reach(platform: Platform) -> NetworkBound | None:
    """Return what a ring over the platform's other network can reach; None: nobody has published its rate."""
    rate_bps = platform.frontend.usable_bps or platform.frontend.rate_bps
    if rate_bps is None:
        return None
    return NetworkBound(
        rate_bps / 8, f"the other network's {rate_bps / 1e9:g} Gb/s ({', '.join(platform.frontend.source)})"
    )


def socket_words(platform: Platform | None, nodes: int) -> str | None:
    """Return what sockets cost on a platform, with the sources of both numbers; None: it is not known."""
    if platform is None:
        return None
    network, sockets = network_reach(platform, nodes), socket_reach(platform)
    if network is None:
        return None
    instead = f"instead of at most {format_rate(network.rate_Bps)} ({network.words})"
    if sockets is None:
        return f"expect what TCP gives over one interface {instead}; the rate of that interface is not published"
    return f"expect at most {format_rate(sockets.rate_Bps)} ({sockets.words}) {instead}"


# The pattern of PyTorch's store, which ranks look for before NCCL starts.
STORE = "store-unreached"
NEVER_MADE = frozenset({"connect-failed", "connect-given-up", STORE})
_ODD_INTERFACE = re.compile(r"lo$|docker|virbr|veth|br-|cni|flannel|cali|tun\d|tailscale", re.ASCII)
_MOST_PEERS = 4
# The address that Docker's bridge has on every host, and libvirt's: whoever connects to it reaches himself.
_OF_A_BRIDGE = re.compile(r"\b(?:172\.17\.0\.1|192\.168\.122\.1|169\.254\.\d{1,3}\.\d{1,3})\b")
_BRIDGED = (
    "the address is that of Docker's or libvirt's bridge, or link-local, which each host has for itself: name the "
    "network that joins the hosts: UCX_NET_DEVICES for UCX, "
    "--mca btl_tcp_if_include SUBNET/BITS for Open MPI, NCCL_SOCKET_IFNAME for NCCL"
)


def leads_nowhere(interface: str) -> bool:
    """Whether an interface is of a kind that exists on every node and joins none."""
    return _ODD_INTERFACE.match(interface) is not None


def unreachable_finding(case: JobLogs, reports: Sequence[TroubleEvent]) -> Finding | None:
    """Return that connections could not be made; None where others were made and broke before."""
    failed = [event for event in reports if event.pattern is not None and event.pattern.id in NEVER_MADE]
    broken = [event for event in reports if event.pattern is not None and event.pattern.id == "peer-gone"]
    if not failed:
        return None
    first = min(failed, key=_order)
    is_ordered = len({event.source for event in reports}) == 1 or all(event.time is not None for event in reports)
    if broken and not (is_ordered and _order(first) < min(map(_order, broken))):
        return None
    peers = sorted({event.groups["peer"].rstrip(",.") for event in failed if "peer" in event.groups})
    to = f" to {listed(peers, _MOST_PEERS)}" if peers else ""
    who = words(member for event in failed for member in case.who(event)) or "somebody"
    # Nobody listens at a right address; at a wrong one a stranger refuses.
    refused = all("refused" in event.text for event in failed) and not any(map(leads_nowhere, case.has("bootstrap")))
    bridged = refused and any(_OF_A_BRIDGE.search(event.text) for event in failed)
    # NCCL's own connections come later.
    store = first.pattern.fix if first.pattern is not None and first.pattern.id == STORE else None
    return finding(
        "LOG037",
        evidence=f"{who}: no connection{to} could be made; {_interfaces(case)}the first: {first.text}",
        fix=store if store is not None else _first_look(refused=refused, bridged=bridged),
        place=case.place_of(first),
        confidence="possible" if refused else "likely",
        causes=differential_called(case, "unreachable", first.text) if store is None else (),
    )


def _first_look(*, refused: bool, bridged: bool) -> str:
    if bridged:
        return _BRIDGED
    if refused:
        return "nothing listens there: look whether that rank has ended, or was started at all"
    return (
        "set NCCL_SOCKET_IFNAME to the interface that joins the nodes, as `ip -br address` shows it on both, and let "
        "TCP through between them on all ports: `nc -z ADDRESS PORT`"
    )


def _order(event: TroubleEvent) -> tuple[str, int, int]:
    return (event.time or "", event.source, event.line)


def _interfaces(case: JobLogs) -> str:
    """Return over which interfaces ranks look for each other."""
    used = case.has("bootstrap")
    if not used:
        return ""
    shown = "; ".join(f"{name} ({words(who)})" for name, who in used.items())
    return f"ranks give addresses of {next(iter(used)) if len(used) == 1 else shown}; "


# Names of networks, as NCCL logs them, by the kind of fabric that they are for.
_FITTING = {
    "InfiniBand": ("ib", "ucx", "sharp"),
    "RoCE": ("ib", "ucx", "gib"),
    "EFA": ("aws libfabric", "libfabric", "ofi", "gda"),
    "Slingshot": ("aws libfabric", "libfabric", "ofi", "cxi"),
    "TCPX": ("gpudirecttcpx",),
    "TCPXO": ("fastrak", "gpudirecttcpxo"),
}
_NEEDS_PLUGIN = {
    "EFA": "aws-ofi-nccl",
    "Slingshot": "aws-ofi-nccl",
    "TCPX": "Google's GPUDirect-TCPX",
    "TCPXO": "Google's GPUDirect-TCPXO",
}
# Their lines do not tell whether the GPU's memory is reached.
_TELLS_NOTHING = ("gpudirecttcpx", "fastrak")
_NO_DEVICE = (
    "ibv_devinfo, on a node and in the container, must show ports that are up (a container needs /dev/infiniband); "
    "on EFA, Slingshot and TCPX the network's plug-in must be installed"
)
# Each 1 takes one of the ways between GPUs of one host; with both gone only the network is left.
_WAYS_WITHIN = ("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE")
_TOO_FAR = (
    "busbw topo show --here: a NIC below another CPU or switch than the GPU; in a virtual machine NCCL needs the "
    "platform's topology file"
)


def network_findings(case: JobLogs) -> Iterator[Finding]:
    """Yield what is wrong with the network of a job."""
    yield from _plugins(case)
    yield from _nics(case)
    if case.fitting.platforms:
        yield finding(
            "LOG019",
            evidence=f"{case.fitting.because}; other machines may look the same",
            fix="busbw doctor --platform ID, where it is so, also says which NICs and channels are missing",
            confidence="possible",
            platforms=" or ".join(platform.id for platform in case.fitting.platforms),
        )
    if not case.spans_nodes:
        yield from _no_device(case)
        return
    used = _networks(case)
    if "Socket" in used:
        yield from _sockets(case, used)
    if len(used) > 1:
        yield finding(
            "LOG002",
            evidence="; ".join(f"{name}: {words(who)}" for name, who in used.items()),
            fix="give all ranks the same image, the same plug-in, and the same NCCL_NET and NCCL_IB_HCA",
            confidence="certain",
            count=len(used),
        )
    yield from _wrong_network(case, used)
    yield from _direct(case)
    yield from _bootstrap(case)


def _no_device(case: JobLogs) -> Iterator[Finding]:
    """Yield that there is no RDMA device, where nothing in the log crosses nodes and shows what that costs."""
    who = case.has("network").get("Socket", ())
    lacks = _lacks_device(case) if who and _asked_for_sockets(case) is None else None
    if lacks is None or (case.platform is not None and case.platform.fabric.kind == "Ethernet"):
        return
    cause, fix = lacks
    yield finding(
        "LOG046",
        evidence=f"{words(who)}: {cause}",
        fix=f"where the node has RDMA NICs: {fix}",
        effect="on several nodes all traffic between them would go over TCP",
        confidence="certain",
    )


def _networks(case: JobLogs) -> dict[str, tuple[int | str, ...]]:
    """Return the networks that ranks say they use; where none says, those that connections go over."""
    said = dict(case.has("network"))
    return said or {way.network: tuple(way.members) for way in case.ways if way.network is not None}


def _sockets(case: JobLogs, used: dict[str, tuple[int | str, ...]]) -> Iterator[Finding]:
    kind = case.platform.fabric.kind if case.platform is not None else None
    if kind == "Ethernet":
        return
    between = [way for way in case.ways if way.place == "between nodes"]
    # Ranks may say Socket and reach each other over NVLinks all the same.
    if between and not any(way.network == "Socket" for way in between):
        return
    # One host that the network was forced on is no fabric: NCCL then counts each GPU as a node.
    if not between and len(case.hosts) == 1 and all(case.setting(name) == "1" for name in _WAYS_WITHIN):
        return
    cause, fix = _why_sockets(case, kind)
    share = "all" if len(used) == 1 else "part of the"
    seen = f"{lines_of(way for way in between if way.network == 'Socket')} via NET/Socket; " if between else ""
    yield finding(
        "LOG001",
        evidence=f"{seen}{cause}",
        fix=fix,
        effect=_socket_words(case),
        confidence="certain" if between else "likely",
        share=share,
    )


def _socket_words(case: JobLogs) -> str | None:
    """Return what sockets cost; on a machine that the log only looks like with that condition."""
    nodes = case.nodes or len(case.hosts)
    if case.platform is not None:
        return socket_words(case.platform, nodes)
    for platform in case.fitting.platforms:
        said = socket_words(platform, nodes)
        if said is not None:
            return f"if this is {platform.id}: {said}"
    return None


def _why_sockets(case: JobLogs, kind: str | None) -> tuple[str, str]:
    """Return why NCCL took sockets, and what to do."""
    return (
        _asked_for_sockets(case)
        or _lacks_plugin(case, kind)
        or _lacks_provider(case)
        or _lacks_device(case)
        or ("the log does not say why", "run again with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,NET,ENV")
    )


def _asked_for_sockets(case: JobLogs) -> tuple[str, str] | None:
    if (case.setting("NCCL_NET") or "").lower() == "socket":
        return 'NCCL_NET = "Socket" asks for them', "unset NCCL_NET"
    if case.setting("NCCL_IB_DISABLE") not in {None, "0"}:
        return (
            f'NCCL_IB_DISABLE = "{case.setting("NCCL_IB_DISABLE")}" turns InfiniBand and RoCE off',
            "unset NCCL_IB_DISABLE",
        )
    return None


def _lacks_plugin(case: JobLogs, kind: str | None) -> tuple[str, str] | None:
    missing = [*case.has("net plugin missing"), *case.has("net plugin unusable")]
    plugin = _NEEDS_PLUGIN.get(kind or "")
    if plugin is not None and missing:
        return (
            f"the plug-in was not found or cannot be used ({missing[0]}); {kind} needs {plugin}",
            f"install {plugin} for this version of NCCL and put its folder into LD_LIBRARY_PATH on every node",
        )
    return None


def _lacks_provider(case: JobLogs) -> tuple[str, str] | None:
    for event in case.events:
        if event.pattern is not None and event.pattern.id == "ofi-no-provider":
            return f"{event.what} ({case.place_of(event)})", event.pattern.fix
    return None


def _lacks_device(case: JobLogs) -> tuple[str, str] | None:
    libraries = list(case.has("library missing"))
    if libraries:
        return (
            f"{libraries[0]} could not be opened",
            "where the nodes have RDMA NICs: install rdma-core (libibverbs1, ibverbs-providers) in the image",
        )
    listed = case.setting("NCCL_IB_HCA")
    if listed is not None and "none" in case.has("InfiniBand"):
        return (
            f'no NIC is left: NCCL_IB_HCA = "{listed}" may match no device of this node',
            "compare it with the names that ibv_devinfo prints; without it NCCL takes all that are up",
        )
    if "none" in case.has("InfiniBand"):
        missing = list(case.has("net plugin missing"))
        also = f"; the plug-in was not found ({missing[0]})" if missing else ""
        return (
            f"NCCL found no RDMA device{also}",
            _NO_DEVICE,
        )
    failed = list(case.has("network failed"))
    if failed:
        return f"the network {failed[0]} failed at its start", "NCCL_DEBUG_SUBSYS=INIT,NET says why"
    return None


def _wrong_network(case: JobLogs, used: dict[str, tuple[int | str, ...]]) -> Iterator[Finding]:
    kind = case.platform.fabric.kind if case.platform is not None else None
    if case.platform is None or kind not in _FITTING:
        return
    for name, who in used.items():
        if name != "Socket" and not name.lower().startswith(_FITTING[kind]):
            yield finding(
                "LOG003",
                evidence=f"{words(who)}: Using network {name}",
                fix=f"look for the plug-in of {kind} on these nodes, and at NCCL_NET",
                confidence="likely",
                name=name,
                platform=case.platform.id,
                kind=kind,
            )


_LONGEST_LINE = 600
# Both ends log a connection. Where the sender's NIC reads from a GPU, the receiver's can write into one unless its host
# lacks the module; the reverse is a setting (NCCL_NET_GDR_READ).
_END = re.compile(
    r"(?P<host>[\w.-]{1,253}):\d{1,10}:\d{1,10} \[\d{1,3}\] NCCL INFO (?P<pair>(?:Channel|Ring) [\d/]{2,9} ?: \d{1,7}"
    r"(?:\[\w{1,12}\])? -> \d{1,7}(?:\[\w{1,12}\])?) \[(?P<end>send|receive)\] via NET/(?!Socket)[^/\s]{1,60}/\d{1,4}"
    r"(?P<direct>/GDRDMA\b)?",
    re.ASCII,
)


def _staged_hosts(case: JobLogs) -> dict[str, str]:
    """Return the hosts that receive through their memory what a NIC elsewhere reads from a GPU, and from which host."""
    if len({way.is_direct for way in case.ways if way.via.startswith("NET/")}) < 2:
        return {}
    sent: dict[str, str] = {}
    received: dict[str, str] = {}
    direct: set[str] = set()
    for _source, _number, line in excerpt_lines(case.excerpts):
        match = _END.search(line[:_LONGEST_LINE]) if "] via NET/" in line else None
        if match is None:
            continue
        if match["direct"]:
            direct.add(match["host"])
            if match["end"] == "send":
                sent[match["pair"]] = match["host"]
        elif match["end"] == "receive":
            received[match["pair"]] = match["host"]
    return {
        host: sent[pair]
        for pair, host in sorted(received.items())
        if pair in sent and host not in direct and host != sent[pair]
    }


def _direct(case: JobLogs) -> Iterator[Finding]:
    staged = _staged_hosts(case)
    over: list[Way] = [
        way
        for way in case.ways
        if (way.place == "between nodes" or (staged and way.place == "unknown"))
        and way.via.startswith("NET/")
        and way.network != "Socket"
        and not (way.network or "").lower().startswith(_TELLS_NOTHING)
    ]
    without = [way for way in over if not way.is_direct]
    if not without:
        return
    lines, of = sum(way.lines for way in without), sum(way.lines for way in over)
    members = {member for way in without for member in way.members}
    cause, fix = _why_staged(case, staged)
    yield finding(
        "LOG004",
        evidence=f"{lines} of {of} connections between nodes, of {words(members)}, are without GDRDMA; {cause}",
        fix=fix,
        effect="what is sent goes through the memory of the host, which costs time and part of the bandwidth",
        confidence="certain",
        share="no" if lines == of else "not every",
    )


def _why_staged(case: JobLogs, staged: dict[str, str]) -> tuple[str, str]:
    if staged:
        hosts = listed(sorted(staged))
        other = next(iter(staged.values()))
        cause = (
            f"no connection of {hosts} is, though {other} sends directly to it: mostly the module is not loaded there "
            "that lets a NIC reach a GPU's memory"
        )
        fix = (
            f"modprobe nvidia_peermem (nv_peer_mem on old drivers) on {hosts}; compare `lsmod | grep peer` and the "
            f"driver with those on {other}"
        )
        return cause, fix
    level = case.setting("NCCL_NET_GDR_LEVEL")
    if level is not None:
        return f'NCCL_NET_GDR_LEVEL = "{level}" sets how far a NIC may be', "unset NCCL_NET_GDR_LEVEL"
    if any(name.startswith(DIRECT) and "Disabled" in values for name, values in case.facts.items()):
        return (
            "the NIC's driver cannot register a GPU's memory",
            "modprobe nvidia_peermem on every host, or a kernel and driver with dma-buf; then start the job again",
        )
    if "Disabled" in case.has("GPUDirect RDMA with a NIC"):
        return (
            "NCCL finds the NIC too far from the GPU",
            _TOO_FAR,
        )
    return (
        "the log does not say why",
        "lsmod | grep nvidia_peermem on a node; and run again with NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH",
    )


def _plugins(case: JobLogs) -> Iterator[Finding]:
    for name, setting in (("net", "NCCL_NET_PLUGIN"), ("tuner", "NCCL_TUNER_PLUGIN")):
        for value, who in case.has(f"{name} plugin unusable" if name == "net" else "tuner unusable").items():
            yield finding(
                "LOG005",
                evidence=f"{words(who)}: no function table in {value} is known to this version of NCCL",
                fix="build or install the plug-in for this version of NCCL",
                confidence="certain",
                name=value,
            )
        wanted = case.setting(setting)
        missing = case.has(f"{name} plugin missing" if name == "net" else "tuner missing")
        if wanted is not None and wanted.lower() != "none" and missing:
            yield finding(
                "LOG005",
                evidence=f'{setting} = "{wanted}", and {words(w for each in missing.values() for w in each)} '
                f"did not find {next(iter(missing))}",
                fix=f"put its folder into LD_LIBRARY_PATH on every node, or unset {setting}",
                confidence="certain",
                name=wanted,
            )


def _nics(case: JobLogs) -> Iterator[Finding]:
    counts: dict[int, list[int | str]] = {}
    for value, who in case.has("NICs").items():
        counts.setdefault(len(re.findall(r"\[\d+\]", value)), []).extend(who)
    if len(counts) > 1:
        yield finding(
            "LOG006",
            evidence="; ".join(f"{count}: {words(who)}" for count, who in sorted(counts.items(), reverse=True)),
            fix="ibv_devinfo and ibstat on the nodes with fewer: a port that is down, or kept from the container",
            confidence="certain",
        )
    has = case.platform.nic.ports if case.platform is not None else None
    if case.platform is None or not counts or not has or case.setting("NCCL_IB_HCA") is not None:
        return
    if max(counts) < has and "Socket" not in case.has("network"):
        yield finding(
            "LOG007",
            evidence=f"NET/IB lists {max(counts)}, and a node of {case.platform.id} has {has}",
            fix="ibstat on a node: ports that are down; in a container: all of /dev/infiniband",
            confidence="likely",
        )


def _bootstrap(case: JobLogs) -> Iterator[Finding]:
    for interface, who in case.has("bootstrap").items():
        if leads_nowhere(interface):
            yield finding(
                "LOG008",
                evidence=f"{words(who)}: {interface} is where they look for the others",
                fix="set NCCL_SOCKET_IFNAME to the interface that joins the nodes, as `ip -br address` shows it",
                confidence="likely",
                interface=interface,
            )
