"""What a topology file is held against: what is known of the right machine, from a platform or a host."""

from dataclasses import dataclass, field
from typing import Literal

from busbw.base.cpus import parse_cpu_list
from busbw.model.finding import Confidence
from busbw.model.host import Hardware, PciFunction
from busbw.model.platform import Platform
from busbw.topo.buses import GENERATION_GTps, canonical, card, real_family, transfer_GTps

_Mbps = 1e6
# The low digit of a GUID counts ports and functions of one card.
_GUID_PORTS = 4
# A true one has its maker in the first three bytes, and a device number in the last, whichever way round.
_LEAST_GUID = 1 << 32


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyReference:
    """Everything a file can be held against; what is not known is None, or missing from its mapping."""

    name: str
    # resembles: nobody named it; the addresses of the file are like its addresses.
    kind: Literal["platform", "host", "resembles"]
    # NUMA node of each GPU by bus id, and of each NIC by the address of its card; None: not known.
    gpus: dict[str, int | None] = field(default_factory=dict)
    nics: dict[str, int | None] = field(default_factory=dict)
    # Whether these are all there are.
    has_all_gpus: bool = False
    gpu_count: int | None = None
    has_all_nics: bool = False
    # Every PCI address of a host; empty: not known.
    addresses: frozenset[str] = frozenset()
    # CPUs of each NUMA node, and of the machine.
    masks: dict[int, tuple[int, ...]] = field(default_factory=dict)
    cpus: frozenset[int] | None = None
    # Cards that are nearest to each GPU, and those that are so by a switch they share with it.
    nearest: dict[str, frozenset[str]] = field(default_factory=dict)
    switched: dict[str, frozenset[str]] = field(default_factory=dict)
    # Links that the machine has, by bus id or card, or of all GPUs; and what its vendor's file says on purpose.
    rates_GTps: dict[str, float] = field(default_factory=dict)
    gpu_GTps: float | None = None
    written_GTps: float | None = None
    link_width: int | None = None
    gpu_model: str | None = None
    # Compute capability times ten; and the processor, the family as the maker counts it.
    sm: int | None = None
    cpu_vendor: str | None = None
    cpu_family: int | None = None
    cpu_model: int | None = None
    nvlinks_per_gpu: int | None = None
    # By card; None as key: every port.
    port_Mbps: dict[str | None, int] = field(default_factory=dict)
    # Without their lowest digit, as NCCL numbers them and as the tools print them.
    guids: frozenset[int] = frozenset()

    @property
    def confidence(self) -> Confidence:
        """How sure a conclusion from it is."""
        return "likely" if self.kind == "resembles" else "certain"


def reference_of_platform(platform: Platform, kind: Literal["platform", "resembles"] = "platform") -> TopologyReference:
    """Return what is published of a platform."""
    gpus = {_known(place.bus_id): place.numa for place in platform.gpus if place.bus_id is not None}
    nics = {card(_known(place.bus_id)): place.numa for place in platform.nics if place.bus_id is not None}
    masks = {place.id: parse_cpu_list(place.cpus) or () for place in platform.numa if place.cpus is not None}
    complete = bool(masks) and len(masks) == len(platform.numa)
    generation = platform.pcie.generation
    return TopologyReference(
        name=platform.id,
        kind=kind,
        gpus=gpus,
        nics=nics,
        has_all_gpus=bool(gpus) and len(gpus) == platform.gpu.count,
        gpu_count=platform.gpu.count or None,
        has_all_nics=bool(nics) and all(place.bus_id is not None for place in platform.nics),
        masks=masks,
        cpus=_every_cpu(platform, masks) if complete else None,
        nearest=_nearest_of_platform(platform),
        switched=_switched_of_platform(platform),
        gpu_GTps=GENERATION_GTps.get(generation) if generation is not None else None,
        written_GTps=platform.pcie.written_GTps,
        link_width=platform.pcie.width,
        gpu_model=platform.gpu.model,
        sm=platform.gpu.sm,
        cpu_vendor=platform.cpu.vendor,
        cpu_family=real_family(platform.cpu.vendor, platform.cpu.family),
        cpu_model=platform.cpu.model_number,
        nvlinks_per_gpu=platform.nvlink.links_per_gpu,
        port_Mbps=_ports_of_platform(platform),
    )


def reference_of_host(hardware: Hardware) -> TopologyReference:
    """Return what a host's kernel and drivers say of it."""
    functions = {function.bus_id: function for function in hardware.pci}
    nics: dict[str, int | None] = {}
    for port in hardware.ports:
        if port.bus_id is not None:
            nics[card(_known(port.bus_id))] = port.numa if port.numa is not None and port.numa >= 0 else None
    gpus = {_known(gpu.bus_id): gpu.numa if gpu.numa is not None and gpu.numa >= 0 else None for gpu in hardware.gpus}
    return TopologyReference(
        name=hardware.hostname,
        kind="host",
        gpus=gpus,
        nics=nics,
        has_all_gpus=bool(gpus),
        gpu_count=len(gpus) or None,
        addresses=frozenset(_known(bus_id) for bus_id in functions),
        masks={node.id: node.cpus for node in hardware.numa if node.cpus},
        cpus=frozenset(hardware.cpus) if hardware.cpus else None,
        rates_GTps=_rates_of_host(functions),
        gpu_model=next((gpu.name for gpu in hardware.gpus if gpu.name is not None), None),
        sm=next((gpu.sm for gpu in hardware.gpus if gpu.sm is not None), None),
        cpu_vendor=hardware.cpu_vendor,
        cpu_family=real_family(hardware.cpu_vendor, hardware.cpu_family),
        cpu_model=hardware.cpu_model_number,
        nvlinks_per_gpu=max((sum(link.active for link in gpu.nvlinks) for gpu in hardware.gpus), default=0) or None,
        port_Mbps={
            card(_known(port.bus_id)): round(port.rate_bps / _Mbps)
            for port in hardware.ports
            if port.bus_id is not None and port.rate_bps
        },
        guids=frozenset(number for port in hardware.ports for number in guid_numbers(port.guid)),
    )


def guid_numbers(text: str | None) -> tuple[int, ...]:
    """Return a GUID without its lowest digit: as it is printed, and as NCCL has it, which is the other way round.

    Empty for what belongs to no one device: NCCL numbers its sockets from 0 here, and people write such numbers too.
    """
    digits = (text or "").replace(":", "").removeprefix("0x")
    try:
        number = int(digits, 16) if len(digits) <= 16 else 0
    except ValueError:
        return ()
    if number < _LEAST_GUID:
        return ()
    turned = int.from_bytes(number.to_bytes(8, "big"), "little")
    return number >> _GUID_PORTS, turned >> _GUID_PORTS


def _known(bus_id: str) -> str:
    """Return an address from a trusted file or the kernel, in NCCL's spelling where it has one."""
    return canonical(bus_id) or bus_id


def _every_cpu(platform: Platform, masks: dict[int, tuple[int, ...]]) -> frozenset[int]:
    """Return the machine's CPUs: those of its nodes, and all up to its count, since nodes may be left out."""
    listed = {cpu for cpus in masks.values() for cpu in cpus}
    count = max(platform.cpu.threads or 0, platform.cpu.cores or 0)
    return frozenset(listed | set(range(count)))


def _nearest_of_platform(platform: Platform) -> dict[str, frozenset[str]]:
    """Return the cards beside each GPU: those the platform names, as far as their addresses are known."""
    cards = {place.name: card(_known(place.bus_id)) for place in platform.nics if place.name and place.bus_id}
    return {
        _known(gpu.bus_id): frozenset(cards[name] for name in gpu.nics)
        for gpu in platform.gpus
        if gpu.bus_id is not None and gpu.nics and all(name in cards for name in gpu.nics)
    }


def _switched_of_platform(platform: Platform) -> dict[str, frozenset[str]]:
    """Return the cards below the lowest switch that a GPU shares with any.

    Where no switches are published, a GPU that has some of its NUMA node's cards for itself shares one with them.
    """
    above = {switch.bus_id: switch.parent for switch in platform.switches}
    cards = [(card(_known(nic.bus_id)), nic) for nic in platform.nics if nic.bus_id is not None]
    named = _nearest_of_platform(platform)
    found: dict[str, frozenset[str]] = {}
    for gpu in platform.gpus:
        bus_id = _known(gpu.bus_id or "")
        beside = frozenset(address for address, nic in cards if nic.numa == gpu.numa)
        own = named.get(bus_id, frozenset())
        if gpu.parent is None and own and own < beside:
            found[bus_id] = own
        for switch in _chain(gpu.parent, above):
            below = frozenset(address for address, nic in cards if switch in _chain(nic.parent, above))
            if below:
                found[bus_id] = below
                break
    return found


def _chain(switch: str | None, above: dict[str, str | None]) -> tuple[str, ...]:
    """Return a switch and those above it, the lowest first."""
    chain: list[str] = []
    while switch is not None and switch not in chain:
        chain.append(switch)
        switch = above.get(switch)
    return tuple(chain)


def _ports_of_platform(platform: Platform) -> dict[str | None, int]:
    found: dict[str | None, int] = {}
    if platform.nic.port_bps:
        found[None] = round(platform.nic.port_bps / _Mbps)
    for place in platform.nics:
        if place.bus_id is not None and place.rate_bps:
            found[card(_known(place.bus_id))] = round(place.rate_bps / _Mbps)
    return found


def _rates_of_host(functions: dict[str, PciFunction]) -> dict[str, float]:
    """Return the best rate of each function: the lower of its own and its upstream port's, as NCCL would find it."""
    found: dict[str, float] = {}
    for bus_id, function in functions.items():
        above = functions.get(function.parent or "")
        rates = [
            transfer_GTps(each.max_link_speed)
            for each in (function, above)
            if each is not None and each.max_link_speed is not None
        ]
        known = [rate for rate in rates if rate is not None]
        if known:
            found[_known(bus_id)] = min(known)
    return found
