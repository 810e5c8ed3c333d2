"""The part of a page about a swept fabric: what its template reads, and its figures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from busbw.base.text import counted
from busbw.base.units import format_in
from busbw.fabric.drawing import bin_words, loss_words, partner_rows, suspects_words
from busbw.fabric.groups.isolation import Isolation
from busbw.fabric.report import FabricReport
from busbw.fabric.views import FabricBar, SuspectTest
from busbw.model.finding import Outcome, Verdict
from busbw.show.figures.fabric import bars_figure, detail_figure, grid_figure, histogram_figure, matrix_figure
from busbw.show.figures.fabric_tree import fabric_tree_svg
from busbw.show.figures.series import Figure
from busbw.show.page.pictures import svg_address
from busbw.show.page.section import explained_findings
from busbw.show.words import OUTCOMES, verdict_rest

# Of a matrix as a table, and of one that has another beside it.
_MOST_COLUMNS = 24
_MOST_BESIDE = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class FabricPlot:
    """A figure: its id, what it shows in words, the caption below it, and its numbers as a table."""

    key: str
    words: str
    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    # Whether it needs the whole width of the page.
    wide: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class FabricSection:
    """What the template of a fabric reads, and its figures by the id of their element."""

    values: dict[str, Any]
    figures: dict[str, Figure]


_WORST: tuple[Outcome, ...] = ("wrong", "failed", "slow", "cannot_tell", "ok")


def worst_of(reports: Sequence[FabricReport | Isolation]) -> Verdict:
    """Return the gravest verdict of reports, of which there is at least one."""
    return min((each.verdict for each in reports), key=lambda each: _WORST.index(each.outcome))


def fabric_section_of(report: FabricReport, *, prefix: str = "", level: int = 2) -> FabricSection:
    """Return the part of a page about a fabric. `prefix` stands before every id, `level` is that of its headings."""
    plots = [(replace(plot, key=f"{prefix}{plot.key}"), figure) for plot, figure in _plots(report)]
    tree = report.views.tree
    drawn = f"the fabric: {counted(len(report.leaves), 'leaf').replace('leafs', 'leaves')}, {report.nodes} nodes"
    return FabricSection(
        values={
            "report": report,
            "word": OUTCOMES[report.verdict.outcome],
            "sentence": verdict_rest(report.verdict),
            "suspects": suspects_words(report),
            "facts": tuple(_facts(report)),
            "evidence": tuple(_evidence(report)),
            "shows": tuple((each.place, each.evidence) for each in report.answers),
            "plots": tuple(_rows([plot for plot, _ in plots])),
            "tree": svg_address(fabric_tree_svg(tree, drawn, "host" if report.endpoints == report.nodes else "NIC")),
            "tree_words": f"{drawn}; its numbers are in the tables",
            "tests": tuple(_test_row(each, report) for each in report.views.tests),
            "findings": explained_findings(report.findings, {}),
            "p": prefix,
            "h": level,
        },
        figures={plot.key: figure for plot, figure in plots},
    )


def _rows(plots: Sequence[FabricPlot]) -> Iterator[tuple[FabricPlot, ...]]:
    """Yield what stands beside each other: two, or one that needs the whole width."""
    held: tuple[FabricPlot, ...] = ()
    for each in plots:
        if held and (each.wide or len(held) == 2):
            yield held
            held = ()
        held = (*held, each)
        if each.wide:
            yield held
            held = ()
    if held:
        yield held


def _facts(report: FabricReport) -> Iterator[tuple[str, str]]:
    yield "what", report.title
    if report.truth:
        yield "put in", "; ".join(report.truth)
    ends = f" with {report.endpoints} NICs" if report.endpoints != report.nodes else ""
    many = "GPUs" if report.are_gpus else "nodes"
    leaves = f", {len(report.leaves)} leaves" if report.leaves else ", leaves not known"
    yield "fabric", f"{report.nodes} {many}{ends}{leaves}"
    missing = f", {report.unanswered} without an answer" if report.unanswered else ""
    yield "tests", f"{report.tests} of {report.metric} in {counted(report.rounds, 'round')}{missing}"
    yield "median", format_in(report.median, report.unit)
    if report.expected is not None:
        value = format_in(report.expected.value, report.unit)
        yield "expected", f"{value}, {report.expected.kind} ({report.expected.source})"
    yield "scatter", f"{100 * report.noise:.1f} % of one test; a node is seen from {100 * report.least_seen:.0f} % on"
    if report.cleared:
        yield "not confirmed", counted(report.cleared, "suspicion")
    if report.leaf_agreement is not None:
        yield "leaves", f"inferred from latencies; {100 * report.leaf_agreement:.0f} % of the pairs agree"
    elif report.leaves_untold:
        yield "leaves", f"not inferred from latencies: {report.leaves_untold}"
    for number, each in enumerate(report.bands, start=1):
        published = f", published {each.published_s * 1e6:.2f} us" if each.published_s is not None else ""
        spread = f"{each.centre_s * 1e6:.2f} us ({each.low_s * 1e6:.2f} to {each.high_s * 1e6:.2f})"
        yield f"band {number}", f"{spread}, {counted(each.tests, 'test')}{published}"
    if report.views.every > 1:
        yield "in the figures", f"one of {report.views.every} tests, and all of suspects"


def _evidence(report: FabricReport) -> Iterator[tuple[str, ...]]:
    for each in report.answers:
        shown = f"{each.slow_tests} of {each.of_tests}" if each.kind != "slow" else ""
        yield (each.place, f"{100 * each.loss:.1f} %", each.confidence, shown, each.otherwise, each.clears)


def _plots(report: FabricReport) -> Iterator[tuple[FabricPlot, Figure]]:
    views = report.views
    suspects = suspects_words(report)
    marked = f" Marked with ▶: {suspects}." if suspects else ""
    rows = tuple((bin_words(each, report.unit), str(each.tests), str(each.suspects)) for each in views.histogram)
    yield (
        FabricPlot(
            key="fabric-histogram",
            words=f"Tests by {report.metric}",
            caption=f"Tests by {report.metric}{'; those of suspects apart' if suspects else ''}."
            + (" Dashed: between bands of latency." if len(report.bands) > 1 else ""),
            headings=("from", "tests", "of suspects"),
            rows=rows,
        ),
        histogram_figure(report),
    )
    for key, what, bars, ways in (
        ("nodes", report.ends, views.nodes, ("sending", "receiving")),
        ("rails", "rails", views.rails, ("sending", "receiving")),
        ("leaves", "leaves", views.leaves, ("out", "in")),
    ):
        if len(bars) > 1:
            yield _bars(f"fabric-{key}", what, bars, ways, marked), bars_figure(bars, ways)
    yield from _matrices(report, marked)


def _bars(key: str, what: str, bars: Sequence[FabricBar], ways: tuple[str, str], marked: str) -> FabricPlot:
    rows = tuple(
        (each.name, loss_words(each.sending), loss_words(each.receiving), str(each.tests), f"{100 * each.slow:.0f} %")
        for each in bars
    )
    return FabricPlot(
        key=key,
        words=f"Loss of {what}, slowest first",
        caption=f"Loss of {what}, {ways[0]} and {ways[1]}, slowest first.{marked}",
        headings=(what, *ways, "tests", "slow tests"),
        rows=rows,
    )


def _matrices(report: FabricReport, marked: str) -> Iterator[tuple[FabricPlot, Figure]]:
    views = report.views
    if views.grid is not None:
        grid = views.grid
        rows = tuple((line.name, *map(loss_words, cells)) for line, cells in zip(grid.lines, grid.cells, strict=True))
        words = "Loss by node and rail"
        headings = ("node", *(each.name for each in grid.rails))
        yield (
            FabricPlot(key="fabric-grid", words=words, caption=f"{words}.{marked}", headings=headings, rows=rows),
            grid_figure(grid),
        )
    matrix = views.matrix
    shown = min(len(matrix.lines), _MOST_COLUMNS)
    rows = tuple(
        (line.name, *map(loss_words, cells[:shown])) for line, cells in zip(matrix.lines, matrix.typical, strict=True)
    )
    headings = ("sender", *(each.name for each in matrix.lines[:shown]))
    for key, what, more, worst in (
        ("matrix", "median", "", False),
        ("worst", "worst test", "one disturbed test colours its cell; ", True),
    ):
        yield (
            FabricPlot(
                key=f"fabric-{key}",
                words=f"Sender by receiver, {what} of each cell",
                caption=f"Sender by receiver, {what} of each cell; {more}blank: no test.{marked}",
                headings=headings if not worst and len(matrix.lines) <= _MOST_COLUMNS else (),
                rows=rows,
                wide=len(matrix.lines) > _MOST_BESIDE,
            ),
            matrix_figure(matrix, worst=worst),
        )
    for number, detail in enumerate(views.details, start=1):
        yield (
            FabricPlot(
                key=f"fabric-detail-{number}",
                words=f"{detail.place} among its partners",
                caption=f"{detail.place} among those it was tested with; blank: no test.",
                headings=("partner", "there", "back", "partner with others"),
                rows=tuple((line.name, *map(loss_words, losses)) for line, *losses in partner_rows(detail)),
            ),
            detail_figure(detail),
        )


def _test_row(each: SuspectTest, report: FabricReport) -> tuple[str, ...]:
    value = "no answer" if each.value is None else format_in(each.value, report.unit)
    kind = "retest, alone" if each.alone else "retest" if each.retest else "first"
    return (each.place, each.sender, each.receiver, value, loss_words(each.loss), str(each.round), kind)
