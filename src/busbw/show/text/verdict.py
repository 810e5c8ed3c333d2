"""An explained verdict as text for a terminal: tables of sizes, where the bandwidth of one went, and why.

The verdict stands first and again last; tables begin at the largest size.
"""

from collections.abc import Callable, Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from busbw.base.text import printable
from busbw.base.units import format_rate, format_size, format_time
from busbw.limits.message_rate import NAME as MESSAGE_RATE
from busbw.model.gates import GateAnswers, GateOutcome
from busbw.model.verdict import (
    BudgetStep,
    Expected,
    ExplainedVerdict,
    FittedParameter,
    SeriesExplanation,
    SizeExplanation,
    SweepCurve,
)
from busbw.show.lines import say, say_action
from busbw.show.text.terminal import VERDICT_COLOURS, console, finding_text, verdict_line
from busbw.show.weighing import by_weight

# With fewer columns the ceiling and the algorithm are left to what is said of one size, and to --json.
_WIDTH_FOR_ALL = 100
_INDENT = 2
# What a step of a budget has before its words.
_STEP_COLUMNS = 22
# A line that its points lie so far off is printed with the reason to doubt it.
_LOOSE = 0.1


def verdict_text(explained: ExplainedVerdict, sizes_bytes: Sequence[int] = ()) -> None:
    """Print the verdict, every series with its sizes, and what was found; explain `sizes_bytes`, or one of each."""
    out = console()
    say(out, verdict_line(explained.verdict))
    out.print()
    _say(out, _heading(explained))
    shown: set[tuple[str, str]] = set()
    for series in explained.series:
        out.print()
        _say(out, _title(series), "bold")
        out.print(_table(series, wide=out.width >= _WIDTH_FOR_ALL))
        for words in _curve_lines(series.curve):
            _say(out, f"# {words}")
        kind = (series.collective, series.verdict.outcome)
        # In place is mostly as out of place: the same explanation twice helps nobody.
        for size in _chosen(series, sizes_bytes) if sizes_bytes or kind not in shown else ():
            _explain(out, series, size)
        shown.add(kind)
    for words in explained.left_out:
        _say(out, f"left out: {words}", "yellow")
    for words in explained.gains:
        _say(out, words)
    if explained.findings:
        out.print()
    _findings(out, explained)
    out.print()
    for step in explained.next_steps:
        say_action(out, "next", step, indent=0)
    say(out, verdict_line(explained.verdict))


def _findings(out: Console, explained: ExplainedVerdict) -> None:
    sizes = {size.point: size.size_bytes for each in explained.series for size in each.sizes if size.point is not None}
    for finding in by_weight(explained.findings, explained.verdict, sizes):
        say(out, finding_text(finding))
        # What is to be done next stands once, at the end.
        if finding.fix is not None and finding.fix not in explained.next_steps:
            say_action(out, "fix", finding.fix)


def _say(out: Console, words: str, style: str = "", indent: int = 0, hang: int = _INDENT) -> None:
    say(out, Text(printable(words), style=style), indent=indent, hang=hang)


def _heading(explained: ExplainedVerdict) -> str:
    against = f" against {explained.machine}" if explained.machine is not None else ""
    rates = f" (rates {'; '.join(explained.grounds)})" if explained.grounds else ""
    return f"{explained.subject}{against}{rates}"


def _title(series: SeriesExplanation) -> str:
    nodes = f", {series.nodes} node{'s' if series.nodes > 1 else ''}" if series.nodes is not None else ", nodes unknown"
    settings = "".join(f", {name} {value}" for name, value in series.settings)
    return f"{series.title}: {series.ranks} ranks{nodes}{settings}; {series.statistic}"


def _table(series: SeriesExplanation, *, wide: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    # Of all pairs together, while bus bandwidth is that of one.
    counts = series.collective == MESSAGE_RATE
    for name in ("size", "1e6 msg/s" if counts else "time", "busbw", "expected", "of it"):
        table.add_column(name, justify="right", no_wrap=True)
    if wide:
        table.add_column("at most", justify="right", no_wrap=True)
    table.add_column("decided by", no_wrap=True)
    if wide:
        table.add_column("algorithm")
    table.add_column("verdict", no_wrap=True)
    for size in sorted(series.sizes, key=lambda each: -each.size_bytes):
        expected, share = _expected(size)
        time = f"{series.ranks // 2 / size.time_s / 1e6:.4g}" if counts else format_time(size.time_s)
        row = [format_size(size.size_bytes), time, format_rate(size.busbw_Bps), expected, share]
        row += [format_rate(size.ceiling_Bps) if size.ceiling_Bps is not None else "?"] if wide else []
        row.append(size.regime or "?")
        row += [printable(_algorithm(size))] if wide else []
        table.add_row(*row, Text(size.verdict.outcome.replace("_", " "), style=VERDICT_COLOURS[size.verdict.outcome]))
    return table


def _expected(size: SizeExplanation) -> tuple[str, str]:
    """Return what is expected of a size, and what part of it, or how many times, it comes to."""
    if size.band_time_s is not None:
        return format_time(size.band_time_s), f"{size.time_s / size.band_time_s:.1f} x"
    if size.band_high_Bps is not None:
        return format_rate(size.band_high_Bps), f"{size.busbw_Bps / size.band_high_Bps * 100:.0f} %"
    return "", ""


def _algorithm(size: SizeExplanation) -> str:
    if size.algorithm is not None:
        return " ".join(part for part in (size.algorithm, size.protocol) if part)
    return " or ".join(size.candidates) or "?"


def _curve_lines(curve: SweepCurve) -> Iterator[str]:
    if curve.whole is not None:
        off = f"; sizes lie {curve.whole.spread * 100:.0f} % off this line" if curve.whole.spread > _LOOSE else ""
        yield f"latency {_estimate(curve.whole.latency_s, format_time)} (T = a + S/B){off}"
    for segment in curve.segments:
        used = " ".join(part for part in (segment.algorithm, segment.protocol) if part)
        rate = f", {_estimate(segment.algbw_Bps, format_rate)} algbw" if segment.algbw_Bps is not None else ""
        sizes = f"{format_size(segment.from_bytes)} to {format_size(segment.to_bytes)}"
        yield f"{used}, {sizes}: {_estimate(segment.latency_s, format_time)}{rate}"
    if curve.hill is not None:
        hill = curve.hill
        yield (
            f"bandwidth {_estimate(hill.busbw_Bps, format_rate)} for very large messages, half of it at "
            f"{_estimate(hill.half_bytes, _size)}"
        )
    if curve.latency_to_bytes is not None and curve.bandwidth_from_bytes is not None:
        low, high = format_size(curve.latency_to_bytes), format_size(curve.bandwidth_from_bytes)
        yield f"the knee: above {low} and below {high} neither alone decides"
    for words in curve.missing:
        yield f"cannot tell {words}"


def _estimate(estimate: FittedParameter, form: Callable[[float], str]) -> str:
    return f"{form(estimate.value)} ({form(estimate.low)} to {form(estimate.high)})"


def _size(size_bytes: float) -> str:
    unit, name = next(
        ((unit, name) for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")) if size_bytes >= unit),
        (1, "B"),
    )
    return f"{size_bytes / unit:.3g} {name}"


def _chosen(series: SeriesExplanation, sizes_bytes: Sequence[int]) -> Sequence[SizeExplanation]:
    if not sizes_bytes:
        telling = [size for size in series.sizes if size.verdict.outcome == series.verdict.outcome]
        return (telling or list(series.sizes))[-1:]
    return [size for size in series.sizes if size.size_bytes in sizes_bytes]


def _explain(out: Console, series: SeriesExplanation, size: SizeExplanation) -> None:
    out.print()
    _say(out, f"{series.collective} {format_size(size.size_bytes)}: {format_rate(size.busbw_Bps)}", "bold")
    if size.budget:
        if len(size.candidates) > 1:
            _say(out, f"if it was {size.budget[1].title}:", indent=_INDENT)
        for step in size.budget:
            _say(out, _step(step), indent=_INDENT, hang=_STEP_COLUMNS)
        if size.limited_by is not None:
            _say(out, f"limited by: {size.limited_by}", indent=_INDENT)
    apply = [each for each in size.expected if each.applies != "no"]
    for each in apply:
        _say(out, _applying(each), indent=_INDENT)
    others = [each for each in size.expected if each.applies == "no"]
    if others:
        figures = "1 other figure does" if len(others) == 1 else f"{len(others)} other figures do"
        _say(out, f"{figures} not apply: --json lists why", indent=_INDENT)


def _step(step: BudgetStep) -> str:
    change = "" if step.name == "wire" else f"{step.change_Bps / 1e9:+.1f}"
    return f"{format_rate(step.busbw_Bps):>11} {change:>8}  {step.title}: {step.words}"


def _applying(each: Expected) -> str:
    mark = "at most" if each.basis == "physical" else "applies" if each.applies == "yes" else "may apply"
    value = format_rate(each.busbw_Bps) if each.busbw_Bps is not None else format_time(each.time_s or 0.0)
    unknown = [f"{held.name} {held.asked}" for held in each.conditions if held.outcome == "unknown"]
    if_ = f", if {', '.join(unknown)}" if unknown else ""
    doubt = f"; {each.doubt}" if each.doubt is not None else ""
    return f"{mark}: {value}, {each.basis}{if_}: {each.title}{doubt}{_sources(each)}"


def _sources(each: Expected) -> str:
    return f" [{', '.join(each.source[:2])}]" if each.source else ""


_WORDS: dict[GateOutcome, str] = {"pass": "pass", "fail": "fail", "cannot_tell": "cannot tell"}
_COLOURS: dict[GateOutcome, str] = {"pass": "bold green", "fail": "bold red", "cannot_tell": "bold cyan"}
_GATES_INDENT = max(map(len, _WORDS.values())) + 2
_LEAST_WIDTH = 20


def gates_text(gates: GateAnswers) -> None:
    """Print what each gate came to, what it was held against, and all in one line."""
    for answer in gates.answers:
        head = Text.assemble((_WORDS[answer.outcome].ljust(_GATES_INDENT), _COLOURS[answer.outcome]))
        _gates_say(head, f"{answer.text}: {answer.sentence}", indent=_GATES_INDENT)
    if gates.baseline is not None:
        _gates_say(Text(), f"baseline: {gates.baseline.name}")
    for note in (*(gates.baseline.notes if gates.baseline is not None else ()), *gates.notes):
        _gates_say(Text(), f"note: {note}")
    gates_line(gates)


def gates_line(gates: GateAnswers) -> None:
    """Print what all gates came to, its first word coloured."""
    word = _WORDS[gates.outcome]
    _gates_say(Text.assemble((word, _COLOURS[gates.outcome])), gates.sentence.removeprefix(word))


def _gates_say(head: Text, words: str, *, indent: int = 2) -> None:
    """Print one line; what does not fit goes on below, indented."""
    out = console()
    if not out.is_terminal:
        out.print(head, Text(printable(words)), sep="", soft_wrap=True)
        return
    lines = Text(printable(words)).wrap(out, max(_LEAST_WIDTH, out.width - max(indent, len(head))))
    for place, line in enumerate(lines):
        out.print((head if place == 0 else Text(" " * indent)) + line)
