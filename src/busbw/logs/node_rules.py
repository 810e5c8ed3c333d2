"""Rules about what happens inside a node: how GPUs reach each other, the topology file, CPUs, NVLink SHARP."""

from collections.abc import Iterator

from busbw.facts.findings import finding
from busbw.logs.case import Case
from busbw.logs.ranks import words
from busbw.logs.traffic import Way, lines_of
from busbw.model.finding import Finding

# NCCL looks there by itself, and mostly nothing is.
_DEFAULT_FILE = "/var/run/nvidia-topologyd/"


def node_findings(case: Case) -> Iterator[Finding]:
    """Yield what is wrong inside nodes."""
    inside = [way for way in case.ways if way.place == "within nodes"]
    yield from _host_memory(case, inside)
    yield from _network_inside(case, inside)
    yield from _topology_file(case)
    yield from _affinity(case)
    yield from _nvls(case)


def _host_memory(case: Case, inside: list[Way]) -> Iterator[Finding]:
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


def _is_odd(case: Case, through: list[Way], inside: list[Way]) -> bool:
    """Whether few nodes have nothing else, and all others have direct ways alone."""
    members = {member for way in through for member in way.members}
    direct = {member for way in inside if way.via.startswith("P2P") for member in way.members}
    return case.are_few_nodes(members) and bool(direct) and not case.hosts_of(members) & case.hosts_of(direct)


def _network_inside(case: Case, inside: list[Way]) -> Iterator[Finding]:
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


def _topology_file(case: Case) -> Iterator[Finding]:
    for value, who in case.has("topology file missing").items():
        if not value.startswith(_DEFAULT_FILE):
            yield finding(
                "LOG013",
                evidence=f"{words(who)}: {value}",
                fix="put the file on every node, and into the container, or unset NCCL_TOPO_FILE",
                effect="NCCL goes on with what it sees itself, which in a virtual machine may be too little",
                confidence="certain",
            )


def _affinity(case: Case) -> Iterator[Finding]:
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


def _nvls(case: Case) -> Iterator[Finding]:
    lacking = case.has("NVLS").get("not available", ())
    platform = case.platform
    if platform is None or not platform.nvlink.nvls or not lacking:
        return
    if case.setting("NCCL_NVLS_ENABLE") == "0":
        return
    yield finding(
        "LOG016",
        evidence=f"{words(lacking)}: NVLS multicast is not available, and {platform.id} has it",
        fix="systemctl status nvidia-fabricmanager, in the driver's version; a container needs the fabric's devices",
        confidence="likely",
    )
