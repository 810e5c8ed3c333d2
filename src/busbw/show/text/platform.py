"""Platforms as text: a list, and a page about one that can be pasted into a ticket."""

from collections.abc import Iterable, Sequence
from itertools import groupby

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from busbw.base.text import printable
from busbw.base.units import format_rate, format_size
from busbw.facts.platform_files import KNOWN_BY
from busbw.model.platform import (
    GpuPlace,
    NumaPlace,
    Platform,
    PlatformSection,
    PlatformSetting,
    PlatformSource,
    Published,
    PublishedSweep,
    ResolvedPlatform,
    Threshold,
)
from busbw.show.text.terminal import console
from busbw.topo.origins.from_platform import map_gap

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
    """Return whether it is published where the GPUs sit: yes, so that `busbw topo` can draw and make it; part; no."""
    if not any(gpu.bus_id is not None for gpu in platform.gpus):
        return "no"
    return "yes" if map_gap(platform) is None else "part"


def _map_words(platform: Platform) -> str:
    """Return the same with what it is good for, or what is missing."""
    gap = map_gap(platform)
    word = map_known(platform)
    return f"{word}: `busbw topo make {platform.id}` writes a file of it" if gap is None else f"{word}: {gap}"


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
    if platform.kind == "gpu":
        rows.append(("PCI map", _map_words(platform)))
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


def sourced(text: str | None, section: PlatformSection) -> str:
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


def _noted(section: PlatformSection, *parts: str | None) -> str | None:
    """Return the parts, then what the section remarks."""
    return _listed(_listed(*parts), section.note, between="; ")


# With fewer columns the name is left out: the id says most of it.
_WIDTH_FOR_NAMES = 116
_NOT_PUBLISHED = "not published"


def platforms_text(platforms: Sequence[Platform]) -> None:
    """Print one line a platform."""
    out = console()
    headings = ["id", "name", "GPUs", "NVLink\nGB/s", "NICs", "fabric", "PCI\nmap"]
    rows = [
        [
            each.id,
            next(iter(each.names), ""),
            gpus(each) or "none",
            f"{each.nvlink.gpu_Bps / 1e9:g}" if each.nvlink.gpu_Bps is not None else "",
            nics(each) or "",
            each.fabric.kind or "",
            map_known(each),
        ]
        for each in platforms
    ]
    if out.width < _WIDTH_FOR_NAMES:
        headings, rows = _without_name(headings), [_without_name(row) for row in rows]
    out.print(_table(headings, rows, between=2 if out.width >= _WIDTH_FOR_NAMES else 1))


def platform_text(resolved: ResolvedPlatform) -> None:
    """Print what is known of a platform, and what nobody has published."""
    platform, out = resolved.platform, console()
    out.print(Text(printable(f"{platform.id}: {', '.join(platform.names)}"), style="bold"))
    _rows(out, "", identity(platform))
    _rows(out, "node", [(name, value or _NOT_PUBLISHED) for name, value in node(platform)])
    _map(out, platform)
    if platform.variants:
        _rows(out, "sizes", variants(platform))
    _settings(out, platform.settings)
    _paragraphs(out, "ways to start ranks", launches(platform))
    _rows(out, "images", images(platform))
    _published(out, platform.published)
    _sweeps(out, platform.sweeps)
    _thresholds(out, platform.thresholds)
    _paragraphs(out, "where sources disagree", disagreements(platform))
    _lines(out, "traps", platform.traps)
    _lines(out, "looked for and not found", platform.missing)
    _rows(out, "sources", [(each.id, source(each)) for each in platform.sources])
    _lines(out, "files, the strongest first", resolved.files)


def _without_name(cells: list[str]) -> list[str]:
    return [cells[0], *cells[2:]]


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], between: int = 2) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, between, 0, 0), header_style="")
    for place, heading in enumerate(headings):
        # What comes first can be pasted into the next command, and must not be cut.
        table.add_column(heading, no_wrap=place == 0, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


def _title(out: Console, title: str) -> None:
    if title:
        out.print()
        out.print(Text(title, style="bold"))


def _rows(out: Console, title: str, rows: Sequence[tuple[str, str]]) -> None:
    """Print what has a name each, aligned."""
    if not rows:
        return
    _title(out, title)
    grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    grid.add_column(width=0)
    grid.add_column(max_width=24, overflow="fold")
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row("", Text(printable(name)), Text(printable(value)))
    out.print(grid)


def _paragraphs(out: Console, title: str, rows: Sequence[tuple[str, str]]) -> None:
    """Print what has a name and some sentences each."""
    if not rows:
        return
    _title(out, title)
    for name, text in rows:
        _entry(out, name, text)


def _entry(out: Console, name: str, text: str) -> None:
    out.print(Padding(Text(printable(name)), (0, 0, 0, 2), expand=False))
    out.print(Padding(Text(printable(text)), (0, 0, 0, 6), expand=False))


def _lines(out: Console, title: str, lines: Sequence[str]) -> None:
    if not lines:
        return
    _title(out, title)
    grid = Table.grid(padding=(0, 1, 0, 0), pad_edge=False)
    grid.add_column(width=1)
    grid.add_column(overflow="fold")
    for line in lines:
        grid.add_row("-", Text(printable(line)))
    out.print(grid)


def _map(out: Console, platform: Platform) -> None:
    """Print which GPU, NIC and CPUs belong together."""
    cpus = {node.id: node.cpus or "" for node in platform.numa}
    if platform.gpus:
        _title(out, "GPUs, by PCI address")
        rows = [
            (
                str(gpu.gpu),
                gpu.bus_id or "",
                str(gpu.numa) if gpu.numa is not None else "",
                cpus.get(gpu.numa, "") if gpu.numa is not None else "",
                nearest(platform, gpu),
            )
            for gpu in platform.gpus
        ]
        out.print(_table(["GPU", "PCI address", "NUMA", "CPUs", "nearest NICs"], rows))
    if platform.nics:
        _title(out, "NICs")
        rows_of_nics = [
            (
                nic.name or "",
                f"{nic.bus_id or ''}{f' port {nic.port}' if nic.port != 1 else ''}",
                str(nic.numa) if nic.numa is not None else "",
                bits(nic.rate_bps if nic.rate_bps is not None else platform.nic.port_bps) or "",
            )
            for nic in platform.nics
        ]
        out.print(_table(["NIC", "PCI address", "NUMA", "rate"], rows_of_nics))
    near = {gpu.numa for gpu in platform.gpus} | {nic.numa for nic in platform.nics}
    others = [node for node in platform.numa if node.id not in near or node.gpu_memory]
    _rows(out, "NUMA nodes" if len(others) == len(platform.numa) else "other NUMA nodes", numa(others))


def _settings(out: Console, settings: Sequence[PlatformSetting]) -> None:
    if not settings:
        return
    _title(out, "settings that somebody publishes (which is not to recommend them)")
    ordered = sorted(settings, key=lambda each: each.goal or "")
    for goal, group in groupby(ordered, key=lambda each: each.goal):
        if goal is not None:
            out.print(Text(printable(f" for {goal.replace('_', ' ')}:")))
        for each in group:
            # A value may begin with "=" or hold blanks.
            written = f'{each.name} = "{each.value}"' if each.value is not None else f"{each.name} unset"
            why = sourced(each.reason or each.note, each)
            _entry(out, written, f"{each.scope}{f': {why}' if why else ''}")


def _published(out: Console, published: Sequence[Published]) -> None:
    if published:
        _title(out, "what was published")
        rows = [
            (
                each.test,
                f"{each.value:g} {each.unit}",
                scale(each),
                f"{each.kind}: {sourced(_of(each), each)}",
            )
            for each in published
        ]
        out.print(_table(["test", "value", "at", "kind: conditions"], rows))


def _of(published: Published) -> str:
    return "; ".join(part for part in (published.metric, published.conditions, published.note) if part)


def _sweeps(out: Console, sweeps: Sequence[PublishedSweep]) -> None:
    if sweeps:
        _title(out, "tables that were published, one line each: --json has every size")
        rows = [(each.test, sweep_scale(each), sweep_sizes(each), sweep_best(each), sweep_for(each)) for each in sweeps]
        out.print(_table(["test", "at", "sizes", "best\nGB/s", "conditions"], rows, between=1))


def _thresholds(out: Console, thresholds: Sequence[Threshold]) -> None:
    if thresholds:
        _title(out, "limits of health checks in use")
        rows = [
            (
                each.check,
                each.test,
                f"{each.passes} {each.value:g} {each.unit}",
                "; ".join(part for part in (each.size, each.scope, sourced(each.note, each)) if part),
            )
            for each in thresholds
        ]
        out.print(_table(["check", "test", "passes", "at"], rows))


_LONGEST = 60
_SHIPPED = "busbw/data/platforms/"
# Text that says what an entry of a list is about; where it is not among these, the first text does.
_TELLING = ("topic", "method", "image", "check", "test")


def origins_text(resolved: ResolvedPlatform) -> None:
    """Print one line a value: what it is, its file, its sources, and when they were looked at."""
    values, out = _values(resolved.platform), console()
    for origin in resolved.origins:
        cited = f" [{', '.join(origin.source)}]" if origin.source else ""
        checked = f" {origin.checked}" if origin.checked is not None else ""
        line = Text(_on_one_line(f"{origin.path} = {values.get(origin.path, '')}"))
        line.append(_on_one_line(f"  <- {origin.file.removeprefix(_SHIPPED)}{cited}{checked}"), style="dim")
        # Whole lines, so that they can be searched.
        out.print(line, soft_wrap=True)


def _on_one_line(text: str) -> str:
    return printable(text).replace("\n", "\\n")


def _values(platform: Platform) -> dict[str, str]:
    """Return every value by its path, as Origin has it."""
    values: dict[str, str] = {}
    for name in Platform.__struct_fields__:
        held = getattr(platform, name)
        if isinstance(held, PlatformSection):
            values |= _of_section(name, held)
        elif isinstance(held, tuple):
            for place, entry in enumerate(held):
                if isinstance(entry, PlatformSection) and name in KNOWN_BY:
                    values |= _of_section(f"{name}[{_label(name, entry)}]", entry)
                else:
                    values[f"{name}[{place}]"] = _short(_about(entry) if isinstance(entry, PlatformSection) else entry)
        else:
            values[name] = _short(held)
    return values


def _of_section(path: str, section: PlatformSection) -> dict[str, str]:
    values: dict[str, str] = {}
    for name, value in msgspec.structs.asdict(section).items():
        if isinstance(value, dict):
            values |= {f"{path}.{name}.{key}": _short(inner) for key, inner in value.items()}
        else:
            values[f"{path}.{name}"] = _short(value)
    return values


def _label(array: str, entry: PlatformSection) -> str:
    for fields in KNOWN_BY[array]:
        values = [getattr(entry, field) for field in fields]
        if values[0] is not None:
            return ", ".join(str(value) for value in values if value is not None)
    return "?"


def _about(entry: PlatformSection) -> str:
    return next((str(getattr(entry, name)) for name in _TELLING if hasattr(entry, name)), "")


def _short(value: object) -> str:
    if isinstance(value, tuple):
        value = ", ".join(str(each) for each in value)
    text = "unset" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
