"""Nets: speeds that NCCL takes for something else."""

from collections.abc import Iterator

from busbw.facts.findings import finding
from busbw.model.finding import Finding
from busbw.topo.addresses import card
from busbw.topo.file.numerals import read_integer
from busbw.topo.reference import Reference
from busbw.topo.rules.subject import Net, Subject

_LEAST_Mbps = 1_000
_MOST_Mbps = 1_600_000
_MOST_DIFFERENCE = 0.01


def nets(subject: Subject, reference: Reference | None) -> Iterator[Finding]:
    """Yield what is wrong with the speeds of nets."""
    are_merged = reference is not None and ports_of_one_net(subject, reference) > 1
    for net in subject.nets:
        written = net.element.value("speed")
        if written is None:
            continue
        speed_Mbps = read_integer(written) or 0
        if speed_Mbps <= 0:
            yield finding(
                "TOP100",
                evidence=f'speed="{written}"',
                fix="leave it out: NCCL then asks the NIC",
                where=subject.where(net.element, "speed"),
                confidence="certain",
                effect="NCCL takes it for 10 Gb/s",
                name=net.name,
                value=written or '""',
            )
        elif not _LEAST_Mbps <= speed_Mbps <= _MOST_Mbps:
            yield finding(
                "TOP101",
                evidence=f'speed="{written}" is {speed_Mbps / 8000:g} GB/s; the unit is Mb/s',
                fix="leave it out: NCCL then asks the NIC",
                where=subject.where(net.element, "speed"),
                confidence="likely",
                effect="NCCL plans with it",
                name=net.name,
                value=f"{speed_Mbps} Mb/s",
            )
        elif reference is not None and not are_merged:
            yield from _other(subject, net, speed_Mbps, reference)


def ports_of_one_net(subject: Subject, reference: Reference) -> int:
    """Return how many ports of the right machine each net stands for: AWS's plug-in shows those of a GPU as one."""
    shares = set()
    for net in subject.nets:
        right_Mbps = _right_Mbps(net, reference)
        if right_Mbps is not None:
            shares.add((read_integer(net.element.value("speed")) or 0) / right_Mbps)
    share = shares.pop() if len(shares) == 1 else 1
    present = sum(_right_Mbps(net, reference) is not None for net in subject.nets)
    is_whole = share > 1 and len(reference.nics) % share == 0 and share * present <= len(reference.nics)
    return int(share) if is_whole else 1


def _right_Mbps(net: Net, reference: Reference) -> int | None:
    if net.device is None or net.device.bus_id is None:
        return None
    key = card(net.device.bus_id)
    right_Mbps = reference.port_Mbps.get(key)
    return reference.port_Mbps.get(None) if right_Mbps is None and key in reference.nics else right_Mbps


def _other(subject: Subject, net: Net, speed_Mbps: int, reference: Reference) -> Iterator[Finding]:
    right_Mbps = _right_Mbps(net, reference)
    if right_Mbps is None or abs(speed_Mbps - right_Mbps) <= right_Mbps * _MOST_DIFFERENCE:
        return
    yield finding(
        "TOP102",
        evidence=f'speed="{net.element.value("speed")}"; {reference.name} has {right_Mbps}',
        where=subject.where(net.element, "speed"),
        confidence=reference.confidence,
        effect=f"NCCL plans with {speed_Mbps / 8000:g} GB/s instead of {right_Mbps / 8000:g}",
        name=net.name,
        speed=f"{speed_Mbps / 1000:g} Gb/s",
        truth=f"{right_Mbps / 1000:g} Gb/s",
    )
