"""A report as lines of a terminal, at most 80 columns: the verdict, what it rests on, then the figures."""

import math
import textwrap
from collections.abc import Iterator

from busbw.base.text import counted
from busbw.base.units import format_in
from busbw.fabric.naming import FabricAnswer
from busbw.fabric.report import FabricReport

_WIDTH = 79
_BAR = 30
# A cell by how much slower than the median it is: below 3 %, 3, 6, 12, 25 %.
_SHADES = ((1.03, "."), (1.06, "-"), (1.12, "+"), (1.25, "x"), (math.inf, "#"))
_UNTESTED = " "


def report_lines(report: FabricReport) -> tuple[str, ...]:
    """Return a report as text, without colour."""
    return (
        *_wrapped(report.verdict.sentence),
        "",
        *_heading(report),
        *(line for each in report.answers for line in _answer(each)),
        *_others(report),
        *_bands(report),
        *_leaves(report),
        *_histogram(report),
        *_bars(report),
        *_matrix(report),
    )


def _wrapped(text: str, first: str = "", rest: str = "  ") -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _heading(report: FabricReport) -> Iterator[str]:
    yield from _wrapped(report.title)
    if report.truth:
        yield from _wrapped(f"put in: {'; '.join(report.truth)}")
    ends = f" ({report.endpoints} NICs)" if report.endpoints != report.nodes else ""
    missing = f", {report.unanswered} without an answer" if report.unanswered else ""
    yield (
        f"{report.nodes} nodes{ends}, {counted(report.rounds, 'round')}, {counted(report.tests, 'test')}{missing}, "
        f"median {format_in(report.median, report.unit)}"
    )
    cleared = f"; {counted(report.cleared, 'suspicion')} not confirmed" if report.cleared else ""
    seen = f"a node is seen from {100 * report.least_seen:.0f} % on{cleared}"
    yield from _wrapped(f"a test scatters by {100 * report.noise:.1f} %; {seen}")
    if (expected := report.expected) is not None:
        yield f"expected {format_in(expected.value, report.unit)}, {expected.kind} ({expected.source})"


def _answer(answer: FabricAnswer) -> Iterator[str]:
    yield ""
    yield from _wrapped(f"consistent with: {answer.place}, {100 * answer.loss:.1f} % slower, {answer.confidence}")
    if answer.kind != "slow":
        yield f"  {answer.slow_tests} of {counted(answer.of_tests, 'test')} against known-good partners show it"
    yield from (f"    {line}" for line in answer.evidence)
    yield from _wrapped(f"otherwise: {answer.otherwise}", "  ", "    ")
    yield from _wrapped(f"to tell: {answer.clears}", "  ", "    ")


def _others(report: FabricReport) -> Iterator[str]:
    """Yield the findings that are no answer of the tests: topology, links and counters of ports."""
    for each in report.findings[len(report.answers) :]:
        yield ""
        yield from _wrapped(f"{each.severity} {each.code} {each.title}")
        yield from _wrapped(each.evidence, "  ", "  ")
        if each.fix is not None:
            yield from _wrapped(f"to do: {each.fix}", "  ", "    ")


def _bands(report: FabricReport) -> Iterator[str]:
    if not report.bands:
        return
    yield from ("", "bands of latency")
    for each in report.bands:
        published = f", published {each.published_s * 1e6:.2f} us" if each.published_s is not None else ""
        spread = f"{each.centre_s * 1e6:.2f} us ({each.low_s * 1e6:.2f} to {each.high_s * 1e6:.2f})"
        yield f"  {spread}, {counted(each.tests, 'test')}{published}"


def _leaves(report: FabricReport) -> Iterator[str]:
    if report.leaf_agreement is not None:
        yield ""
        agree = f"{100 * report.leaf_agreement:.0f} % of the pairs agree"
        yield f"{len(report.leaves)} leaves inferred from the bands; {agree}"


def _histogram(report: FabricReport) -> Iterator[str]:
    yield from ("", f"tests by {report.metric}")
    most = max(count for _, count in report.histogram)
    for low, count in report.histogram:
        if count:
            bar = "#" * max(1, round(_BAR * count / most))
            yield f"  {format_in(low, report.unit):>10} {bar} {count}"


def _bars(report: FabricReport) -> Iterator[str]:
    shown = [each for each in report.bars if max(each.sending, each.receiving) > 0]
    if not shown:
        return
    yield from ("", "slowest: by how much slower than most, sending and receiving")
    for each in shown:
        worst = max(each.sending, each.receiving)
        bar = "#" * min(_BAR, max(1, round(100 * worst)))
        yield f"  {each.name[:24]:<24} {100 * each.sending:+5.1f} % {100 * each.receiving:+5.1f} %  {bar}"


def _matrix(report: FabricReport) -> Iterator[str]:
    if not report.matrix:
        return
    yield from ("", "sender by receiver: . as most, - from 3 % slower, + from 6, x from 12, # from 25")
    for name, row in zip(report.matrix_names, report.matrix, strict=True):
        cells = "".join(
            _UNTESTED if each is None else next(mark for most, mark in _SHADES if each < most) for each in row
        )
        yield f"  {name[:24]:>24} {cells}".rstrip()
