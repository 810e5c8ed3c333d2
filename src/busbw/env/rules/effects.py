"""Settings that do nothing, or harm, on the machine they are for."""

from collections.abc import Callable, Iterator

from busbw.env.rules.subject import Subject, report, setting_text, shown, where, where_value
from busbw.model.assignment import Assignment
from busbw.model.finding import Finding
from busbw.model.platform import Platform

# Fabrics whose traffic NCCL's own InfiniBand transport carries.
_VERBS = {"InfiniBand", "RoCE"}
# Fabrics that a plug-in carries, so that settings of that transport are read by nothing.
_PLUGGED = {"EFA": "EFA", "Slingshot": "Slingshot", "TCPX": "GPUDirect-TCPX", "TCPXO": "GPUDirect-TCPXO"}
_ROCE_ONLY = {"NCCL_IB_GID_INDEX", "NCCL_IB_ROCE_VERSION_NUM", "NCCL_IB_ADDR_FAMILY", "NCCL_IB_ADDR_RANGE"}
# What providers are called, the beginning of their names, and the fabrics they are for.
_PROVIDERS = (
    ("FI_CXI_", "Slingshot", {"Slingshot"}),
    ("FI_EFA_", "EFA", {"EFA"}),
    ("NCCL_FASTRAK_", "GPUDirect-TCPXO", {"TCPXO"}),
    ("NCCL_GPUDIRECTTCPX_", "GPUDirect-TCPX", {"TCPX"}),
)
_ON = {"1", "2"}
# The first compute capability whose GPUs take part in NVLink SHARP.
_FIRST_NVLS = 90
_OVER_LIBFABRIC = {"EFA", "Slingshot"}
# aws-ofi-nccl takes three names since 1.12, the first of them in every version.
_NETWORKS = {
    "IB": _VERBS,
    "AWS LIBFABRIC": _OVER_LIBFABRIC,
    "LIBFABRIC": _OVER_LIBFABRIC,
    "OFI": _OVER_LIBFABRIC,
    "FASTRAK": {"TCPXO"},
}


def effects(subject: Subject) -> Iterator[Finding]:
    """Yield settings that this platform makes nothing of, or that take from it what it has."""
    yield from _ucx(subject)
    platform = subject.context.platform
    if platform is None:
        return
    for each in subject.reading.assignments:
        if each.unsets or each.value == "":
            continue
        for look in _LOOKS:
            yield from look(each, platform)
        if subject.nodes != 1:
            yield from _sockets(each, platform)


def _ucx(subject: Subject) -> Iterator[Finding]:
    """Yield UCX settings where no MPI can read them."""
    reading = subject.reading
    is_conf = reading.language == "nccl.conf"
    starters = {launch.kind for launch in reading.launches}
    if not is_conf and (not starters or starters != {"torchrun"}):
        return
    for each in reading.assignments:
        if each.name.startswith("UCX_") and not each.unsets:
            yield report(
                "ENV081",
                at=where(each),
                evidence=setting_text(each),
                effect="NCCL's bandwidth stays as it is",
                confidence="likely",
                fix="leave it out, unless the program itself uses UCX",
                name=each.name,
            )


def _verbs(each: Assignment, platform: Platform) -> Iterator[Finding]:
    fabric = platform.fabric.kind
    if fabric not in _PLUGGED or not each.name.startswith("NCCL_IB_") or each.name == "NCCL_IB_DISABLE":
        return
    yield report(
        "ENV080",
        at=where(each),
        evidence=f"{setting_text(each)}; {platform.id} has {_PLUGGED[fabric]}",
        effect="nothing reads it",
        confidence="likely",
        fix="leave it out",
        name=each.name,
        fabric=_PLUGGED[fabric],
    )


def _nvls(each: Assignment, platform: Platform) -> Iterator[Finding]:
    if each.name != "NCCL_NVLS_ENABLE" or each.value not in _ON:
        return
    cannot = platform.nvlink.nvls is False or (platform.gpu.sm is not None and platform.gpu.sm < _FIRST_NVLS)
    if cannot:
        yield report(
            "ENV082",
            at=where(each),
            evidence=f"{setting_text(each)}; it is about NVLink SHARP, not NVLink, which NCCL_P2P_DISABLE turns off",
            effect="NCCL leaves NVLink SHARP out",
            fix="leave it out",
            name=each.name,
            gpu=platform.gpu.model or platform.id,
        )


def _roce(each: Assignment, platform: Platform) -> Iterator[Finding]:
    if platform.fabric.kind == "InfiniBand" and each.name in _ROCE_ONLY:
        yield report(
            "ENV083",
            at=where(each),
            evidence=setting_text(each),
            effect="no bearing within one subnet",
            confidence="likely",
            fix="leave it out",
            name=each.name,
            platform=platform.id,
        )


def _sharp(each: Assignment, platform: Platform) -> Iterator[Finding]:
    fabric = platform.fabric
    cannot = fabric.sharp is False or fabric.kind in (*_PLUGGED, "RoCE", "Ethernet")
    if cannot and each.name == "NCCL_COLLNET_ENABLE" and each.value == "1":
        yield report(
            "ENV084",
            at=where(each),
            evidence=f"{setting_text(each)}; the fabric is {fabric.kind}",
            effect="NCCL finds no CollNet plug-in and leaves it out",
            confidence="likely",
            fix="leave it out",
            name=each.name,
            platform=platform.id,
        )


def _network(each: Assignment, platform: Platform) -> Iterator[Finding]:
    fabric = platform.fabric.kind
    if each.name != "NCCL_NET" or each.value is None or fabric is None:
        return
    fits = _NETWORKS.get(each.value.upper())
    if fits is not None and fabric not in fits:
        yield report(
            "ENV086",
            at=where_value(each),
            evidence=setting_text(each),
            effect="every rank ends at its start",
            confidence="likely",
            fix="leave it out" if fabric in _VERBS else 'NCCL_NET="AWS Libfabric"' if fabric in _PLUGGED else None,
            network=shown(each.value),
            platform=platform.id,
            fabric=fabric,
        )


def _sockets(each: Assignment, platform: Platform) -> Iterator[Finding]:
    fabric = platform.fabric.kind
    if fabric is None or fabric == "Ethernet":
        return
    off = each.name == "NCCL_IB_DISABLE" and each.value == "1" and fabric in _VERBS
    named = each.name == "NCCL_NET" and (each.value or "").lower() == "socket"
    unplugged = each.name == "NCCL_NET_PLUGIN" and (each.value or "").lower() == "none" and fabric in _PLUGGED
    if off or named or unplugged:
        yield report(
            "ENV087",
            at=where(each),
            evidence=f"{setting_text(each)}; {platform.id} has {fabric}",
            effect="traffic between nodes goes through TCP",
            fix="leave it out",
            name=each.name,
            fabric=fabric,
        )


def _peers(each: Assignment, platform: Platform) -> Iterator[Finding]:
    if each.name == "NCCL_P2P_DISABLE" and each.value == "1" and platform.nvlink.gpu_Bps:
        yield report(
            "ENV088",
            at=where(each),
            evidence=setting_text(each),
            effect="GPUs of a node reach each other through memory or the network",
            fix="leave it out but for a test of the NICs",
            name=each.name,
        )


def _provider(each: Assignment, platform: Platform) -> Iterator[Finding]:
    fabric = platform.fabric.kind
    for beginning, owner, fabrics in _PROVIDERS:
        if fabric is not None and each.name.startswith(beginning) and fabric not in fabrics:
            yield report(
                "ENV089",
                at=where(each),
                evidence=setting_text(each),
                effect="nothing reads it",
                confidence="likely",
                fix="leave it out",
                name=each.name,
                owner=owner,
                platform=platform.id,
                fabric=fabric,
            )


_Look = Callable[[Assignment, Platform], Iterator[Finding]]
_LOOKS: tuple[_Look, ...] = (_verbs, _nvls, _roce, _sharp, _network, _peers, _provider)
