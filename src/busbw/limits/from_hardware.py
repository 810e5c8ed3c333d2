"""A host in plain numbers, as it was captured, or as little as the names of its GPUs say."""

from collections.abc import Iterable
from statistics import fmean

from busbw.facts.expectations import attained_where
from busbw.facts.platforms import GpuFacts
from busbw.limits.slots import slot_rate
from busbw.model.host import Hardware, HostGpu, HostPort
from busbw.model.limit import NodeRates, Rate

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
        assumptions=(f"every NVLink that {facts.name} has is up, as its name says and nobody looked",),
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
    link = _links(has, facts, source) if joined else None
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
        slot=_slot(has, source),
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


def _links(gpus: tuple[HostGpu, ...], facts: GpuFacts | None, source: tuple[str, ...]) -> Rate | None:
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


def _slot(gpus: tuple[HostGpu, ...], source: tuple[str, ...]) -> Rate | None:
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
