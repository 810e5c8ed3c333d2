"""A node as a picture in the terminal, and where its GPUs sit as a table."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import get_args

from rich.console import Console
from rich.table import Table
from rich.text import Text

from busbw.base.cpus import format_cpu_list
from busbw.base.text import listed, printable
from busbw.model.topology import (
    BindingReading,
    BoundRank,
    GpuSpot,
    Group,
    MaskForms,
    MatrixRow,
    NodeView,
    PathMatrix,
    RankMasks,
    TopologyComparison,
    TopologyDifference,
)
from busbw.show.text.terminal import console
from busbw.show.topology_tree import (
    Box,
    boxes_of,
    ceiling_lines,
    link_lines,
    number_of,
    release_of,
    short_list,
    summary,
)
from busbw.topo.paths.matrix import meanings

_COLOURS = {"numa": "bold", "switch": "", "gpu": "green", "nic": "cyan", "other": "dim"}
# Where what is written on a box ends and its rates begin.
_RATE_COLUMN = 54
_MOST_PORTS = 4


def topology_text(view: NodeView) -> None:
    """Print the picture of a node, the links between its parts, the table of its GPUs, and what a ring could reach."""
    out = console()
    out.print(Text(printable(summary(view.topology))), soft_wrap=True)
    out.print(Text(f"link rates in GB/s, one direction, as NCCL {view.release} counts them", style="dim"))
    for box in boxes_of(view.topology):
        out.print()
        for line, style in _lines(box, "", ""):
            out.print(Text(printable(line), style=style), soft_wrap=True)
    lines = link_lines(view.topology, release_of(view))
    if lines:
        out.print()
    for line in lines:
        out.print(Text(printable(line)), soft_wrap=True)
    if view.gpus:
        out.print()
        out.print(_table(view.gpus))
    lines = ceiling_lines(view)
    if lines:
        out.print()
    for line in lines:
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


_AFFINITIES = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
_NOT_KNOWN = "N/A"


def matrix_text(matrix: PathMatrix) -> None:
    """Print the matrix with its legend. Lines are as wide as they are: scripts read them by column."""
    out = console()
    names = [row.name for row in matrix.rows]
    header = ["", *names, *_AFFINITIES]
    rows = [[row.name, *row.cells, *_affinity(row)] for row in matrix.rows]
    widths = [max(len(line[place]) for line in (header, *rows)) for place in range(len(header))]
    for line in (header, *rows):
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        out.print(Text(printable("  ".join(cells).rstrip())), soft_wrap=True)
    out.print()
    for name, meaning in meanings(matrix):
        out.print(Text(f"{name:<5} {meaning}"), soft_wrap=True)
    if matrix.legend:
        out.print()
    for name, device in matrix.legend:
        out.print(Text(printable(f"{name}: {device}")), soft_wrap=True)


def _affinity(row: MatrixRow) -> tuple[str, str, str]:
    if not row.name.startswith("GPU"):
        return "", "", ""
    cpus = format_cpu_list(row.cpus) if row.cpus else _NOT_KNOWN
    # A GPU's memory is a NUMA node of its own on Grace only, and no topology says which.
    return cpus, str(row.numa) if row.numa is not None else _NOT_KNOWN, _NOT_KNOWN


_ORDER = get_args(Group)


def difference_text(comparison: TopologyComparison) -> None:
    """Print a table for each kind of difference, and what does not count as one."""
    out = console()
    out.print(Text(printable(f"A: {comparison.first}\nB: {comparison.second}")), soft_wrap=not out.is_terminal)
    ordered = sorted(comparison.differences, key=lambda difference: _ORDER.index(difference.group))
    for group, differences in groupby(ordered, key=lambda difference: difference.group):
        out.print()
        out.print(Text(group, style="bold"))
        out.print(_difference_table(list(differences)))
    out.print()
    count = len(comparison.differences)
    if count:
        out.print(Text(f"{count} difference{'s' if count > 1 else ''} that NCCL would see", style="yellow"))
    else:
        out.print(Text("equal: NCCL would see the same", style="green"))
    for words, left in (
        ("said by one side, left to detection by the other", comparison.detected),
        ("different, and not used by NCCL", comparison.unused),
    ):
        if left:
            out.print(Text(f"{words}: {_kinds(left)} (--json lists them)"), soft_wrap=not out.is_terminal)


def _difference_table(differences: Sequence[TopologyDifference]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("", "", "A", "B"):
        table.add_column(heading, overflow="fold")
    folded: dict[tuple[str | None, str | None, str | None], list[str]] = {}
    for each in differences:
        folded.setdefault((each.what, each.first, each.second), []).append(each.subject)
    for (what, first, second), subjects in folded.items():
        absent = "" if differences[0].group == "files" else "absent"
        cells = (listed(subjects, 1), what or "", first or absent, second or absent)
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table


def _kinds(differences: Sequence[TopologyDifference]) -> str:
    """Return which values these are, each kind once: `CPU masks, GPUs (compute capability, number)`."""
    kinds: dict[str, set[str]] = {}
    for each in differences:
        kinds.setdefault(each.group, set()).update({each.what} if each.what is not None else set())
    return ", ".join(
        f"{group} ({', '.join(sorted(printable(what) for what in whats))})" if whats else group
        for group, whats in sorted(kinds.items())
    )


_TITLES = {"node": "all CPUs of each rank's NUMA node", "share": "an even share of them"}
_FIT_COLOURS = {"right": "green", "partly": "yellow", "wrong": "bold red", "unknown": "cyan"}


def masks_text(masks: RankMasks) -> None:
    """Print where ranks belong, then the forms, or what the binding that was asked about gives."""
    out = console()
    out.print(_places(masks))
    for words in masks.remarks:
        out.print(Text(printable(words)), soft_wrap=not out.is_terminal)
    for words in masks.missing:
        out.print(Text(printable(f"not known: {words}"), style="yellow"), soft_wrap=not out.is_terminal)
    if masks.binding is None:
        # Not wrapped: it is there to be pasted.
        for line in (*(line for form in masks.forms for line in _form_lines(form)), *_sufficient_lines(masks)):
            out.print(Text(line), soft_wrap=True)
    for reading in masks.readings:
        _reading_text(out, masks, reading)


def _reading_text(out: Console, masks: RankMasks, reading: BindingReading) -> None:
    out.print()
    out.print(Text(printable(f"{reading.launcher}, {' '.join((masks.binding or '').split())[:200]}"), style="bold"))
    if reading.cannot_tell is not None:
        out.print(Text(printable(f"cannot tell: {reading.cannot_tell}"), style="cyan"), soft_wrap=True)
    else:
        out.print(_reading(masks, reading))
        for line in _conclusions(masks, reading):
            out.print(Text(printable(line)), soft_wrap=not out.is_terminal)
    for words in (*reading.notes, f"source: {reading.source}"):
        out.print(Text(printable(words), style="dim"), soft_wrap=not out.is_terminal)


def _mask_table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, justify="right" if title in ("rank", "NUMA") else "left", overflow="fold")
    return table


def _places(masks: RankMasks) -> Table:
    table = _mask_table("rank", "GPU", "NUMA", "its CPUs", "an even share")
    for place in masks.ranks:
        table.add_row(
            str(place.rank),
            printable(place.gpu or "-"),
            str(place.numa) if place.numa is not None else "?",
            _cpus(place.cpus),
            _cpus(place.share) if place.share != place.cpus else "all",
        )
    return table


def _cpus(cpus: tuple[int, ...] | None) -> str:
    return format_cpu_list(cpus) if cpus else "not known"


def _form_lines(form: MaskForms) -> list[str]:
    options = "".join(f"\n  {launcher}: {text}" for launcher, text in form.rankfile_options)
    rankfile = [f"rankfile of Open MPI, for one node (+n1 is the second node):{options}"] if form.rankfile else []
    return [
        f"\n{_TITLES[form.cpus]}",
        f"srun:\n  {form.srun}",
        "taskset or numactl, for ranks 0, 1, ...:",
        *(
            f"  taskset -c {cpus}  |  numactl {numactl}"
            for cpus, numactl in zip(form.taskset, form.numactl, strict=True)
        ),
        *rankfile,
        *(f"  {line}" for line in form.rankfile),
    ]


def _sufficient_lines(masks: RankMasks) -> list[str]:
    if not masks.forms:
        return []
    lines = [f"  {launcher}: mpirun {text}" for launcher, text in masks.sufficient]
    if not lines:
        return ["\nno --map-by with --bind-to of mpirun is known to give this order"]
    return ["\nsufficient for mpirun:", *lines]


def _reading(masks: RankMasks, reading: BindingReading) -> Table:
    table = _mask_table("rank", "its CPUs", "NUMA", "GPU's", "", "NCCL's threads")
    for place, rank in zip(masks.ranks, reading.ranks, strict=True):
        table.add_row(
            str(rank.rank),
            _cpus(rank.cpus),
            ",".join(map(str, rank.numa)) or "?",
            str(place.numa) if place.numa is not None else "?",
            Text(rank.fit, style=_FIT_COLOURS[rank.fit]),
            _nccl(rank),
        )
    return table


def _nccl(rank: BoundRank) -> str:
    if rank.nccl_applies is None:
        return "cannot tell"
    return f"{_cpus(rank.nccl_cpus)}{'' if rank.nccl_applies else ', as they are'}"


def _conclusions(masks: RankMasks, reading: BindingReading) -> list[str]:
    wrong = [rank for rank in reading.ranks if rank.fit == "wrong"]
    partly = [rank for rank in reading.ranks if rank.fit == "partly"]
    stay = [rank for rank in reading.ranks if rank.nccl_applies is False]
    lines = []
    if wrong:
        lines.append(f"{len(wrong)} of {len(reading.ranks)} ranks run on a NUMA node that is not their GPU's")
    if wrong and masks.ignores_affinity:
        lines.append(
            "NCCL_IGNORE_CPU_AFFINITY=1: NCCL moves its own threads to the GPU's node; those of the program stay"
        )
    if stay:
        lines.append(
            "NCCL finds no CPU that both sets share, and leaves its threads where they are: NCCL 2.28 and later log "
            "`Affinity for GPU N is empty, ignoring`, up to 2.27 it says nothing"
        )
    if partly:
        lines.append(
            f"{len(partly)} of {len(reading.ranks)} ranks may also run elsewhere; NCCL keeps its own threads on the "
            "CPUs of the GPU's node that the rank has"
        )
    if not wrong and not partly and all(rank.fit == "right" for rank in reading.ranks):
        lines.append("every rank runs on the NUMA node of its GPU")
    return lines
