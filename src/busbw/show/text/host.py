"""A host as text for a terminal."""

import textwrap
from collections.abc import Iterable
from itertools import groupby

from rich.table import Table
from rich.text import Text

from busbw.base.cpus import format_cpu_list
from busbw.base.text import listed, printable
from busbw.base.units import format_rate, format_size
from busbw.model.host import (
    Candidate,
    Detection,
    FoundLibrary,
    Hardware,
    HostGpu,
    HostNvLink,
    HostPort,
    PciFunction,
    Probe,
)
from busbw.model.limit import Attained, Bound, Limit, LimitLine, Part, PartName
from busbw.show.text.network import network_table
from busbw.show.text.noise import noise_text
from busbw.show.text.terminal import console
from busbw.show.topology_tree import plan_words

_NEAREST = ("PIX", "PXB", "PHB", "NODE", "SYS")
# More would not fit beside the other columns.
_MOST_NAMED = 1
_LONGEST_NAME = 24
# Names of the makers stand in front of every name of a GPU.
_MAKERS = ("NVIDIA ", "AMD Instinct ", "AMD ")


def host_text(host: Probe) -> None:
    """Print a host: what it is made of, what jobs would load and be set to, what is unusual, what is not known."""
    out = console()
    hardware = host.hardware
    for line in _heading(host):
        out.print(Text(printable(line)), soft_wrap=not out.is_terminal)
    tables = (_numa(hardware), _gpus(hardware), _ports(hardware))
    for table in tables:
        if table.row_count:
            out.print()
            out.print(table)
    network_table(host.network)
    if host.noise is not None:
        noise_text(host.noise)
    _list("libraries", [_library(one) for one in host.libraries])
    _list("settings", [f'{one.name} = "{one.value}"  ({one.path or "environment"})' for one in host.settings])
    _list("look at", list(host.remarks))
    _list("not known", list(hardware.missing))


def _heading(host: Probe) -> list[str]:
    hardware = host.hardware
    maker = " ".join(hardware.dmi[name] for name in ("sys_vendor", "product_name") if name in hardware.dmi)
    parts = [
        maker or None,
        f"VM ({hardware.hypervisor})" if hardware.hypervisor is not None else None,
        f"container ({hardware.container})" if hardware.container is not None else None,
    ]
    counts = [
        _count(hardware.sockets, "socket"),
        _count(hardware.cores, "core"),
        f"CPUs {format_cpu_list(hardware.cpus)}" if hardware.cpus else None,
        format_size(hardware.memory_bytes) if hardware.memory_bytes else None,
    ]
    processor = " ".join(part for part in (hardware.architecture, hardware.cpu_model) if part)
    by = "root" if host.root else "a user, not root"
    return [
        ": ".join(part for part in (hardware.hostname, ", ".join(part for part in parts if part)) if part),
        ": ".join(part for part in (processor, ", ".join(part for part in counts if part)) if part),
        f"captured {host.captured} by {by}{', anonymous' if host.anonymous else ''}",
    ]


def _count(number: int | None, word: str) -> str | None:
    return None if number is None else f"{number} {word}{'s' if number != 1 else ''}"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _row(table: Table, *cells: str | None) -> None:
    table.add_row(*(Text(printable(cell if cell is not None else "-")) for cell in cells))


def _numa(hardware: Hardware) -> Table:
    table = _table("NUMA", "CPUs", "memory")
    # Grace sets eight nodes a GPU aside for the memory of its partitions, of which most are empty.
    empty = tuple(node.id for node in hardware.numa if not node.cpus and node.memory_bytes == 0)
    for node in hardware.numa:
        if node.id not in empty:
            memory = format_size(node.memory_bytes) if node.memory_bytes is not None else None
            _row(table, str(node.id), format_cpu_list(node.cpus) or None, memory)
    if empty:
        _row(table, format_cpu_list(empty), None, "none")
    return table


def _gpus(hardware: Hardware) -> Table:
    nearest = {gpu.index: _nearest(hardware, gpu) for gpu in hardware.gpus}
    columns = ["GPU\n", "address\n", "name\n", "NUMA\n", "PCIe\n", "NVLink\n(GB/s)"]
    table = _table(*columns, *(["nearest NIC\n"] if any(nearest.values()) else []))
    for gpu in hardware.gpus:
        name = gpu.name
        for maker in _MAKERS:
            name = name.removeprefix(maker) if name is not None else None
        cells = [
            str(gpu.index),
            gpu.bus_id,
            name[:_LONGEST_NAME] if name else None,
            _numa_cell(gpu.numa),
            _gpu_link(gpu),
        ]
        cells += [_nvlinks(gpu.nvlinks or gpu.chip_links)]
        _row(table, *cells, *([nearest[gpu.index]] if any(nearest.values()) else []))
    return table


def _numa_cell(numa: int | None) -> str | None:
    return None if numa is None or numa < 0 else str(numa)


def _gpu_link(gpu: HostGpu) -> str | None:
    generation = _of(gpu.link_generation, gpu.max_link_generation)
    width = _of(gpu.link_width, gpu.max_link_width)
    parts = [f"gen {generation}" if generation else None, f"x{width}" if width else None]
    return " ".join(part for part in parts if part) or None


def _of(now: int | None, most: int | None) -> str | None:
    """Return `16`, or `8 of 16` where more would be possible."""
    if now is None:
        return None
    return f"{now} of {most}" if most is not None and most > now else str(now)


def _nvlinks(links: tuple[HostNvLink, ...]) -> str | None:
    active = [link for link in links if link.active]
    if not links:
        return None
    rate_Bps = sum(link.rate_Bps or 0 for link in active)
    return f"{_of(len(active), len(links))} ({rate_Bps / 1e9:.0f})" if active else f"0 of {len(links)}"


def _nearest(hardware: Hardware, gpu: HostGpu) -> str | None:
    """Return the NICs that nvidia-smi says are nearest to a GPU, and how near."""
    row = [cell for cell in hardware.matrix if cell.row == f"GPU{gpu.index}" and not cell.column.startswith("GPU")]
    for path in _NEAREST:
        names = [cell.column for cell in row if cell.path == path]
        if names:
            more = f" +{len(names) - _MOST_NAMED}" if len(names) > _MOST_NAMED else ""
            return f"{', '.join(names[:_MOST_NAMED])}{more} ({path})"
    return None


def _ports(hardware: Hardware) -> Table:
    pci = {function.bus_id: function for function in hardware.pci}
    table = _table("NIC", "interface", "address", "kind", "NUMA", "rate", "state", "PCIe")
    for port in hardware.ports:
        name = port.name if port.port == 1 else f"{port.name}:{port.port}"
        rate = f"{port.rate_bps / 1e9:g} Gb/s" if port.rate_bps is not None else None
        state = None if port.up is None else "up" if port.up else "down"
        interface = port.interface if port.interface != port.name else None
        link = _nic_link(port, pci)
        _row(table, name, interface, port.bus_id, port.kind, _numa_cell(port.numa), rate, state, link)
    return table


def _nic_link(port: HostPort, pci: dict[str, PciFunction]) -> str | None:
    function = pci.get(port.bus_id or "")
    if function is None or function.link_speed is None:
        return None
    return f"{function.link_speed.removesuffix(' PCIe')} x{_of(function.link_width, function.max_link_width) or '?'}"


def _library(one: FoundLibrary) -> str:
    is_nccl = one.kind in (None, "NCCL", "RCCL")
    kind = "" if is_nccl else f", {one.kind}"
    return f"{one.name} {one.version or '(version not said)'}{kind}  {one.path} ({one.found_by})"


def _list(title: str, lines: list[str]) -> None:
    if not lines:
        return
    out = console()
    out.print()
    out.print(Text(f"{title}:"))
    for line in lines:
        # Not wrapped: it may hold a path to copy.
        out.print(Text(printable(f"  {line}")), soft_wrap=True)


_RUNGS = {"firmware": "1 firmware", "metadata": "2 metadata service", "hardware": "3 hardware"}
_HEADINGS = {
    "matches": "it is",
    "possible": "possible: nothing speaks against it, and too little for it",
    "near_miss": "near misses",
}
_UNKNOWN = "unknown"


def detection_line(found: Detection) -> str:
    """Return id, how sure, and why, in one line."""
    sure = found.confidence if found.confidence is not None else "cannot tell"
    return printable(f"{found.platform or _UNKNOWN}  {sure}: {found.because}".replace("\n", " "))


def detection_text(found: Detection) -> None:
    """Print the line, what each step of the ladder saw, and why each near miss is none."""
    out = console()
    out.print(Text(detection_line(found), style="bold"), soft_wrap=True)
    for contradiction in found.contradictions:
        out.print(Text(printable(f"warn {contradiction.part}: {contradiction.text}"), style="yellow"), soft_wrap=True)
        if contradiction.fix is not None:
            _line(f"  {contradiction.fix}")
    for rung, group in groupby(found.evidence, key=lambda each: each.rung):
        _detection_heading(_RUNGS[rung])
        for each in group:
            _line(f"  {each.seen}")
            _line(f"    says {each.says}")
    for standing, candidates in groupby(found.candidates, key=lambda each: each.standing):
        _detection_heading(_HEADINGS[standing])
        for candidate in candidates:
            _candidate(candidate)


def warnings(found: Detection) -> Iterable[str]:
    """Yield where the host is not as its platform, a line each."""
    for each in found.contradictions:
        yield printable(f"warning: {each.text}")


def _candidate(candidate: Candidate) -> None:
    _line(f"  {candidate.platform}")
    # Of a near miss only what is against it is of interest; all of it is in --json.
    rest = () if candidate.standing == "near_miss" else (("+", candidate.agrees), ("?", candidate.unseen))
    for sign, texts in (("-", candidate.differs), *rest):
        for text in texts:
            _line(f"    {sign} {text}")


def _detection_heading(text: str) -> None:
    out = console()
    out.print()
    out.print(Text(text, style="bold"))


def _line(text: str) -> None:
    console().print(Text(printable(text)), soft_wrap=True)


_CANNOT_TELL = "cannot tell"
_MOST_SOURCES = 3


def limit_text(limit: Limit, *, detailed: bool) -> None:
    """Print the budget, then a table of ceilings, and, where `detailed`, the formulas of each."""
    out = console()

    def say(words: str, style: str = "") -> None:
        lines = _hanging(printable(words), out.width) if out.is_terminal else printable(words)
        out.print(Text(lines, style=style), soft_wrap=True)

    say(_limit_heading(limit))
    for part in limit.parts:
        for line in _part_lines(part, detailed=detailed):
            say(line)
    out.print()
    titles = {part.name: part.title for part in limit.parts}
    out.print(_limit_table(limit, titles))
    for bound in limit.bounds if detailed else ():
        out.print()
        for line in _bound_lines(bound, titles):
            say(line)
    out.print()
    for words in limit.assumptions:
        say(f"assumed: {words}")
    missing = dict.fromkeys([*limit.missing, *(words for bound in limit.bounds for words in bound.missing)])
    for words in missing:
        say(f"not known: {words}", "yellow")
    shown = {bound.algorithm for bound in limit.bounds}
    for plan in limit.plans:
        if plan.algorithm in shown:
            say(f"NCCL {limit.planned_by} plans for {plan.algorithm}: {plan_words(plan)} (its own rates, no limit)")
    say("at most: arithmetic on line rates. as seen: the same with what somebody has measured of them")


def _hanging(line: str, width: int) -> str:
    """Return a line broken at `width`, what follows set under the last column of the first: two spaces part columns."""
    column = line.rstrip().rfind("  ") + 2
    indent = " " * (column if 1 < column < width // 2 else 4)
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _sources(ids: tuple[str, ...]) -> str:
    """Return the first sources of a value; --json has all."""
    if not ids:
        return ""
    return f" [{listed(ids, _MOST_SOURCES)}]"


def _limit_heading(limit: Limit) -> str:
    nodes = f"{limit.nodes} node{'s' if limit.nodes > 1 else ''}"
    gpus = f" of {limit.gpus} GPU{'s' if limit.gpus > 1 else ''}" if limit.gpus else ""
    domains = f" in {limit.domains} NVLink domain{'s' if limit.domains > 1 else ''}" if limit.domains else ""
    return f"{limit.name or 'these nodes'}: {nodes}{gpus}{domains}, {limit.ranks} ranks"


def _part_lines(part: Part, *, detailed: bool) -> list[str]:
    rate = format_rate(part.rate_Bps) if part.rate_Bps is not None else "not known"
    figures = part.figures if part.rate_Bps is not None else part.missing
    lines = [f"  {part.title:<20}{rate:>11}  {figures}{_sources(part.source)}"]
    if not detailed or part.rate_Bps is None:
        return lines
    # One constant may hold for several algorithms.
    by_words: dict[str, list[Attained]] = {}
    for seen in part.attained:
        by_words.setdefault(seen.words, []).append(seen)
    for words, group in by_words.items():
        names = "".join(f"{seen.algorithm}, " for seen in group if seen.algorithm is not None)
        fitted = "fitted: " if group[0].fitted else ""
        attained = format_rate(part.rate_Bps * group[0].share)
        lines.append(f"  {'  as seen':<20}{attained:>11}  {names}{fitted}{words}{_sources(group[0].source)}")
    return lines


def _limit_table(limit: Limit, titles: dict[PartName, str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("collective")
    table.add_column("algorithm")
    table.add_column("busbw at most", justify="right")
    table.add_column("algbw", justify="right")
    table.add_column("as seen", justify="right")
    table.add_column("limited by")
    for bound in limit.bounds:
        table.add_row(
            bound.collective,
            bound.algorithm,
            _rate(bound.busbw_Bps),
            _rate(bound.algbw_Bps) if bound.busbw_Bps is not None else "",
            format_rate(bound.attained_Bps) if bound.attained_Bps is not None else "",
            titles[bound.limited_by] if bound.limited_by is not None else "",
        )
    return table


def _rate(rate_Bps: float | None) -> str:
    return format_rate(rate_Bps) if rate_Bps is not None else _CANNOT_TELL


def _bound_lines(bound: Bound, titles: dict[PartName, str]) -> list[str]:
    lines = [f"{bound.collective}, {bound.algorithm}: {_result(bound)}", f"  {bound.why}{_sources(bound.source)}"]
    lines += [f"  if: {condition}" for condition in bound.conditions]
    lines += [words for line in bound.lines for words in _line_lines(line, titles[line.part])]
    return lines


def _result(bound: Bound) -> str:
    if bound.busbw_Bps is None or bound.algbw_Bps is None:
        return f"{_CANNOT_TELL}: {'; '.join(bound.missing)}"
    return f"busbw at most {format_rate(bound.busbw_Bps)}, algbw {format_rate(bound.algbw_Bps)}"


def _line_lines(line: LimitLine, title: str) -> list[str]:
    mark = "->" if line.limits else "  "
    lines = [f"  {mark} {title:<20}  {line.formula}", f"     {'':<20}  {line.figures}"]
    if line.attained_Bps is not None:
        lines.append(f"     {'':<20}  as seen: {format_rate(line.attained_Bps)}, {line.attained_words}")
    return lines
