"""A platform in plain numbers: the rates of one of its nodes, and what had to be assumed."""

from fnmatch import fnmatchcase

from busbw.base.errors import InputError
from busbw.facts.expectations import attained_on
from busbw.limits.slots import slot_rate
from busbw.model.limit import NodeRates, Rate
from busbw.model.platform import GpuPlace, NicPlace, Platform, Variant


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
        slot=_slot(platform),
        ports=ports,
        nic=nic,
        nic_slot=_nic_slot(platform, nic),
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


def _slot(platform: Platform) -> Rate | None:
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
