"""A node as a picture in the terminal, and where its GPUs sit as a table."""

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from busbw.base.cpus import format_cpu_list
from busbw.model.paths import GpuSpot, NodeView
from busbw.show.plain import printable
from busbw.show.text.terminal import console
from busbw.show.topology_tree import Box, boxes_of, number_of, short_list
from busbw.show.topology_words import link_lines, summary

_COLOURS = {"numa": "bold", "switch": "", "gpu": "green", "nic": "cyan", "other": "dim"}
# Where what is written on a box ends and its rates begin.
_RATE_COLUMN = 54
_MOST_PORTS = 4


def topology_text(view: NodeView) -> None:
    """Print the picture of a node, the links between its parts, the table of its GPUs, and what a ring could reach."""
    out = console()
    out.print(Text(printable(summary(view.topology))), soft_wrap=True)
    out.print(Text("link rates in GB/s, one direction, as NCCL counts them", style="dim"))
    for box in boxes_of(view.topology):
        out.print()
        for line, style in _lines(box, "", ""):
            out.print(Text(printable(line), style=style), soft_wrap=True)
    lines = link_lines(view.topology)
    if lines:
        out.print()
    for line in lines:
        out.print(Text(printable(line)), soft_wrap=True)
    if view.gpus:
        out.print()
        out.print(_table(view.gpus))
    if view.ceilings:
        out.print()
    for ceiling in view.ceilings:
        line = f"{ceiling.algorithm}: {ceiling.busbw_Bps / 1e9:.1f} GB/s of bus bandwidth at best; {ceiling.formula}"
        out.print(Text(printable(line)), soft_wrap=not out.is_terminal)


def _lines(box: Box, before: str, below: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a box and everything below it; `before` and `below` are the branches to its left."""
    words = "  ".join(part for part in (box.title, box.address) if part)
    rates = " ".join(
        part
        for part in (
            f"{number_of(box.link_Bps):>6}" if box.link_Bps is not None else " " * 6 if box.ports else "",
            f"port {box.ports}" if box.ports else "",
        )
        if part
    )
    yield (f"{before}{words}".ljust(_RATE_COLUMN) + rates).rstrip(), _COLOURS[box.kind]
    for place, inner in enumerate(box.below):
        is_last = place + 1 == len(box.below)
        yield from _lines(inner, below + ("└─ " if is_last else "├─ "), below + ("   " if is_last else "│  "))


def _table(spots: Sequence[GpuSpot]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    shared = any(spot.sharers > 1 for spot in spots)
    for name in ("GPU", "NUMA", "CPUs", "nearest NIC", "path", "GB/s", "narrowest link"):
        table.add_column(name, justify="right" if name in ("GPU", "NUMA", "GB/s") else "left", overflow="fold")
    if shared:
        table.add_column("shared by", justify="right")
    for spot in spots:
        table.add_row(
            str(spot.number),
            str(spot.numa) if spot.numa >= 0 else "-",
            format_cpu_list(spot.cpus) if spot.cpus else "-",
            Text(printable(port_words(spot))),
            spot.path or "-",
            number_of(spot.path_Bps) if spot.path_Bps is not None else "-",
            Text(printable(spot.bottleneck or "-")),
            *([str(spot.sharers)] if shared else []),
        )
    return table


def port_words(spot: GpuSpot) -> str:
    """Return the nearest ports of a GPU, the first of many."""
    more = f" +{len(spot.ports) - _MOST_PORTS}" if len(spot.ports) > _MOST_PORTS else ""
    return (short_list(spot.ports[:_MOST_PORTS]) or "-") + more
