"""A swept fabric as a drawing: what leaves stand under, leaves, hosts below; slow links; suspects outlined.

It is an SVG that follows the reader's light or dark, without any script.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from xml.sax.saxutils import escape, quoteattr

from busbw.base.text import counted, printable
from busbw.fabric.drawing import loss_words
from busbw.fabric.views import FabricTree, HostSpot, LeafBox, LeafLink
from busbw.show.figures.axes import COLOURS, Theme

_WIDTH = 960
_MARGIN = 14
_COLUMNS = 6
_GAP = 12
_FEWEST_COLUMNS = 3
_HEAD = 54
_BAR_HEIGHT = 22
# Between a bar and its leaves, and between rows of leaves: links are seen here.
_STUB = 26
_SPOT = 13
_LONGEST = 20
_LINE = 15
_STEPS = (0.03, 0.06, 0.12, 0.25)

Place = tuple[float, float]


# The numbers of the boxes that stand beside each other under one bar.
Chunk = tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Layout:
    """Rows of chunks, from left to right, how wide a leaf is drawn, and what stands below it."""

    rows: tuple[tuple[Chunk, ...], ...]
    width: float
    noun: str

    @property
    def spots(self) -> int:
        """Hosts in a row of a leaf."""
        return int((self.width - 16) // _SPOT)


def _layout(tree: FabricTree, noun: str) -> _Layout:
    """Return groups beside each other as far as they fit."""
    rows: list[list[Chunk]] = []
    left = 0
    for _, held in groupby(range(len(tree.boxes)), key=lambda each: tree.boxes[each].group):
        group = tuple(held)
        for first in range(0, len(group), _COLUMNS):
            chunk = group[first : first + _COLUMNS]
            if len(chunk) > left:
                rows.append([])
                left = _COLUMNS
            rows[-1].append(chunk)
            left -= len(chunk)
    columns = max(_FEWEST_COLUMNS, *(sum(map(len, row)) for row in rows))
    width = (_WIDTH - 2 * _MARGIN - (columns - 1) * _GAP) / columns
    return _Layout(rows=tuple(tuple(row) for row in rows), width=width, noun=noun)


def fabric_tree_svg(tree: FabricTree, title: str, noun: str = "host") -> str:
    """Return the drawing: the same text for the same tree. `noun`: what stands below leaves, a host or a NIC."""
    layout = _layout(tree, noun)
    parts: list[str] = []
    places: dict[int, Place] = {}
    begun: set[int] = set()
    top = float(_MARGIN)
    for row in layout.rows:
        height = max(_height(tree.boxes[each], layout) for chunk in row for each in chunk)
        left = float(_MARGIN)
        for chunk in row:
            group = tree.boxes[chunk[0]].group
            if group is not None:
                wide = len(chunk) * (layout.width + _GAP) - _GAP
                name = tree.groups[group] or "above the leaves"
                parts += _bar(name if group not in begun else "", (left, top), wide)
                begun.add(group)
            for each in chunk:
                place = (left, top + _BAR_HEIGHT + _STUB if group is not None else top)
                places[each] = (left + layout.width / 2, place[1])
                parts += _leaf(tree.boxes[each], place, height, layout)
                left += layout.width + _GAP
        top = max(down for _, down in places.values()) + height + 1.5 * _GAP
    links = [part for each in tree.links for part in _link(each, places)]
    below = list(_link_lines(tree, top + _LINE))
    return _drawing([*links, *parts, *below], top + _LINE * len(below) + _MARGIN, printable(title))


def _drawing(parts: Sequence[str], height: float, name: str) -> str:
    size = f'width="{_WIDTH}" height="{height:.0f}"'
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" {size} role="img"',
            f"  aria-label={quoteattr(name)}>",
            f"<title>{escape(name)}</title>",
            f"<style>{_style()}</style>",
            f'<rect class="ground" {size}/>',
            *parts,
            "</svg>\n",
        )
    )


def _style() -> str:
    font = "12px system-ui, 'DejaVu Sans', 'Liberation Sans', Arial, sans-serif"
    rules = f"text {{ font: {font}; }} .head {{ font-weight: 700; }}"
    light, dark = (_coloured(theme) for theme in ("light", "dark"))
    return f"svg {{ color-scheme: light dark; }} {rules} {light} @media (prefers-color-scheme: dark) {{ {dark} }}"


def _coloured(theme: Theme) -> str:
    colours = COLOURS[theme]
    heats = " ".join(f".h{number} {{ fill: {colours[f'--fig-heat-{number}']}; }}" for number in range(5))
    lines = " ".join(f".l{number} {{ stroke: {colours[f'--fig-heat-{number}']}; }}" for number in range(1, 5))
    return (
        f"text {{ fill: {colours['--fig-text']}; }} .ground {{ fill: {colours['--fig-paper']}; }} "
        f".box, .bar {{ fill: {colours['--fig-paper']}; stroke: {colours['--fig-line']}; }} "
        f".bar {{ fill: {colours['--fig-grid']}; }} .stub {{ stroke: {colours['--fig-line']}; }} {heats} {lines} "
        f".link {{ fill: none; }} .spot {{ stroke: {colours['--fig-line']}; }} "
        f".suspect {{ stroke: {colours['--fig-suspect']}; stroke-width: 3; }} "
        f".name {{ fill: {colours['--fig-suspect']}; }}"
    )


def heat(loss: float | None) -> int:
    """Return the number of the colour of a loss: 0 for as fast as most."""
    return 0 if loss is None else sum(loss >= step for step in _STEPS)


def _bar(name: str, place: Place, width: float) -> Iterator[str]:
    left, top = place
    yield f'<rect class="bar" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{_BAR_HEIGHT}" rx="4"/>'
    yield _text(left + 8, top + 16, name, "head")


def _height(box: LeafBox, layout: _Layout) -> float:
    return _HEAD + ceil(len(_spots(box)) / layout.spots) * _SPOT + len(_named(box)) * _LINE + 8


def _spots(box: LeafBox) -> Sequence[HostSpot]:
    """Return the hosts that are drawn: all where all are known, else none but by name."""
    return box.hosts if len(box.hosts) == box.endpoints else ()


def _named(box: LeafBox) -> list[HostSpot]:
    return [each for each in box.hosts if each.suspect]


def _leaf(box: LeafBox, place: Place, height: float, layout: _Layout) -> Iterator[str]:
    left, top = place
    middle = left + layout.width / 2
    stub = box.group is not None
    worst = max(box.leaving or 0.0, box.entering or 0.0)
    if stub:
        style = f"l{heat(worst)}" if heat(worst) else "stub"
        wide = 2 + min(worst, 0.5) * 16
        yield f'<path class="{style}" stroke-width="{wide:.1f}" d="M{middle:.1f} {top - _STUB:.1f}V{top:.1f}"/>'
    suspect = " suspect" if box.suspect else ""
    size = f'width="{layout.width:.1f}" height="{height:.1f}"'
    yield f'<rect class="box{suspect}" x="{left:.1f}" y="{top:.1f}" {size} rx="5"/>'
    yield _text(left + 8, top + 17, _cut(box.name), "head name" if box.suspect else "head")
    hosts = counted(box.endpoints, layout.noun) + (f", {box.leaves} leaves" if box.leaves > 1 else "")
    yield _text(left + 8, top + 32, hosts)
    if stub and (box.leaving is not None or box.entering is not None):
        yield _text(left + 8, top + 47, f"out {_percent(box.leaving)}, in {_percent(box.entering)}")
    spots = _spots(box)
    yield from _squares(spots, (left + 8, top + _HEAD), layout)
    down = top + _HEAD + ceil(len(spots) / layout.spots) * _SPOT
    for at, each in enumerate(_named(box), start=1):
        yield _text(left + 8, down + at * _LINE - 2, f"▶ {_cut(each.name)} {_percent(each.loss)}", "name")


def _squares(spots: Sequence[HostSpot], place: Place, layout: _Layout) -> Iterator[str]:
    """Yield the hosts of a leaf, those of one colour as one path."""
    paths: dict[str, list[str]] = {}
    size = _SPOT - 3
    for at, each in enumerate(spots):
        across = place[0] + at % layout.spots * _SPOT
        drop = place[1] + at // layout.spots * _SPOT
        style = f"spot h{heat(each.loss)}{' suspect' if each.suspect else ''}"
        paths.setdefault(style, []).append(f"M{across:.0f} {drop:.0f}h{size}v{size}h-{size}z")
    # Suspects last, so that no neighbour covers their outline.
    for style in sorted(paths, key=lambda each: "suspect" in each):
        yield f'<path class="{style}" d="{"".join(paths[style])}"/>'


def _link(link: LeafLink, places: dict[int, Place]) -> Iterator[str]:
    """Yield a slow link as a curve from the top of one leaf to that of another, the wider the more it loses."""
    (left, one), (right, other) = places[link.one], places[link.other]
    rise = 20.0 if one == other else 0.0
    style = f"link l{max(1, heat(link.loss))}{' suspect' if link.suspect else ''}"
    control = f"{left:.1f} {one - _STUB / 2 - rise:.1f} {right:.1f} {other - _STUB / 2 - rise:.1f}"
    yield (
        f'<path class="{style}" stroke-width="{2 + min(link.loss, 0.5) * 16:.1f}" '
        f'd="M{left:.1f} {one:.1f}C{control} {right:.1f} {other:.1f}"/>'
    )


def _link_lines(tree: FabricTree, top: float) -> Iterator[str]:
    for at, link in enumerate(tree.links):
        ends = f"{tree.boxes[link.one].name} and {tree.boxes[link.other].name}"
        mark = "▶ " if link.suspect else ""
        words = f"{mark}between {ends}: {_percent(link.loss)} slower, {counted(link.tests, 'test')}"
        yield _text(_MARGIN, top + at * _LINE, words, "name" if link.suspect else "")


def _percent(loss: float | None) -> str:
    return loss_words(loss) or "n/a"


def _cut(name: str) -> str:
    """Return a name with its middle left out where it is long: of a run of leaves both ends tell."""
    half = _LONGEST // 2 - 1
    return name if len(name) <= _LONGEST else f"{name[:half]}..{name[-half:]}"


def _text(left: float, top: float, line: str, style: str = "") -> str:
    named = f' class="{style}"' if style else ""
    return f'<text{named} x="{left:.1f}" y="{top:.1f}">{escape(printable(line))}</text>'
