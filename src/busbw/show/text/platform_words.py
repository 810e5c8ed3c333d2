"""What a platform says, in words and with units."""

from collections.abc import Sequence

from busbw.base.units import format_rate, format_size
from busbw.model.platform import GpuPlace, NumaPlace, Platform, PlatformSource, Published, PublishedSweep, Section

Rows = list[tuple[str, str]]


def bits(rate_bps: float | None) -> str | None:
    """Return a rate in Gb/s, as networks are sold."""
    return f"{rate_bps / 1e9:g} Gb/s" if rate_bps is not None else None


def memory(memory_bytes: int | None) -> str | None:
    """Return a size in GB where it is a whole number of them, as GPUs are sold, else in binary units."""
    if memory_bytes is None:
        return None
    return f"{memory_bytes // 10**9} GB" if memory_bytes % 10**9 == 0 else format_size(memory_bytes)


def gpus(platform: Platform) -> str | None:
    """Return the GPUs of a node: `8 x A100-SXM4`; None for a machine without."""
    if platform.gpu.count == 0 and platform.gpu.model is None:
        return None
    return f"{platform.gpu.count or '?'} x {platform.gpu.model or 'GPU'}"


def nics(platform: Platform) -> str | None:
    """Return the ports of a node: `8 x 200 Gb/s`, `1 port`; None where neither number nor rate is known."""
    ports, rate = platform.nic.ports, bits(platform.nic.port_bps)
    if ports is None and rate is None:
        return None
    if rate is None:
        return f"{ports} port{'s' if ports != 1 else ''}"
    return f"{ports if ports is not None else '?'} x {rate}"


def map_known(platform: Platform) -> str:
    """Return whether it is published where the GPUs sit: yes, part, no."""
    addresses = [gpu.bus_id is not None for gpu in platform.gpus]
    whole = (
        len(addresses) >= platform.gpu.count and all(addresses) and all(gpu.numa is not None for gpu in platform.gpus)
    )
    return "yes" if addresses and whole else "part" if any(addresses) else "no"


def identity(platform: Platform) -> Rows:
    """Return who runs it and how it is recognised."""
    match = platform.match
    rows = [
        ("provider", platform.provider),
        ("published", platform.status or ""),
        ("SKUs", ", ".join(match.skus)),
        ("firmware", ", ".join(f"{name} {value!r}" for name, value in match.dmi.items())),
        ("host names", ", ".join(match.hostnames)),
        ("GPU names", ", ".join(match.gpu_names)),
        ("note", match.note or ""),
    ]
    return [(name, value) for name, value in rows if value]


def node(platform: Platform) -> list[tuple[str, str | None]]:
    """Return what a node is made of, None for what nobody has published."""
    rows = [("CPU", _cpu(platform))]
    if platform.kind == "gpu":
        rows += [("GPUs", _gpu(platform)), ("NVLink", _nvlink(platform))]
    rows += [
        ("PCIe", _pcie(platform)),
        ("compute NICs", _nic(platform)),
        ("fabric", _fabric(platform)),
    ]
    front = _frontend(platform)
    return [*rows, ("front end", front)] if front else rows


def nearest(platform: Platform, gpu: GpuPlace) -> str:
    """Return the NICs nearest to a GPU: those that are named, else the addresses of those below the same switch."""
    below = (nic.bus_id for nic in platform.nics if gpu.parent is not None and nic.parent == gpu.parent)
    return ", ".join(gpu.nics or dict.fromkeys(bus_id for bus_id in below if bus_id is not None))


def numa(nodes: Sequence[NumaPlace]) -> Rows:
    """Return NUMA nodes with their CPUs and, where the GPUs' memory has nodes of its own, those."""
    return [
        (
            f"NUMA {each.id}",
            _listed(
                f"CPUs {each.cpus}" if each.cpus is not None else "CPUs not published",
                f"GPU memory on {', '.join(map(str, each.gpu_memory))}" if each.gpu_memory else None,
            )
            or "",
        )
        for each in nodes
    ]


def variants(platform: Platform) -> Rows:
    """Return the sizes that are sold under the platform's name."""
    return [
        (
            each.sku,
            _noted(
                each,
                _counted(each.gpus, "GPU"),
                _counted(each.cores, "core"),
                memory(each.memory_bytes),
                bits(each.nic_bps),
            )
            or "",
        )
        for each in platform.variants
    ]


def launches(platform: Platform) -> Rows:
    """Return ways to start ranks."""
    return [
        (
            each.method,
            sourced(_listed(each.layout, " ".join(each.flags), each.program, each.note, between="; "), each),
        )
        for each in platform.launches
    ]


def images(platform: Platform) -> Rows:
    """Return images of containers and virtual machines."""
    return [(each.kind, sourced(_noted(each, each.image, each.use), each)) for each in platform.containers]


def disagreements(platform: Platform) -> Rows:
    """Return where sources contradict each other, and what is followed."""
    return [
        (each.topic, sourced(_listed(each.detail, _followed(each.verdict), between=" "), each))
        for each in platform.disagreements
    ]


def sourced(text: str | None, section: Section) -> str:
    """Return `text` with the ids of the sources it comes from."""
    cited = f"[{', '.join(section.source)}]" if section.source else None
    return _listed(text, cited, between=" ") or ""


def scale(published: Published) -> str:
    """Return what a published value was measured on: `2 nodes, 16 GPUs, 8 GiB`."""
    return (
        _listed(
            _counted(published.nodes, "node"),
            _counted(published.gpus, "GPU"),
            format_size(published.size_bytes) if published.size_bytes is not None else None,
            published.scope,
        )
        or ""
    )


def sweep_scale(sweep: PublishedSweep) -> str:
    """Return what a table was measured on: `2 nodes, 16 GPUs`."""
    return _listed(_counted(sweep.nodes, "node"), _counted(sweep.gpus, "GPU")) or ""


def sweep_sizes(sweep: PublishedSweep) -> str:
    """Return the sizes of a table and how many they are: `1 KiB to 8 GiB, 24`; of one, that size."""
    first, last = (format_size(size_bytes) for size_bytes, _ in (sweep.points[0], sweep.points[-1]))
    return first if len(sweep.points) == 1 else f"{first} to {last}, {len(sweep.points)}"


def sweep_best(sweep: PublishedSweep) -> str:
    """Return the highest bus bandwidth of a table, in GB/s."""
    return f"{max(rate for _, rate in sweep.points):g}"


def sweep_for(sweep: PublishedSweep) -> str:
    """Return what a table holds for, and its source."""
    said = _listed(
        f"NCCL {sweep.nccl}" if sweep.nccl is not None else None,
        sweep.algorithm,
        {True: "NVLS", False: "no NVLS", None: None}[sweep.nvls],
        {True: "SHARP", False: "no SHARP", None: None}[sweep.sharp],
        {
            "fabric": None,
            "fallback": "not over the fabric's plug-in",
            "loopback": "through NICs of one node",
            None: None,
        }[sweep.network],
    )
    return sourced(_listed(said, sweep.conditions, sweep.note, between="; "), sweep)


def source(declared: PlatformSource) -> str:
    """Return where facts come from, with day and licence."""
    return _listed(declared.reference, declared.date, declared.licence, declared.note) or ""


def _cpu(platform: Platform) -> str | None:
    cpu = platform.cpu
    return _noted(
        cpu,
        cpu.model,
        _counted(cpu.sockets, "socket"),
        _counted(cpu.cores, "core"),
        f"{cpu.threads} CPUs" if cpu.threads is not None else None,
        _counted(cpu.numa_nodes, "NUMA node"),
        memory(cpu.memory_bytes),
    )


def _gpu(platform: Platform) -> str | None:
    gpu = platform.gpu
    return _noted(
        gpu,
        gpus(platform),
        memory(gpu.memory_bytes),
        f"compute capability {gpu.sm // 10}.{gpu.sm % 10}" if gpu.sm is not None else None,
        f"processor {gpu.gcn}" if gpu.gcn is not None else None,
        f"clock locked at {gpu.locked_clock_MHz} MHz" if gpu.locked_clock_MHz is not None else None,
    )


def _nvlink(platform: Platform) -> str | None:
    link = platform.nvlink
    return _noted(
        link,
        f"generation {link.generation}" if link.generation is not None else None,
        f"{link.links_per_gpu} links a GPU" if link.links_per_gpu is not None else None,
        f"{format_rate(link.gpu_Bps)} a GPU each way" if link.gpu_Bps is not None else None,
        f"{format_rate(link.pair_Bps)} between two" if link.pair_Bps is not None else None,
        {True: "switched", False: "no switch", None: None}[link.switched],
        {True: "NVLS", False: "no NVLS", None: None}[link.nvls],
        f"{link.domain_gpus} GPUs in one domain" if link.domain_gpus is not None else None,
        f"{format_rate(link.c2c_Bps)} to the CPU" if link.c2c_Bps is not None else None,
    )


def _pcie(platform: Platform) -> str | None:
    pcie = platform.pcie
    return _noted(
        pcie,
        f"generation {pcie.generation}" if pcie.generation is not None else None,
        f"x{pcie.width}" if pcie.width is not None else None,
        f"written as {pcie.written_GTps:g} GT/s" if pcie.written_GTps is not None else None,
    )


def _nic(platform: Platform) -> str | None:
    nic = platform.nic
    total_bps = nic.ports * nic.port_bps if nic.ports is not None and nic.port_bps is not None else None
    return _noted(
        nic,
        nic.model,
        nics(platform),
        f"together {bits(total_bps)} = {format_rate(total_bps / 8)}" if total_bps is not None else None,
        f"devices {nic.names}" if nic.names is not None else None,
        f"interfaces {nic.interfaces}" if nic.interfaces is not None else None,
        f"MTU {nic.mtu_bytes}" if nic.mtu_bytes is not None else None,
        f'NCCL_IB_HCA "{nic.hca_list}"' if nic.hca_list is not None else None,
    )


def _fabric(platform: Platform) -> str | None:
    fabric = platform.fabric
    return _noted(
        fabric,
        " ".join(part for part in (fabric.kind, fabric.generation) if part) or None,
        f"plug-in {fabric.plugin}" if fabric.plugin is not None else None,
        {True: "SHARP", False: "no SHARP", None: None}[fabric.sharp],
        f"latency {fabric.latency_s * 1e6:g} us" if fabric.latency_s is not None else None,
    )


def _frontend(platform: Platform) -> str | None:
    front = platform.frontend
    usable = bits(front.usable_bps)
    return _noted(front, front.names, bits(front.rate_bps), f"{usable} usable" if usable else None)


def _followed(verdict: str | None) -> str | None:
    return f"Followed: {verdict.rstrip('.')}." if verdict else None


def _counted(count: int | None, thing: str) -> str | None:
    return f"{count} {thing}{'' if count == 1 else 's'}" if count is not None else None


def _listed(*parts: str | None, between: str = ", ") -> str | None:
    return between.join(part for part in parts if part) or None


def _noted(section: Section, *parts: str | None) -> str | None:
    """Return the parts, then what the section remarks."""
    return _listed(_listed(*parts), section.note, between="; ")
