"""The rates of a machine that a limit is counted from: a platform's, or captured hardware's."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from statistics import fmean

from busbw.base.errors import InputError
from busbw.facts.devices import lane_rates
from busbw.facts.expectations import attained_on, attained_where
from busbw.facts.platforms import GpuFacts
from busbw.model.host import Hardware, HostGpu, HostPort
from busbw.model.limit import MessageRate, NodeRates, Rate
from busbw.model.platform import GpuPlace, NicPlace, Platform, Variant

_SPEED = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,2})?) GT/s(?: PCIe)?")


def slot_rate(generation: int, width: int, source: tuple[str, ...] = ()) -> Rate | None:
    """Return the rate of a slot in one direction; None for a generation that there is none of."""
    lane = lane_rates().get(generation)
    if lane is None or width < 1:
        return None
    return Rate(
        rate_Bps=lane.rate_GTps * 1e9 * width * lane.data / lane.sent / 8,
        figures=f"PCIe {generation} x{width}, {lane.rate_GTps:g} GT/s x {width} x {lane.data}/{lane.sent}",
        source=source,
    )


def narrowest(links: Iterable[tuple[str | None, int | None]], source: tuple[str, ...] = ()) -> Rate | None:
    """Return the rate of the narrowest of some links, each its speed as `32.0 GT/s PCIe` and its lanes.

    None where the speed or the lanes of one are not known.
    """
    rates = []
    for speed, lanes in links:
        generation = generation_of(speed)
        rate = slot_rate(generation, lanes, source) if generation is not None and lanes is not None else None
        if rate is None:
            return None
        rates.append(rate)
    return min(rates, key=lambda each: each.rate_Bps, default=None)


def generation_of(speed: str | None) -> int | None:
    """Return the generation of PCI Express of a speed as the kernel prints it: `32.0 GT/s PCIe`; None for others."""
    match = _SPEED.fullmatch(speed or "")
    if match is None:
        return None
    return next((each.number for each in lane_rates().values() if each.rate_GTps == float(match[1])), None)


def island_of_platform(platform: Platform, used: int) -> tuple[int | None, tuple[str, ...]]:
    """Return how many of the first `used` GPUs are joined, and what would have to be known; 1: none has such links."""
    link = platform.nvlink
    if used == 1 or link.switched:
        return used, ()
    places = platform.gpus[:used]
    if len(places) == used and all(place.nvlinks for place in places):
        joined = _smallest_component(places)
        if joined is not None:
            return joined, ()
    return _by_numbers(platform, used)


def _by_numbers(platform: Platform, used: int) -> tuple[int | None, tuple[str, ...]]:
    link = platform.nvlink
    if link.pair_Bps is not None and link.gpu_Bps is not None:
        return min(used, round(link.gpu_Bps / link.pair_Bps) + 1), ()
    if link.links_per_pair is not None and link.links_per_gpu is not None:
        return min(used, link.links_per_gpu // link.links_per_pair + 1), ()
    if link.gpu_Bps is not None or link.links_per_gpu is not None:
        return used, ("which GPUs are linked to which: taken as if all were",)
    if link.generation is not None:
        # Links without a rate: bridges between pairs of cards.
        return min(used, 2), ("which GPUs are linked to which: taken as pairs",)
    return 1, ()


def _smallest_component(places: tuple[GpuPlace, ...]) -> int | None:
    """Return the size of the smallest group of GPUs that are linked; None where links lead elsewhere, to switches."""
    by_bus = {place.bus_id: place for place in places if place.bus_id is not None}
    if len(by_bus) < len(places) or not any(target in by_bus for place in places for target in place.nvlinks):
        return None
    sizes = []
    left = set(by_bus)
    while left:
        reached, ahead = set(), [left.pop()]
        while ahead:
            bus_id = ahead.pop()
            reached.add(bus_id)
            ahead += [target for target in by_bus[bus_id].nvlinks if target in by_bus and target not in reached]
        left -= reached
        sizes.append(len(reached))
    return min(sizes)


def rates_of_platform(platform: Platform, *, gpus: int | None = None, name: str | None = None) -> NodeRates:
    """Return the rates of a node of `platform`.

    `gpus`: how many of its GPUs take part. `name`: as it was asked for, which may be that of one of several sizes.
    Raises InputError for more GPUs than a node has.
    """
    variant = _variant(platform, name)
    has = variant.gpus if variant is not None and variant.gpus is not None else platform.gpu.count
    assumptions = [*_size_words(platform, variant, has)]
    if platform.kind == "cpu":
        if gpus is not None:
            raise InputError(f"{platform.id} has no GPUs", hint="leave out --gpus")
        return _cpu_rates(platform, variant, assumptions)
    if has < 1:
        if gpus is None:
            raise InputError(f"how many GPUs a node of {platform.id} has is not known", hint="say it: --gpus 8")
        has = gpus
    used = has if gpus is None else gpus
    if not 1 <= used <= has:
        raise InputError(f"{used} of the GPUs of {platform.id}", hint=f"a node has {has}: --gpus 1 to {has}")
    ports, words = _ports_used(platform, used, has)
    assumptions += words
    nic = _nic(platform, variant)
    island, unknown = island_of_platform(platform, used)
    return NodeRates(
        name=platform.id,
        gpus=used,
        island_gpus=island,
        domain_gpus=platform.nvlink.domain_gpus if used == has else None,
        nvlink=_links(platform, used),
        pair=_pair(platform, used),
        nvls=platform.nvlink.nvls,
        sharp=platform.fabric.sharp,
        slot=_published_slot(platform),
        ports=ports,
        nic=nic,
        nic_slot=_nic_slot(platform, nic),
        messages=_messages(platform),
        attained=attained_on(platform),
        assumptions=tuple(assumptions),
        missing=unknown,
    )


def _variant(platform: Platform, name: str | None) -> Variant | None:
    asked = (name or "").casefold()
    return next((variant for variant in platform.variants if fnmatchcase(asked, variant.sku.casefold())), None)


def _size_words(platform: Platform, variant: Variant | None, gpus: int) -> tuple[str, ...]:
    sizes = {size.gpus for size in platform.variants if size.gpus is not None}
    if variant is not None or not sizes - {gpus}:
        return ()
    others = ", ".join(size.sku for size in platform.variants)
    return (f"the size with {gpus} GPUs; the sizes are {others}",)


def _cpu_rates(platform: Platform, variant: Variant | None, assumptions: list[str]) -> NodeRates:
    cores = variant.cores if variant is not None and variant.cores is not None else platform.cpu.cores
    nic = _nic(platform, variant)
    words = f"a rank on each of {cores} cores" if cores is not None else "one rank a node: its cores are not known"
    return NodeRates(
        name=platform.id,
        gpus=0,
        cpu_ranks=cores,
        sharp=platform.fabric.sharp,
        ports=platform.nic.ports,
        nic=nic,
        nic_slot=_nic_slot(platform, nic),
        messages=_messages(platform),
        attained=attained_on(platform),
        assumptions=(*assumptions, words),
    )


def _nic(platform: Platform, variant: Variant | None) -> Rate | None:
    """Return the rate of one port; of ports that differ the mean, so that their sum is right."""
    own = variant.nic_bps if variant is not None else None
    placed = [place.rate_bps for place in platform.nics if place.rate_bps is not None]
    if own is not None and platform.nic.ports:
        port_bps, source = own / platform.nic.ports, variant.source if variant is not None else ()
    elif placed and len(placed) == len(platform.nics):
        port_bps, source = sum(placed) / len(placed), platform.nics[0].source
    elif platform.nic.port_bps is not None:
        port_bps, source = platform.nic.port_bps, platform.nic.source
    else:
        return None
    return Rate(rate_Bps=port_bps / 8, figures=f"{port_bps / 1e9:g} Gb/s", source=source)


def _messages(platform: Platform) -> MessageRate | None:
    per_s = platform.nic.messages_per_s
    if per_s is None:
        return None
    return MessageRate(per_s=per_s, figures=f"{per_s / 1e6:g} M messages/s", source=platform.nic.source)


def _ports_used(platform: Platform, used: int, has: int) -> tuple[int | None, tuple[str, ...]]:
    """Return the NIC ports that `used` of `has` GPUs bring, and what that assumes."""
    ports = platform.nic.ports
    if ports is None or used == has:
        return ports, ()
    nearest = {nic for place in platform.gpus[:used] for nic in place.nics}
    known = len(platform.gpus) == has and all(place.nics for place in platform.gpus)
    count = len(nearest) if known else -(-ports * used // has)
    where = f"the nearest to GPUs 0 to {used - 1}" if known else f"{used}/{has} of {ports}"
    return count, (f"{used} of {has} GPUs use {count} of {ports} NIC ports: {where}",)


def _links(platform: Platform, used: int) -> Rate | None:
    """Return the rate of the links of one GPU to the others that take part."""
    link = platform.nvlink
    if link.pair_Bps is not None and not link.switched:
        peers = used - 1
        total_Bps = link.pair_Bps * peers if peers else None
        if total_Bps is None:
            return None
        if link.gpu_Bps is None or total_Bps < link.gpu_Bps:
            return Rate(rate_Bps=total_Bps, figures=f"{peers} peers x {link.pair_Bps / 1e9:g} GB/s", source=link.source)
    if link.gpu_Bps is None:
        return None
    links = f"{_count(link.links_per_gpu)}, " if link.links_per_gpu else ""
    return Rate(rate_Bps=link.gpu_Bps, figures=f"{links}{link.gpu_Bps / 1e9:g} GB/s", source=link.source)


def _pair(platform: Platform, used: int) -> Rate | None:
    """Return the rate between two GPUs: over a switch all links of one."""
    link = platform.nvlink
    if link.switched:
        return _links(platform, used)
    if link.pair_Bps is None:
        return None
    per_pair = f"{_count(link.links_per_pair)}, " if link.links_per_pair else ""
    return Rate(rate_Bps=link.pair_Bps, figures=f"{per_pair}{link.pair_Bps / 1e9:g} GB/s", source=link.source)


def _published_slot(platform: Platform) -> Rate | None:
    if platform.nvlink.c2c_Bps is not None:
        figures = f"NVLink-C2C, {platform.nvlink.c2c_Bps / 1e9:g} GB/s"
        return Rate(rate_Bps=platform.nvlink.c2c_Bps, figures=figures, source=platform.nvlink.source)
    pcie = platform.pcie
    if pcie.generation is None or pcie.width is None:
        return None
    return slot_rate(pcie.generation, pcie.width, pcie.source)


def _nic_slot(platform: Platform, nic: Rate | None) -> Rate | None:
    """Return a port's part of its card's slot; None where it is not known how ports share cards."""
    pcie, addresses = platform.pcie, [_card(place) for place in platform.nics]
    if nic is None or pcie.generation is None or pcie.width is None or not addresses or None in addresses:
        return None
    slot = slot_rate(pcie.generation, pcie.width, pcie.source)
    share = max(addresses.count(card) for card in addresses)
    if slot is None or share == 1:
        return slot
    return Rate(rate_Bps=slot.rate_Bps / share, figures=f"{slot.figures}, {share} ports a card", source=slot.source)


def _card(place: NicPlace) -> str | None:
    """Return the address of a port's card: its functions share a slot."""
    return place.bus_id.rpartition(".")[0] if place.bus_id is not None else None


def _count(links: int) -> str:
    return f"{links} link{'' if links == 1 else 's'}"


# Ports of these kinds are what collectives cross; the others are for everything else.
_COMPUTE = ("InfiniBand", "RoCE", "EFA", "Slingshot")


def rates_of_gpus(facts: GpuFacts, gpus: int) -> NodeRates:
    """Return the rates of `gpus` GPUs of one node by their name alone. Nothing is known of the network."""
    links = facts.nvlink
    source = (f"all platforms with {facts.name}: {', '.join(facts.platforms)}",)
    meshed = links.pair_Bps is not None and not links.switched
    rate_Bps = links.pair_Bps * (gpus - 1) if meshed and links.pair_Bps is not None else links.gpu_Bps
    if rate_Bps is not None and links.gpu_Bps is not None:
        rate_Bps = min(rate_Bps, links.gpu_Bps)
    pair_Bps = links.pair_Bps if meshed else links.gpu_Bps
    return NodeRates(
        name=f"{gpus} x {facts.name}",
        gpus=gpus,
        island_gpus=gpus if rate_Bps else 1,
        domain_gpus=links.domain_gpus,
        nvlink=_rate(rate_Bps, source),
        pair=_rate(pair_Bps, source),
        nvls=links.nvls,
        attained=attained_where(
            sm=facts.sm, switched=links.switched, fabric=None, port_bps=None, across_nodes=facts.across_nodes
        ),
        assumptions=(f"every NVLink that {facts.name} has is up (from its name, not checked)",),
        missing=("the network of these nodes",),
    )


def _rate(rate_Bps: float | None, source: tuple[str, ...]) -> Rate | None:
    return Rate(rate_Bps=rate_Bps, figures=f"{rate_Bps / 1e9:g} GB/s", source=source) if rate_Bps else None


def rates_of_hardware(hardware: Hardware, facts: GpuFacts | None, *, gpus: int | None = None) -> NodeRates:
    """Return the rates of a captured host: links that are up, slots, ports of its compute NICs.

    `gpus`: how many of its GPUs take part; all by default. The rate of a link is that of the published GPU, where
    `facts` has one: what drivers print is the line's raw rate, some of which is encoding.
    """
    has = hardware.gpus if gpus is None else hardware.gpus[:gpus]
    source = (f"captured on {hardware.hostname}",)
    ports = compute_ports(hardware)
    joined = _are_joined(has)
    link = _captured_links(has, facts, source) if joined else None
    rated = [port.rate_bps for port in ports if port.rate_bps]
    kinds = {port.kind for port in ports}
    missing = [f"{gpus} GPUs are asked for, {len(has)} are there"] if gpus is not None and gpus > len(has) else []
    return NodeRates(
        name=hardware.hostname,
        gpus=len(has),
        cpu_ranks=hardware.cores if not has else None,
        island_gpus=(len(has) if joined else 1) if has else None,
        nvlink=link,
        pair=link,
        nvls=facts.nvlink.nvls if facts is not None else None,
        slot=_captured_slot(has, source),
        ports=len(rated) or None,
        nic=Rate(rate_Bps=fmean(rated) / 8, figures=f"{fmean(rated) / 1e9:g} Gb/s", source=source) if rated else None,
        attained=attained_where(
            sm=_one(gpu.sm for gpu in has),
            switched=facts.nvlink.switched if facts is not None else None,
            fabric=kinds.pop() if len(kinds) == 1 else None,
            port_bps=rated[0] if rated else None,
            across_nodes=facts.across_nodes if facts is not None else None,
        ),
        missing=tuple(missing),
    )


def compute_ports(hardware: Hardware) -> tuple[HostPort, ...]:
    """Return the ports of a host that collectives cross, those that are up."""
    return tuple(port for port in hardware.ports if port.kind in _COMPUTE and port.up is not False)


def _are_joined(gpus: tuple[HostGpu, ...]) -> bool:
    """Whether links of their own lead from every GPU to a switch (or somewhere hidden), or to every other GPU."""
    ids = {gpu.bus_id for gpu in gpus}
    for gpu in gpus:
        targets = {link.target for link in gpu.nvlinks if link.active}
        if not targets or (targets <= ids and targets != ids - {gpu.bus_id}):
            return False
    return len(gpus) > 1


def _captured_links(gpus: tuple[HostGpu, ...], facts: GpuFacts | None, source: tuple[str, ...]) -> Rate | None:
    """Return the rate of the links of the GPU that has least of them."""
    counts = [sum(link.active for link in gpu.nvlinks) for gpu in gpus]
    printed = [link.rate_Bps for gpu in gpus for link in gpu.nvlinks if link.active and link.rate_Bps]
    fewest = min(counts)
    published = facts.nvlink if facts is not None else None
    where = "" if len(set(counts)) == 1 else f" (GPU {gpus[counts.index(fewest)].index}; others have {max(counts)})"
    if published is not None and published.gpu_Bps is not None and published.links_per_gpu:
        each_Bps = published.gpu_Bps / published.links_per_gpu
        raw = f"; the driver prints {min(printed) / 1e9:.2f}, which is before encoding" if printed else ""
        figures = f"{fewest} links up{where} x {each_Bps / 1e9:g} GB/s{raw}"
        return Rate(rate_Bps=fewest * each_Bps, figures=figures, source=(*source, *published.source))
    if not printed:
        return None
    figures = f"{fewest} links up{where} x {min(printed) / 1e9:.2f} GB/s, as the driver prints"
    return Rate(rate_Bps=fewest * min(printed), figures=figures, source=source)


def _captured_slot(gpus: tuple[HostGpu, ...], source: tuple[str, ...]) -> Rate | None:
    """Return the rate of the slowest slot, as it can be; idle slots show less."""
    found = [
        rate
        for gpu in gpus
        if gpu.max_link_generation is not None
        and gpu.link_width is not None
        and (rate := slot_rate(gpu.max_link_generation, gpu.link_width, source)) is not None
    ]
    return min(found, key=lambda rate: rate.rate_Bps, default=None)


def _one(values: Iterable[int | None]) -> int | None:
    said = set(values)
    return said.pop() if len(said) == 1 else None
