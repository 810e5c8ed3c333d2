"""A comparison as text for a terminal: one table a collective, the bands as the write-ups show them, the answer."""

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from busbw.base.collectives import COLLECTIVES
from busbw.base.text import listed, printable
from busbw.base.units import format_size
from busbw.model.comparison import (
    Answer,
    Bisection,
    BisectionStep,
    Claim,
    ComparedBand,
    ComparedPoint,
    Comparison,
    ComparisonPlan,
    Design,
    SpeedEstimate,
    Versus,
)
from busbw.show.lines import paired_lines
from busbw.show.rank_placement import placement_columns, placement_rows, rank_placement_words, with_placements
from busbw.show.recommended import layer_lines
from busbw.show.text.terminal import console, say_finding
from busbw.show.words import bounds_words, choices_words, us, used_words

# A claim in a word; without one `~`, and `?` where nothing could be claimed whatever the times.
CLAIM_WORDS: dict[Claim, str] = {"faster": "faster", "slower": "slower", "same": "=", "none": "~", "cannot_tell": "?"}
_COLOURS = {"faster": "bold green", "slower": "bold yellow", "same": "", "none": "dim", "cannot_tell": "cyan"}
_OUTCOME_COLOURS = {
    "faster": "bold green", "slower": "bold yellow", "mixed": "bold yellow", "same": "bold", "none": "bold",
    "wrong": "bold red", "cannot_tell": "bold cyan",
}  # fmt: skip
_NOTHING = "n/a"
_DESCRIPTION = (
    "as measured, nothing is claimed of stored results; spread: 95 % of the ratios of one launch of each side lie in it"
)
_MOST_CHOICES = 6
_MOST_PLACEMENTS = 32
_SEVERAL = 2
_ORDERS = {
    "random_order": "random order in each block",
    "mirrored_pairs": "random order in each pair of blocks, of which the second mirrors the first",
}
# How much faster the other side is than the first.
_SHOWN = ("gain\n(%)", "95 % interval\n(%)", "shown\n")
# Of sides that were not interleaved.
_MEASURED = ("gain\n(%)", "spread\n(%)")


def comparison_text(comparison: Comparison) -> None:
    """Print the sides, every point, every band, what was found and the answer."""
    out = console()
    _sides(out, comparison)
    _rank_placements(out, comparison)
    for versus in comparison.versus:
        letters = (comparison.sides[0].letter, comparison.sides[versus.other].letter)
        for _key, group in groupby(versus.points, key=lambda point: (point.collective, point.in_place, point.dtype)):
            points = list(group)
            out.print()
            out.print(Text(printable(_title(points[0], letters))))
            out.print(_table(points, letters, comparison.design))
            for line in paired_lines(points, letters) if out.encoding.startswith("utf") else ():
                out.print(Text(line), soft_wrap=not out.is_terminal)
        _bands(out, versus, letters, comparison.design)
        _summaries(out, versus, letters)
        _geometric_mean(out, versus, comparison.design)
        _choices(out, versus, letters)
        _unmatched(out, versus)
    out.print()
    _legend(out, comparison)
    for finding in comparison.findings:
        say_finding(out, finding)
    verdict = Text()
    verdict.append(comparison.verdict.outcome.replace("_", " "), style=_OUTCOME_COLOURS[comparison.verdict.outcome])
    sentence = comparison.verdict.sentence.removeprefix("cannot tell ")
    verdict.append(printable(f": {sentence}"))
    out.print(verdict, soft_wrap=not out.is_terminal)
    for step in comparison.next_steps:
        out.print(Text(printable(step)), soft_wrap=True)


def plan_of_comparison_text(plan: ComparisonPlan) -> None:
    """Print what a comparison would start, in which order."""
    out = console()
    for side in plan.sides:
        out.print(Text(printable(f"{side.letter}  {side.name}")), soft_wrap=True)
    order = " ".join(
        "".join(plan.sides[launch.side].letter for launch in group)
        for _block, group in groupby(plan.launches, key=lambda launch: launch.block)
    )
    out.print(
        Text(
            f"{len(plan.launches)} launches, at most {plan.launch_limit_s:.1f} s of measuring each, "
            f"{plan.budget_s:g} s in all; {_ORDERS[plan.design]}, seed {plan.seed}:"
        ),
        soft_wrap=not out.is_terminal,
    )
    out.print(Text(f"  {order}"), soft_wrap=not out.is_terminal)
    for note in plan.notes:
        out.print(Text(printable(f"note: {note}")), soft_wrap=not out.is_terminal)


def _sides(out: Console, comparison: Comparison) -> None:
    for side in comparison.sides:
        count = f"{len(side.launches)} launch{'' if len(side.launches) == 1 else 'es'}"
        out.print(Text(printable(f"{side.letter}  {side.name} ({count})")), soft_wrap=True)
        if side.recommended is not None:
            for line in layer_lines(side.recommended):
                out.print(Text(printable(f"   {line}")), soft_wrap=True)
    for note in comparison.notes:
        out.print(Text(printable(f"note: {note}")), soft_wrap=not out.is_terminal)


def _rank_placements(out: Console, comparison: Comparison) -> None:
    """Print where the ranks of each side ran, where that differs."""
    sides = with_placements(comparison)
    if not sides:
        return
    out.print()
    out.print(Text("# rank placement: CPUs, and their NUMA nodes"))
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="")
    for column in placement_columns(sides):
        table.add_column(column, justify="right", no_wrap=True)
    for row in placement_rows(sides)[:_MOST_PLACEMENTS]:
        table.add_row(*map(printable, row))
    out.print(table)
    more = len(placement_rows(sides)) - _MOST_PLACEMENTS
    words = [f"and {more} more ranks: --json has each"] if more > 0 else []
    for line in (*words, *map(rank_placement_words, sides)):
        out.print(Text(printable(line)), soft_wrap=True)


def _title(point: ComparedPoint, letters: tuple[str, str]) -> str:
    place = ", in place" if point.in_place else ""
    known = COLLECTIVES.get(point.collective)
    op = f" {point.op}" if point.op and known is not None and known.reduces else ""
    details = (f"{point.dtype}{op}".strip(), f"{point.ranks} ranks" if point.ranks else "")
    rest = "".join(f", {each}" for each in details if each)
    return f"# {point.collective}{place}{rest}: {letters[1]} against {letters[0]}"


def _table(points: Sequence[ComparedPoint], letters: tuple[str, str], design: Design) -> Table:
    first, other = letters
    sides = (f"{first}\n(us)", f"{other}\n(us)", f"{first}\n(GB/s)", f"{other}\n(GB/s)")
    table = _columns("size\n(B)", *sides, *(_MEASURED if design == "descriptive" else _SHOWN))
    for point in points:
        rates = (
            _NOTHING if rate_Bps is None else f"{rate_Bps / 1e9:.2f}"
            for rate_Bps in (point.first_busbw_Bps, point.other_busbw_Bps)
        )
        table.add_row(
            str(point.size_bytes), us(point.first_s), us(point.other_s), *rates, *_cells(point.estimate, design)
        )
    return table


def _cells(estimate: SpeedEstimate, design: Design) -> tuple[str | Text, ...]:
    interval = _NOTHING
    if estimate.low is not None and estimate.high is not None:
        interval = f"{_change(estimate.low)} to {_change(estimate.high)}"
    if design == "descriptive":
        return _change(estimate.ratio), interval
    return _change(estimate.ratio), interval, Text(CLAIM_WORDS[estimate.claim], style=_COLOURS[estimate.claim])


def _change(ratio: float) -> str:
    """Return how much faster a ratio of times is, in percent: `+3.1`."""
    percent = 100 * (ratio - 1)
    return f"{percent:+.1f}" if abs(percent) < 100 else f"{percent:+.0f}"


def _columns(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="")
    for name in names:
        table.add_column(name, justify="left" if name in ("collective\n", "sizes\n") else "right", no_wrap=True)
    return table


def _bands(out: Console, versus: Versus, letters: tuple[str, str], design: Design) -> None:
    if all(len(band.sizes_bytes) == 1 for band in versus.bands):
        # They would be the tables above once more.
        return
    first, other = letters
    out.print()
    out.print(Text("# by size: latency of small messages (us), bus bandwidth of medium and large ones (GB/s)"))
    shown = _MEASURED if design == "descriptive" else _SHOWN
    told = any(band.first_choices or band.other_choices for band in versus.bands)
    table = _columns("collective\n", "sizes\n", f"{first}\n", f"{other}\n", *shown, *(("NCCL used\n",) if told else ()))
    for band in versus.bands:
        values = (_value(band, band.first), _value(band, band.other))
        place = " in place" if band.in_place else ""
        used = (printable(used_words(band)),) if told else ()
        table.add_row(printable(f"{band.collective}{place}"), band.band, *values, *_cells(band.estimate, design), *used)
    out.print(table)
    out.print(Text(f"# {bounds_words(versus.bands)}"), soft_wrap=True)


def _summaries(out: Console, versus: Versus, letters: tuple[str, str]) -> None:
    """Print what is claimed of small, medium and large messages; of one collective the table says it."""
    if len({(band.collective, band.in_place) for band in versus.bands}) < _SEVERAL:
        return
    for each in versus.summaries:
        out.print(Text(printable(f"{letters[1]} against {letters[0]}, {each.band}: {each.sentence}")), soft_wrap=True)


def _geometric_mean(out: Console, versus: Versus, design: Design) -> None:
    if versus.geometric_mean is not None:
        change, interval, *word = _cells(versus.geometric_mean, design)
        text = Text(f"geometric mean over all points, as asked: gain {change} % ({interval})")
        text.append("".join(f"  {each}" for each in word))
        out.print(text, soft_wrap=not out.is_terminal)


def _value(band: ComparedBand, value: float) -> str:
    if band.measure == "bandwidth":
        return f"{value / 1e9:.2f}"
    # Where the heading says bandwidth, and none is known.
    return us(value) if band.band == "small" else f"{us(value)} us"


def _choices(out: Console, versus: Versus, letters: tuple[str, str]) -> None:
    """Print where NCCL did something else: a setting that changes nothing there explains no difference."""
    known = [point for point in versus.points if point.first_choices and point.other_choices]
    if not known:
        return
    changed = [
        f"{point.collective} {format_size(point.size_bytes)}: {choices_words(point.first_choices)} -> "
        f"{choices_words(point.other_choices)}"
        for point in known
        if point.first_choices != point.other_choices
    ]
    if not changed:
        words = f"NCCL used the same algorithm, protocol and channels for {letters[0]} and {letters[1]} at every point"
    else:
        choices = listed(changed, _MOST_CHOICES, between="; ")
        words = f"NCCL did something else at {len(changed)} of {len(known)} points: {choices}"
    out.print(Text(printable(words)), soft_wrap=not out.is_terminal)


def _unmatched(out: Console, versus: Versus) -> None:
    if versus.unmatched:
        words = f"not compared: {listed(versus.unmatched)}"
        out.print(Text(printable(words), style="yellow"), soft_wrap=not out.is_terminal)


def _legend(out: Console, comparison: Comparison) -> None:
    if comparison.design == "descriptive":
        out.print(Text(_DESCRIPTION, style="dim"), soft_wrap=not out.is_terminal)
        return
    claims = {point.estimate.claim for versus in comparison.versus for point in versus.points}
    least = f"{100 * comparison.least_difference:g} %"
    planned = f" of {comparison.blocks_planned}" if comparison.blocks_planned else ""
    words = [f"{comparison.blocks}{planned} block{'' if comparison.blocks == 1 else 's'} with a launch of each"]
    if claims & {"faster", "slower"} and comparison.false_claims is not None:
        rate = f"in at most {100 * comparison.false_claims:g} % of such tables one of these words is wrong"
        words.append(f"faster, slower: by more than {least}; {rate}")
    words += ["~: no difference shown"] if "none" in claims else []
    words += [f"=: the interval lies within {least}"] if "same" in claims else []
    words += ["?: too few blocks to show any"] if "cannot_tell" in claims else []
    if any(_is_apart(point.estimate) for versus in comparison.versus for point in versus.points):
        words.append("an interval is for its row alone, the words for the whole table")
    out.print(Text("; ".join(words), style="dim"), soft_wrap=not out.is_terminal)


def _is_apart(estimate: SpeedEstimate) -> bool:
    """Whether an interval alone would say more than the claim does."""
    if estimate.claim != "none" or estimate.low is None or estimate.high is None:
        return False
    return estimate.low > 1 or estimate.high < 1


ANSWERS: dict[Answer, str] = {"shows": "does it", "absent": "does not", "unclear": "unclear"}


def asked_words(step: BisectionStep) -> str:
    """Return which items a question was about, by their numbers from 1: `1+3`."""
    return "+".join(str(item + 1) for item in step.items)


def estimate_words(estimate: SpeedEstimate) -> str:
    """Return a difference with its interval and what it rests on."""
    change = f"gain {100 * (estimate.ratio - 1):+.1f} %"
    if estimate.low is None or estimate.high is None:
        return f"{change} ({len(estimate.blocks)} blocks)"
    low, high = 100 * (estimate.low - 1), 100 * (estimate.high - 1)
    return f"{change} ({low:+.1f} to {high:+.1f}, {len(estimate.blocks)} blocks)"


_BISECTION_COLOURS = {"found": "bold green", "none": "bold", "cannot_tell": "bold cyan"}


def bisection_text(found: Bisection) -> None:
    """Print what was asked, and what it came to."""
    out = console()
    out.print(Text(printable(f"good  {found.plan.good}\nbad   {found.plan.bad}")), soft_wrap=True)
    for number, item in enumerate(found.plan.items, start=1):
        out.print(Text(printable(f"  {number}  {item}")), soft_wrap=True)
    if found.point is not None and found.whole is not None:
        out.print(Text(printable(f"bad against good at {found.point}: {estimate_words(found.whole)}")), soft_wrap=True)
    for step in found.steps:
        out.print(
            Text(f"  {asked_words(step)}: {estimate_words(step.estimate)}, {ANSWERS[step.answer]}"), soft_wrap=True
        )
    text = Text()
    text.append(found.outcome.replace("_", " "), style=_BISECTION_COLOURS[found.outcome])
    text.append(printable(f": {found.sentence}"))
    out.print(text, soft_wrap=not out.is_terminal)
