"""Platforms as text: a list, and a page about one that can be pasted into a ticket."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from busbw.model.platform import (
    Platform,
    PlatformSetting,
    Published,
    PublishedSweep,
    ResolvedPlatform,
    Threshold,
)
from busbw.show.plain import printable
from busbw.show.text import platform_words as words
from busbw.show.text.terminal import console

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
            words.gpus(each) or "none",
            f"{each.nvlink.gpu_Bps / 1e9:g}" if each.nvlink.gpu_Bps is not None else "",
            words.nics(each) or "",
            each.fabric.kind or "",
            words.map_known(each),
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
    _rows(out, "", words.identity(platform))
    _rows(out, "node", [(name, value or _NOT_PUBLISHED) for name, value in words.node(platform)])
    _map(out, platform)
    if platform.variants:
        _rows(out, "sizes", words.variants(platform))
    _settings(out, platform.settings)
    _paragraphs(out, "ways to start ranks", words.launches(platform))
    _rows(out, "images", words.images(platform))
    _published(out, platform.published)
    _sweeps(out, platform.sweeps)
    _thresholds(out, platform.thresholds)
    _paragraphs(out, "where sources disagree", words.disagreements(platform))
    _lines(out, "traps", platform.traps)
    _lines(out, "looked for and not found", platform.missing)
    _rows(out, "sources", [(each.id, words.source(each)) for each in platform.sources])
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
                words.nearest(platform, gpu),
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
                words.bits(nic.rate_bps if nic.rate_bps is not None else platform.nic.port_bps) or "",
            )
            for nic in platform.nics
        ]
        out.print(_table(["NIC", "PCI address", "NUMA", "rate"], rows_of_nics))
    near = {gpu.numa for gpu in platform.gpus} | {nic.numa for nic in platform.nics}
    others = [node for node in platform.numa if node.id not in near or node.gpu_memory]
    _rows(out, "NUMA nodes" if len(others) == len(platform.numa) else "other NUMA nodes", words.numa(others))


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
            why = words.sourced(each.reason or each.note, each)
            _entry(out, written, f"{each.scope}{f': {why}' if why else ''}")


def _published(out: Console, published: Sequence[Published]) -> None:
    if published:
        _title(out, "what was published")
        rows = [
            (
                each.test,
                f"{each.value:g} {each.unit}",
                words.scale(each),
                f"{each.kind}: {words.sourced(_of(each), each)}",
            )
            for each in published
        ]
        out.print(_table(["test", "value", "at", "kind: conditions"], rows))


def _of(published: Published) -> str:
    return "; ".join(part for part in (published.metric, published.conditions, published.note) if part)


def _sweeps(out: Console, sweeps: Sequence[PublishedSweep]) -> None:
    if sweeps:
        _title(out, "tables that were published, one line each: --json has every size")
        rows = [
            (each.test, words.sweep_scale(each), words.sweep_sizes(each), words.sweep_best(each), words.sweep_for(each))
            for each in sweeps
        ]
        out.print(_table(["test", "at", "sizes", "best\nGB/s", "conditions"], rows, between=1))


def _thresholds(out: Console, thresholds: Sequence[Threshold]) -> None:
    if thresholds:
        _title(out, "limits of health checks in use")
        rows = [
            (
                each.check,
                each.test,
                f"{each.passes} {each.value:g} {each.unit}",
                "; ".join(part for part in (each.size, each.scope, words.sourced(each.note, each)) if part),
            )
            for each in thresholds
        ]
        out.print(_table(["check", "test", "passes", "at"], rows))
