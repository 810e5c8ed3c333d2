"""What MPI and NCCL need to find each other: devices and interfaces of the start-up."""

from collections.abc import Iterator

from busbw.env.hca import compute_nics, device_names, frontend_devices
from busbw.env.rules.job import spans_nodes
from busbw.env.rules.situations import Situation
from busbw.env.rules.subject import Subject, report, setting_text, where, where_value
from busbw.model.assignment import Assignment
from busbw.model.finding import Finding
from busbw.model.platform import Platform

_COMPONENTS = ("OMPI_MCA_btl_tcp", "OMPI_MCA_oob_tcp", "PRTE_MCA_oob_tcp", "OMPI_MCA_oob_prte")
_AT_HOME = {"lo", "docker0", "virbr0", "cni0"}


def startup(subject: Subject) -> Iterator[Finding]:
    """Yield what keeps ranks from meeting."""
    platform = subject.context.platform
    for each in subject.reading.assignments:
        if platform is not None and each.name == "UCX_NET_DEVICES" and each.value and not each.computed:
            yield from _devices(each, each.value, platform)
    for situation in subject.situations:
        yield from _both(situation)
        yield from _at_home(subject, situation)


def _devices(each: Assignment, value: str, platform: Platform) -> Iterator[Finding]:
    devices = {*compute_nics(platform), *frontend_devices(platform), *device_names(platform.nic.interfaces)}
    is_verbs = platform.fabric.kind in ("InfiniBand", "RoCE")
    # Interfaces are named by the system: only names of RDMA devices are known well enough.
    rdma = tuple(name for name in devices if name.startswith("mlx"))
    if not is_verbs or not rdma or not compute_nics(platform) or value.startswith("^"):
        return
    for word in value.split(","):
        name = word.strip().partition(":")[0]
        if name.startswith("mlx") and name not in devices and not any(sign in name for sign in "*?["):
            yield report(
                "ENV150",
                at=where_value(each, value.find(word)),
                evidence=f"{setting_text(each)}; {platform.id} has {_few(rdma)}",
                confidence="likely",
                fix=f"one of {_few(rdma)}, or the interface for start-up",
                platform=platform.id,
                device=name,
            )


def _few(names: tuple[str, ...]) -> str:
    ordered = sorted(names, key=lambda name: (len(name), name))
    return ", ".join(ordered) if len(ordered) <= 4 else f"{ordered[0]} to {ordered[-1]}"


def _both(situation: Situation) -> Iterator[Finding]:
    for component in _COMPONENTS:
        including = situation.settings.get(f"{component}_if_include")
        excluding = situation.settings.get(f"{component}_if_exclude")
        if including is not None and excluding is not None:
            yield report(
                "ENV151",
                at=where(excluding),
                evidence=f"{setting_text(including)} and {setting_text(excluding)}",
                effect="mpirun stops at its start",
                fix="one of the two",
                name=including.name,
                other=excluding.name,
            )


def _at_home(subject: Subject, situation: Situation) -> Iterator[Finding]:
    nodes, launch = subject.nodes, situation.launch
    several = spans_nodes(launch, nodes) if launch is not None else nodes is not None and nodes > 1
    each = situation.settings.get("NCCL_SOCKET_IFNAME")
    if not several or each is None or each.value is None:
        return
    if each.value.removeprefix("=") in _AT_HOME:
        yield report(
            "ENV152",
            at=where_value(each),
            evidence=setting_text(each),
            effect="ranks of other nodes wait for an answer from themselves",
            fix="the interface that the nodes reach each other over",
            name=each.name,
            interface=each.value.removeprefix("="),
        )
