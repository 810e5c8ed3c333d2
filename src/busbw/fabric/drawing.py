"""A report as lines of a terminal, at most 80 columns: the verdict, what it rests on, then the views.

What is suspected is marked with `>`, so that lines say the same without colour. A shade is the same loss in all views.
"""

import math
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from busbw.base.text import counted
from busbw.base.units import format_in
from busbw.fabric.answers import FabricAnswer
from busbw.fabric.report import FabricReport
from busbw.fabric.views import FabricBar, FabricMatrix, HistogramBin, LeafBox, SuspectDetail, ViewLine

VIEW_NAMES = ("histogram", "bars", "fabric", "matrix")
_WIDTH = 79
_BAR = 30
# From these losses on a cell has the next shade.
_STEPS = (0.03, 0.06, 0.12, 0.25)
_NAME = 24
# Two matrices beside each other: the median, and the worst.
_BESIDE = 24
# Suspects that are shown among their partners, and partners of each.
_MOST_DETAILS = 3
_MOST_PARTNERS = 6
_MOST_NAMED = 3
_MOST_LINKS = 4
_MOST_MARKS = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Glyphs:
    """What cells and bars are drawn with: from as fast as most to 25 % slower, a bar, the part of it of suspects."""

    shades: str
    bar: str
    suspect: str


UNICODE = Glyphs(shades="·░▒▓█", bar="█", suspect="▒")
ASCII = Glyphs(shades=".-+x#", bar="#", suspect="x")


@dataclass(frozen=True, kw_only=True, slots=True)
class DrawnLine:
    """A line, and what it is: a terminal with colours shows suspects and headings as such."""

    text: str
    tone: Literal["plain", "verdict", "heading", "suspect"] = "plain"


def report_lines(report: FabricReport) -> tuple[str, ...]:
    """Return a report with all of its views as plain ASCII."""
    return tuple(each.text for each in drawn_lines(report, VIEW_NAMES, ASCII))


def drawn_lines(report: FabricReport, views: Collection[str], glyphs: Glyphs) -> Iterator[DrawnLine]:
    """Yield a report with some of `VIEW_NAMES`. Below them the verdict stands again, which is what stays in sight."""
    yield from _toned(_wrapped(report.verdict.sentence), "verdict")
    yield DrawnLine(text="")
    yield from _toned(_heading(report))
    for each in report.answers:
        yield from _answer(each)
    yield from _others(report)
    yield from _bands(report)
    yield from _toned(_leaves(report))
    drawn = {"histogram": _histogram, "bars": _bars, "fabric": _fabric, "matrix": _matrix}
    for name in VIEW_NAMES:
        if name in views:
            yield from drawn[name](report, glyphs)
    if views:
        yield DrawnLine(text="")
        yield from _toned(_wrapped(report.verdict.sentence), "verdict")


def _toned(
    lines: Sequence[str] | Iterator[str], tone: Literal["plain", "verdict", "heading", "suspect"] = "plain"
) -> Iterator[DrawnLine]:
    for each in lines:
        yield DrawnLine(text=each, tone=tone)


def _line(text: str, *, suspect: bool = False) -> DrawnLine:
    """Return a line of a view, marked where it is a suspect's."""
    mark = "> " if suspect else "  "
    return DrawnLine(text=f"{mark}{text}".rstrip(), tone="suspect" if suspect else "plain")


def _titled(*titles: str) -> Iterator[DrawnLine]:
    yield DrawnLine(text="")
    for title in titles:
        yield from _toned(_wrapped(title), "heading")


def _wrapped(text: str, first: str = "", rest: str = "  ") -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _heading(report: FabricReport) -> Iterator[str]:
    yield from _wrapped(report.title)
    if report.truth:
        yield from _wrapped(f"put in: {'; '.join(report.truth)}")
    ends = f" ({report.endpoints} NICs)" if report.endpoints != report.nodes else ""
    many, one = ("GPUs", "GPU") if report.are_gpus else ("nodes", "node")
    missing = f", {report.unanswered} without an answer" if report.unanswered else ""
    yield from _wrapped(
        f"{report.nodes} {many}{ends}, {counted(report.rounds, 'round')}, {counted(report.tests, 'test')}{missing}, "
        f"median {format_in(report.median, report.unit)}"
    )
    cleared = f"; {counted(report.cleared, 'suspicion')} not confirmed" if report.cleared else ""
    seen = f"a {one} is seen from {100 * report.least_seen:.0f} % on{cleared}"
    yield from _wrapped(f"a test scatters by {100 * report.noise:.1f} %; {seen}")
    if (expected := report.expected) is not None:
        yield from _wrapped(f"expected {format_in(expected.value, report.unit)}, {expected.kind} ({expected.source})")


def _answer(answer: FabricAnswer) -> Iterator[DrawnLine]:
    yield DrawnLine(text="")
    says = f"consistent with: {answer.place}{answer.slower(1)}, {answer.confidence}"
    yield from _toned(_wrapped(says), "suspect")
    if answer.kind != "slow":
        shown = f"{answer.slow_tests} of {counted(answer.of_tests, 'test')} against known-good partners show it"
        yield DrawnLine(text=f"  {shown}")
    yield from _toned([part for line in answer.evidence for part in _wrapped(line, "    ", "      ")])
    yield from _toned(_wrapped(f"otherwise: {answer.otherwise}", "  ", "    "))
    yield from _toned(_wrapped(f"to tell: {answer.clears}", "  ", "    "))


def _others(report: FabricReport) -> Iterator[DrawnLine]:
    """Yield the findings that are no answer of the tests: topology, links and counters of ports."""
    for each in report.findings[len(report.answers) :]:
        yield DrawnLine(text="")
        yield from _toned(_wrapped(f"{each.severity} {each.code} {each.title}"), "heading")
        yield from _toned(_wrapped(each.evidence, "  ", "  "))
        if each.fix is not None:
            yield from _toned(_wrapped(f"to do: {each.fix}", "  ", "    "))


def _bands(report: FabricReport) -> Iterator[DrawnLine]:
    if not report.bands:
        return
    yield from _titled("bands of latency")
    for number, each in enumerate(report.bands, start=1):
        published = f", published {each.published_s * 1e6:.2f} us" if each.published_s is not None else ""
        spread = f"{each.centre_s * 1e6:.2f} us ({each.low_s * 1e6:.2f} to {each.high_s * 1e6:.2f})"
        yield _line(f"{number}: {spread}, {counted(each.tests, 'test')}{published}")


def _leaves(report: FabricReport) -> Iterator[str]:
    if report.leaf_agreement is not None:
        yield ""
        agree = f"{100 * report.leaf_agreement:.0f} % of the pairs agree"
        yield f"{len(report.leaves)} leaves inferred from the bands; {agree}"
    elif report.leaves_untold:
        yield ""
        yield from _wrapped(f"no leaves inferred from the bands: {report.leaves_untold}")


def suspects_words(report: FabricReport) -> str:
    """Return what is suspected, for the caption of a view; "" for nothing."""
    names = report.views.suspects
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"


def _marked(report: FabricReport) -> str:
    """Return whose marks are in a view, and that not all tests are in it."""
    words = suspects_words(report)
    every = f"; one of {report.views.every} tests" if report.views.every > 1 else ""
    return (f"; suspected (>): {words}" if words else "") + every


def bin_words(each: HistogramBin, unit: str) -> str:
    """Return where a bin begins: `46.5 GB/s`; `below 38 GB/s` and `49.5 GB/s or more` where it is open."""
    if each.low is None:
        return f"below {format_in(each.high or 0.0, unit)}"
    return f"{format_in(each.low, unit)}{' or more' if each.high is None else ''}"


def loss_words(loss: float | None) -> str:
    """Return a loss in percent, "" for none."""
    return "" if loss is None else f"{100 * loss:.1f} %".replace("-0.0", "0.0")


def _histogram(report: FabricReport, glyphs: Glyphs) -> Iterator[DrawnLine]:
    bins = report.views.histogram
    words = suspects_words(report)
    mark = f"; {glyphs.suspect} are tests of {words}" if words else ""
    yield from _titled(f"tests by {report.metric}{mark}")
    most = max(each.tests for each in bins)
    band = None
    for each in bins:
        if not each.tests:
            continue
        wide = max(1, round(_BAR * each.tests / most))
        marked = min(wide, math.ceil(wide * each.suspects / each.tests)) if each.suspects else 0
        bar = glyphs.suspect * marked + glyphs.bar * (wide - marked)
        begins = f"{each.band + 1}" if each.band is not None and each.band != band else " "
        band = each.band
        of = f", {each.suspects} of suspects" if each.suspects else ""
        yield _line(f"{begins} {bin_words(each, report.unit):>18} {bar} {each.tests}{of}")


def _bars(report: FabricReport, glyphs: Glyphs) -> Iterator[DrawnLine]:
    views = report.views
    kinds = (
        (report.ends, report.endpoints, "sending and receiving", views.nodes),
        ("rails", len(views.rails), "sending and receiving", views.rails),
        ("leaves", len(report.leaves), "on the ways out of it and into it", views.leaves),
    )
    for name, count, ways, bars in kinds:
        if len(bars) < 2:
            continue
        part = f" ({len(bars)} of {count})" if len(bars) < count else ""
        yield from _titled(f"{name}{part}, slowest first: loss {ways}{_marked(report)}")
        for each in bars:
            yield _bar(each, glyphs)


def _bar(each: FabricBar, glyphs: Glyphs) -> DrawnLine:
    bar = glyphs.bar * min(_BAR - 10, max(0, round(100 * each.loss)))
    slow = f"{round(each.slow * each.tests)} of {counted(each.tests, 'test')} slow" if each.tests else "no test"
    cells = f"{loss_words(each.sending):>7} {loss_words(each.receiving):>7}"
    return _line(f"{_cut(each.name):<{_NAME}} {cells}  {slow:<19} {bar}", suspect=each.suspect)


def _cut(name: str, longest: int = _NAME) -> str:
    return name if len(name) <= longest else f"{name[: longest - 3]}..."


def _shade(loss: float | None, glyphs: Glyphs) -> str:
    return " " if loss is None else glyphs.shades[sum(loss >= step for step in _STEPS)]


def _legend(glyphs: Glyphs) -> str:
    steps = ", ".join(f"{shade} {100 * step:.0f}" for shade, step in zip(glyphs.shades[1:], _STEPS, strict=True))
    return f"{glyphs.shades[0]} as most; from a loss of {steps} %"


def _fabric(report: FabricReport, glyphs: Glyphs) -> Iterator[DrawnLine]:
    if report.views.grid is not None:
        yield from _grid(report, glyphs)
        return
    tree = report.views.tree
    if not report.leaves:
        yield from _titled(f"fabric (leaves not known), hosts in their order: {_legend(glyphs)}{_marked(report)}")
    else:
        yield from _titled(
            f"fabric: loss on the ways out of a leaf and into it, then its hosts: {_legend(glyphs)}{_marked(report)}"
        )
    group = None
    for each in tree.boxes:
        if each.group is not None and each.group != group and tree.groups[each.group]:
            yield _line(tree.groups[each.group])
        group = each.group
        yield from _box(each, glyphs)
    for link in tree.links[:_MOST_LINKS]:
        ends = " - ".join(_cut(tree.boxes[each].name, 20) for each in (link.one, link.other))
        yield _line(f"slow link {ends}: {loss_words(link.loss)}, {counted(link.tests, 'test')}", suspect=link.suspect)


def _box(box: LeafBox, glyphs: Glyphs) -> Iterator[DrawnLine]:
    bad = [each for each in box.hosts if each.suspect]
    marks = "".join(_shade(each.loss, glyphs) for each in box.hosts[:_MOST_MARKS]) if len(box.hosts) > len(bad) else ""
    hosts = counted(box.endpoints, "host")
    if box.group is None:
        yield _line(f"{_cut(box.name, 32):<32} {hosts:>10}  {marks}"[:_WIDTH])
    else:
        cells = f"{loss_words(box.leaving):>7} {loss_words(box.entering):>7}"
        yield _line(f"{_cut(box.name, 22):<22} {hosts:>10} {cells}  {marks}"[:_WIDTH], suspect=box.suspect)
    for each in bad:
        yield _line(f"    {_cut(each.name, 60)} {loss_words(each.loss)}", suspect=True)


def _grid(report: FabricReport, glyphs: Glyphs) -> Iterator[DrawnLine]:
    grid = report.views.grid
    if grid is None:
        return
    names = ", ".join(each.name for each in grid.rails)
    yield from _titled(
        f"fabric, nodes by rails: {_legend(glyphs)}{_marked(report)}",
        f"rails: {names}" if len(names) < 200 else "rails",
    )
    marks = "".join(" v" if each.suspect else "  " for each in grid.rails)
    if marks.strip():
        yield _line(f"{'':<{_NAME}}{marks}")
    for line, cells, bad in zip(grid.lines, grid.cells, grid.suspects, strict=True):
        shown = "".join(
            f"{'>' if suspect else ' '}{_shade(cell, glyphs)}" for cell, suspect in zip(cells, bad, strict=True)
        )
        yield _line(f"{_cut(line.name):<{_NAME}}{shown}", suspect=line.suspect)


def _matrix(report: FabricReport, glyphs: Glyphs) -> Iterator[DrawnLine]:
    matrix = report.views.matrix
    beside = len(matrix.lines) <= _BESIDE and max(each for row in matrix.tests for each in row) > 1
    what = "median of each cell, beside it its worst test" if beside else "median of each cell"
    yield from _titled(
        f"sender (row) by receiver, {what}: {_legend(glyphs)}; blank: no test{_silent_words(matrix)}{_marked(report)}"
    )
    marks = "".join("v" if each.suspect else " " for each in matrix.lines)
    if marks.strip():
        yield _line(f"{'':>{_NAME}} {marks}{f'  {marks}' if beside else ''}")
    for at, line in enumerate(matrix.lines):
        cells = _row(matrix.typical[at], _silent(matrix, at), glyphs)
        worst = f"  {_row(matrix.worst[at], _silent(matrix, at), glyphs)}" if beside else ""
        yield _line(f"{_cut(line.name):>{_NAME}} {cells}{worst}", suspect=line.suspect)
    for each in report.views.details[:_MOST_DETAILS]:
        yield from _detail(each)


def _silent(matrix: FabricMatrix, row: int) -> Sequence[int]:
    return matrix.silent[row] if matrix.silent else (0,) * len(matrix.lines)


def _silent_words(matrix: FabricMatrix) -> str:
    return ", !: no answer" if matrix.silent else ""


def _row(losses: Sequence[float | None], silent: Sequence[int], glyphs: Glyphs) -> str:
    return "".join(
        "!" if loss is None and lost else _shade(loss, glyphs) for loss, lost in zip(losses, silent, strict=True)
    )


def partner_rows(detail: SuspectDetail) -> Iterator[tuple[ViewLine, float | None, float | None, float | None]]:
    """Yield each partner of a suspect, the loss from the suspect to it and back, and what it loses with others."""
    matrix = detail.matrix
    own = [at for at, line in enumerate(matrix.lines) if line.suspect]
    for at, line in enumerate(matrix.lines):
        if not line.suspect:
            there = [each for end in own if (each := matrix.typical[end][at]) is not None]
            back = [each for end in own if (each := matrix.typical[at][end]) is not None]
            yield line, max(there, default=None), max(back, default=None), detail.others[at]


def _detail(detail: SuspectDetail) -> Iterator[DrawnLine]:
    rows = [each for each in partner_rows(detail) if each[1] is not None or each[2] is not None]
    if not rows:
        return
    yield from _titled(f"{detail.place} with its partners: loss there and back, and what they lose with others")
    for line, there, back, others in rows[:_MOST_PARTNERS]:
        yield _line(
            f"{_cut(line.name):<{_NAME}} {loss_words(there):>7} {loss_words(back):>7}   {loss_words(others):>7}"
        )
