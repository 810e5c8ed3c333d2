"""The hosts of a run as a drawing: a box for each host, in it its ranks with the CPUs or the GPU they had."""

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from busbw.model.record import Hello
from busbw.model.run import Run
from busbw.show.page.topology_svg import STYLE
from busbw.show.placement_words import placement_words
from busbw.show.plain import printable
from busbw.show.words import numbers_words

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
