"""The pictures of a run's machine, each as an address that holds the whole drawing."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from busbw.base.text import printable
from busbw.model.imported import Imported, Reading
from busbw.model.record import Hello
from busbw.model.run import Run
from busbw.model.settings import Settings
from busbw.model.topology import GpuSpot, NodeView
from busbw.model.verdict import ExplainedVerdict
from busbw.show.text.imported import Digest, Listing
from busbw.show.topology_tree import (
    Box,
    Kind,
    boxes_of,
    ceiling_lines,
    link_lines,
    number_of,
    release_of,
    short_list,
    summary,
)
from busbw.show.words import numbers_words, placement_words


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """A node to draw, and whose it is, in words: the published platform or the captured host."""

    view: NodeView
    whose: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportSubject:
    """One run of a report. `label` tells it from the others in tables and legends."""

    run: Run
    label: str
    # Every choice of every layer; None: the run stored none.
    settings: Settings | None = None
    # What could not be looked at and may set something, a line each.
    unseen: tuple[str, ...] = ()
    picture: Picture | None = None
    # Each size with what was expected and what is possible there; None: nobody explained it.
    explained: ExplainedVerdict | None = None


def labels_of(runs: tuple[Run, ...]) -> tuple[str, ...]:
    """Return a name for each run: its tag where no other has it, else its id; a number where ids are alike too."""
    tags = [run.plan.tag or "" for run in runs]
    ids = [run.plan.run_id for run in runs]
    names = [tag if tag and tags.count(tag) == 1 else run_id for tag, run_id in zip(tags, ids, strict=True)]
    return tuple(name if names.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(names, start=1))


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportSubject:
    """One import of a report. `label` tells it from the others."""

    label: str
    imported: Imported
    # By the number of the table.
    digests: Mapping[int, Digest]
    unread: Listing
    # The first readings, in the order of their tables, and how many more the import has.
    readings: tuple[Reading, ...]
    left_out: int = 0
    explained: ExplainedVerdict


# Every character of a monospaced font of 12 px is as wide as this or narrower, so that what fits can be counted.
_CHARACTER = 7.3
_LINE = 16
_PADDING = 9
_TOPOLOGY_SVG_HEADER = 24
_PAGE = 1180
_TOPOLOGY_SVG_MARGIN = 20
_TOPOLOGY_SVG_LONGEST = 34
_LONGEST_PORTS = 16
# Lines of their own may be as long as the page is wide; the title is of 15 px.
_LONGEST_LINE = int((_PAGE - 2 * _TOPOLOGY_SVG_MARGIN) / _CHARACTER)
_LONGEST_TITLE = int(_LONGEST_LINE * 12 / 15)
# Light and dark, for any drawing of boxes.
STYLE = """
svg { color-scheme: light dark; }
text { font: 12px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1f2328; }
text { white-space: pre; }
.head { font-weight: 700; }
.page { font-size: 15px; font-weight: 700; }
.dim { fill: #59636e; }
rect { fill: #ffffff; stroke: #8c959f; }
.ground { stroke: none; }
.numa { fill: #f6f8fa; }
.switch { fill: #ffffff; stroke-dasharray: 4 3; }
.gpu { fill: #dafbe1; stroke: #2da44e; }
.nic { fill: #ddf4ff; stroke: #0969da; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .dim { fill: #9198a1; }
  rect { fill: #0d1117; stroke: #656c76; }
  .numa { fill: #151b23; }
  .switch { fill: #0d1117; }
  .gpu { fill: #12261e; stroke: #2ea043; }
  .nic { fill: #121d2f; stroke: #388bfd; }
}
"""


@dataclass(kw_only=True)
class _Placed:
    """A box with its size, and rows of the boxes within it."""

    kind: Kind
    lines: tuple[str, ...]
    width: float
    height: float
    rows: list[list["_Placed"]] = field(default_factory=list)


def topology_svg(view: NodeView) -> str:
    """Return the drawing of a node: the same text for the same view."""
    near = {f"GPU{spot.number}": f"{spot.path} {short_list(spot.ports)}" for spot in view.gpus if spot.path is not None}
    boxes = boxes_of(view.topology)
    columns = 2 if len(boxes) > 1 else 1
    inner = (_PAGE - 2 * _TOPOLOGY_SVG_MARGIN - _GAP * (columns - 1)) / columns
    placed = [_place(box, inner, near) for box in boxes]
    # A chain of switches may need more than its share of the page.
    column = max([inner, *(box.width for box in placed)])
    width = 2 * _TOPOLOGY_SVG_MARGIN + columns * column + _GAP * (columns - 1)
    parts: list[str] = []
    top = 62.0
    for first in range(0, len(placed), columns):
        row = placed[first : first + columns]
        height = max(box.height for box in row)
        for place, box in enumerate(row):
            _stretch(box, column, height)
            parts += _draw(box, _TOPOLOGY_SVG_MARGIN + place * (column + _GAP), top)
        top += height + _GAP
    top += _LINE / 2
    for line in (*link_lines(view.topology, release_of(view)), *ceiling_lines(view)):
        top += _LINE
        parts.append(_text(_TOPOLOGY_SVG_MARGIN, top, printable(line)[:_LONGEST_LINE]))
    return _page(view, parts, width, top + _TOPOLOGY_SVG_MARGIN)


def _near(spot: GpuSpot) -> str:
    ports = short_list(spot.ports)
    if len(ports) > _LONGEST_PORTS:
        ports = f"{spot.ports[0]} +{len(spot.ports) - 1}"
    return f"{spot.path} {ports}"


def _page(view: NodeView, parts: list[str], width: float, height: float) -> str:
    title = summary(view.topology)
    shown = escape(printable(title)[:_LONGEST_TITLE])
    size = f"{width:.0f}", f"{height:.0f}"
    extent, label = f'width="{size[0]}" height="{size[1]}"', f"aria-label={quoteattr(printable(title))}"
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" {extent} role="img" {label}>',
            f"<title>{shown}</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="ground" {extent}/>',
            f'<text class="page" x="{_TOPOLOGY_SVG_MARGIN}" y="28">{shown}</text>',
            _text(
                _TOPOLOGY_SVG_MARGIN,
                48,
                f"link rates in GB/s, one direction, as NCCL {view.release} counts them",
                "dim",
            ),
            *parts,
            "</svg>\n",
        )
    )


def _place(box: Box, most: float, near: dict[str, str]) -> _Placed:
    """Lay out a box at most `most` wide, wider only where a part of it alone is."""
    if not box.below and box.kind in ("gpu", "nic", "other"):
        lines = tuple(line for line in _lines_of(box, near) if line)
        longest = max(len(line) for line in lines)
        return _Placed(
            kind=box.kind,
            lines=lines,
            width=longest * _CHARACTER + 2 * _PADDING,
            height=len(lines) * _LINE + _PADDING,
        )
    head = _topology_svg_cut(", ".join(part for part in (" ".join(_names(box)), _link(box), box.ports) if part))
    rows = _rows([_place(part, most - 2 * _PADDING, near) for part in box.below], most - 2 * _PADDING)
    widths = [sum(part.width for part in row) + _GAP * (len(row) - 1) for row in rows]
    heights = [max(part.height for part in row) + _GAP for row in rows]
    return _Placed(
        kind=box.kind,
        lines=(head,),
        width=max([len(head) * _CHARACTER, *widths]) + 2 * _PADDING,
        height=_TOPOLOGY_SVG_HEADER + (sum(heights) - _GAP + _PADDING if rows else 4),
        rows=rows,
    )


def _rows(parts: list[_Placed], most: float) -> list[list[_Placed]]:
    """Stand parts side by side, and begin a row where the next does not fit."""
    rows: list[list[_Placed]] = []
    left = 0.0
    for part in parts:
        if not rows or left + part.width > most:
            rows.append([])
            left = 0.0
        rows[-1].append(part)
        left += part.width + _GAP
    return rows


def _stretch(box: _Placed, width: float, height: float) -> None:
    """Give a box this size: the parts of a row become as high as the highest, and those that hold others fill it."""
    box.width, box.height = width, height
    for row in box.rows:
        wide = sum(bool(part.rows) for part in row)
        spare = width - 2 * _PADDING - sum(part.width for part in row) - _GAP * (len(row) - 1)
        highest = max(part.height for part in row)
        for part in row:
            _stretch(part, part.width + (max(spare, 0.0) / wide if part.rows else 0.0), highest)


def _lines_of(box: Box, near: dict[str, str]) -> tuple[str, ...]:
    ports = f"port {box.ports}" if box.ports else ""
    rates = ", ".join(part for part in (_link(box), ports) if part)
    return tuple(_topology_svg_cut(line) for line in (box.title, box.address, rates, near.get(box.title, "")))


def _names(box: Box) -> tuple[str, ...]:
    return (f"{box.title}:", box.address) if box.kind == "numa" else (box.title, box.address)


def _link(box: Box) -> str:
    return f"PCIe {number_of(box.link_Bps)}" if box.link_Bps is not None else ""


def _draw(box: _Placed, left: float, top: float) -> list[str]:
    place = f'x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"'
    drawn = [f'<rect class="{box.kind}" {place} rx="5"/>']
    for number, line in enumerate(box.lines):
        style = "head" if number == 0 and box.kind != "switch" else "dim" if box.kind == "switch" else ""
        drawn.append(_text(left + _PADDING, top + _LINE * (number + 1) - 1, line, style))
    down = top + _TOPOLOGY_SVG_HEADER
    for row in box.rows:
        across = left + _PADDING
        for part in row:
            drawn += _draw(part, across, down)
            across += part.width + _GAP
        down += max(part.height for part in row) + _GAP
    return drawn


def _topology_svg_cut(line: str) -> str:
    shown = printable(line)
    return shown if len(shown) <= _TOPOLOGY_SVG_LONGEST else shown[: _TOPOLOGY_SVG_LONGEST - 3] + "..."


_WIDTH = 900
_MARGIN = 12
_CHIP_WIDTH = 164
_CHIP_HEIGHT = 42
_GAP = 8
_HEADER = 26
_MOST_HOSTS = 8
_MOST_RANKS = 20
# Characters of 12 px that fit into a chip, and into the head of a box.
_LONGEST = 20
_LONGEST_HEAD = 110


def placement_svg(run: Run) -> str:
    """Return the drawing of a run's hosts and ranks; ranks that said nothing are not in it."""
    hosts = tuple(dict.fromkeys((*run.plan.placement.hosts, *(hello.host for hello in run.ranks))))
    parts: list[str] = []
    top = float(_MARGIN)
    for host in hosts[:_MOST_HOSTS]:
        drawn, top = _host(host, [hello for hello in run.ranks if hello.host == host], run, top)
        parts += drawn
    if len(hosts) > _MOST_HOSTS:
        top += _GAP
        parts.append(_text(_MARGIN, top + 10, f"and {len(hosts) - _MOST_HOSTS} more hosts"))
        top += 20
    title = escape(printable(placement_words(run.plan.placement)))
    size = f'width="{_WIDTH}" height="{top + _MARGIN:.0f}"'
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top + _MARGIN:.0f}" {size} role="img"',
            f"  aria-label={quoteattr(title)}>",
            f"<title>{title}</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="ground" {size}/>',
            *parts,
            "</svg>\n",
        )
    )


def _host(host: str, ranks: Sequence[Hello], run: Run, top: float) -> tuple[list[str], float]:
    """Return the box of one host at `top`, and where the next one begins."""
    across = (_WIDTH - 2 * _MARGIN - _GAP) // (_CHIP_WIDTH + _GAP)
    shown = ranks[:_MOST_RANKS]
    lines = -(-len(shown) // across)
    more = len(ranks) - len(shown)
    height = _HEADER + lines * (_CHIP_HEIGHT + _GAP) + (18 if more else 0) + 6
    drawn = [
        f'<rect class="numa" x="{_MARGIN}" y="{top:.0f}" width="{_WIDTH - 2 * _MARGIN}" height="{height:.0f}" rx="5"/>',
        _text(_MARGIN + _GAP, top + 17, _cut(_head(host, len(ranks), run), _LONGEST_HEAD), "head"),
    ]
    for place, hello in enumerate(shown):
        left = _MARGIN + _GAP + place % across * (_CHIP_WIDTH + _GAP)
        down = top + _HEADER + place // across * (_CHIP_HEIGHT + _GAP)
        kind = "gpu" if hello.gpu is not None else "nic"
        drawn += [
            f'<rect class="{kind}" x="{left}" y="{down:.0f}" width="{_CHIP_WIDTH}" height="{_CHIP_HEIGHT}" rx="5"/>',
            _text(left + 8, down + 17, f"rank {hello.rank}", "head"),
            _text(left + 8, down + 33, _cut(_where(hello), _LONGEST), "dim"),
        ]
    if more:
        drawn.append(_text(_MARGIN + _GAP, top + height - 9, f"and {more} more ranks"))
    return drawn, top + height + _GAP


def _head(host: str, ranks: int, run: Run) -> str:
    node = next((node for node in run.nodes if node.host == host), None)
    known: tuple[str | None, ...] = ()
    if node is not None:
        known = (node.cpu_model, f"{node.cpus} CPUs", f"{node.numa_nodes} NUMA nodes" if node.numa_nodes > 1 else None)
    elif host == run.plan.host.name:
        here = run.plan.host
        several = f"{here.numa_nodes} NUMA nodes" if here.numa_nodes > 1 else None
        known = (here.cpu_model, f"{here.cores} cores", several)
    said = f"{ranks} rank{'s' if ranks != 1 else ''}" if ranks else "no rank said anything"
    ports = [f"{port.name} {port.rate or ''}".strip() for port in node.ports if port.up] if node is not None else []
    return f"{host}: {', '.join(part for part in (*known, said, *ports) if part)}"


def _where(hello: Hello) -> str:
    if hello.gpu is not None:
        return f"GPU {hello.gpu.ordinal} {hello.gpu.bus_id}"
    return f"CPU{'s' if len(hello.cpus) != 1 else ''} {numbers_words(hello.cpus)}"


def _cut(line: str, longest: int) -> str:
    shown = printable(line)
    return shown if len(shown) <= longest else shown[: longest - 3] + "..."


def _text(left: float, top: float, line: str, style: str = "") -> str:
    named = f' class="{style}"' if style else ""
    return f'<text{named} x="{left:.1f}" y="{top:.1f}">{escape(printable(line))}</text>'


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawing:
    """An SVG as a `data:` address, what it shows in words, and what is to be known of it."""

    address: str
    words: str
    caption: str
    lines: tuple[str, ...] = ()


def pictures_of(subject: ReportSubject) -> tuple[Drawing, ...]:
    """Return where the ranks were, and the node, where its inside is known.

    As images they keep their style sheets to themselves.
    """
    run = subject.run
    placed = Drawing(
        address=svg_address(placement_svg(run)),
        words=printable(f"hosts and ranks: {placement_words(run.plan.placement)}"),
        caption="Hosts and ranks, as the ranks said where they were.",
    )
    if subject.picture is None:
        return (placed,)
    view = subject.picture.view
    node = Drawing(
        address=svg_address(topology_svg(view)),
        words=printable(f"one node: {summary(view.topology)}"),
        caption=f"One node: {subject.picture.whose}.",
        lines=(*link_lines(view.topology, release_of(view)), *view.notes),
    )
    return (placed, node)


def svg_address(svg: str) -> str:
    """Return an address that holds a whole drawing."""
    return f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"
