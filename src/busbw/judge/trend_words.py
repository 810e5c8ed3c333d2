"""What is said of series over time, in one line each."""

from collections.abc import Callable, Sequence

from busbw.base.moment import day_and_time
from busbw.base.units import format_in, format_size
from busbw.judge.phrases import counted
from busbw.model.history import PointKind
from busbw.model.trend import Change, Level, Metric, TrendOutcome, TrendSeries


def change_words(change: Change, before: Level, after: Level, metric: Metric) -> str:
    """Return what changed, by how much, since when, and what else did."""
    kind = "worse" if change.is_worse else "better"
    others = f"; with it {', '.join(change.with_it)}" if change.with_it else ""
    return (
        f"{kind} by {abs(change.share) * 100:.1f} % since {day_and_time(change.created_unix_s)} ({change.run_id}): "
        f"{metric.name} {format_in(before.median, metric.unit)} -> {format_in(after.median, metric.unit)}, "
        f"{counted(before.runs, 'run')} before, {after.runs} after{others}"
    )


_ASPECTS: tuple[Callable[[PointKind], str], ...] = (
    lambda each: f"{each.ranks} ranks" if each.ranks is not None else "",
    lambda each: each.dtype or "",
    lambda each: each.op or "",
    lambda each: f"root {each.root}" if each.root is not None else "",
    lambda each: "" if each.in_place is None else "in place" if each.in_place else "out of place",
    lambda each: each.mode or "",
    lambda each: f"{each.source}-{each.target}" if each.source is not None else "",
    lambda each: f"group of {each.group}" if each.group is not None else "",
    lambda each: f"{each.hosts.count(',') + 1} hosts" if "," in each.hosts else "",
    lambda each: each.backend,
    lambda each: each.statistic,
)


def series_title(points: Sequence[PointKind]) -> Callable[[PointKind], str]:
    """Return what names a series by one of its points: collective and size, and what else differs among `points`."""

    def differs(words: Callable[[PointKind], str]) -> bool:
        # Between collectives it may: their names tell them apart.
        return len({(each.collective, words(each)) for each in points}) > len({each.collective for each in points})

    telling = [words for words in _ASPECTS if differs(words)]

    def title(point: PointKind) -> str:
        size = format_size(point.size_bytes) if point.size_bytes is not None else ""
        more = [text for text in (words(point) for words in telling) if text]
        return ", ".join([" ".join(part for part in (point.collective, size) if part), *more])

    return title


def trend_sentence(series: Sequence[TrendSeries], outcome: TrendOutcome, metric: Metric, least_runs: int) -> str:
    """Return the answer of a call in one line."""
    if not series:
        return f"cannot tell: no stored run that fits has a {metric.name}"
    if outcome == "cannot_tell":
        most = max(len(each.observations) for each in series)
        return (
            f"cannot tell: {counted(most, 'run')} at most in any of {len(series)} series, "
            f"and a change shows from {least_runs} on"
        )
    found = [each for each in series if each.outcome == outcome]
    untold = sum(each.outcome == "cannot_tell" for each in series)
    rest = f"; cannot tell of {untold} with fewer than {least_runs} runs" if untold else ""
    told = len(series) - untold
    if outcome == "steady":
        return f"steady: {metric.name} keeps its level in {told} series{rest}"
    # The largest first: it is what a reader looks at.
    worst = max(found, key=lambda each: abs(each.changes[-1].share))
    kind = "regression" if outcome == "worse" else "better"
    number = f" in {len(found)} of {told} series" if told > 1 else ""
    return f"{kind}{number}: {worst.title} on {worst.group} is {worst.sentence}{rest}"
