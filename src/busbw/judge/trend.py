"""From points of many runs to series, levels and changes (stats.change_points).

A series holds only what can stand on one line: one group, one collective, size, type, operation, placement, mode,
number of ranks and backend. Libraries and versions are not among it: that they changed is what one wants to see.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, repeat
from operator import itemgetter
from statistics import median as median_of

from busbw.base.errors import InputError
from busbw.base.moment import day_and_time
from busbw.base.text import counted
from busbw.base.units import format_in, format_size
from busbw.model.history import (
    Change,
    GroupedBy,
    Level,
    Metric,
    PointKind,
    RunInTime,
    Strands,
    Trend,
    TrendObservation,
    TrendOutcome,
    TrendSeries,
)
from busbw.stats.change_points import change_points, least_values
from busbw.stats.distributions import median, median_interval

_LONGEST_VALUE = 60
# A run, and what one point of it is.
PointInTime = tuple[RunInTime, PointKind]
_CHANGED_WITH_IT_ASPECTS: tuple[tuple[str, Callable[[RunInTime, PointKind], str | None]], ...] = (
    ("libraries", lambda _, point: point.libraries),
    ("busbw", lambda run, _: run.busbw_version),
    ("hosts", lambda _, point: point.hosts),
    ("algorithm", lambda _, point: point.algorithm),
    ("protocol", lambda _, point: point.protocol),
)


def changed_with_it(earlier: Sequence[PointInTime], later: Sequence[PointInTime]) -> Iterable[str]:
    """Yield what all runs just before a change have in common, and all just after it have otherwise."""
    for name, of in _CHANGED_WITH_IT_ASPECTS:
        before, after = {of(*each) for each in earlier}, {of(*each) for each in later}
        if len(before) == len(after) == 1 and before != after:
            yield f"{name}: {before.pop() or 'not told'} -> {after.pop() or 'not told'}"
    yield from _other_settings([dict(_pairs(run)) for run, _ in earlier], [dict(_pairs(run)) for run, _ in later])


def _pairs(run: RunInTime) -> Iterable[tuple[str, str]]:
    for setting in run.settings:
        name, _, value = setting.partition("=")
        yield name, value


def _other_settings(earlier: Sequence[dict[str, str]], later: Sequence[dict[str, str]]) -> Iterable[str]:
    """Yield the settings that each side agrees on, and the other otherwise; a job's own number never stays the same."""
    names = dict.fromkeys(name for each in (*earlier, *later) for name in each)
    for name in names:
        before, after = {each.get(name) for each in earlier}, {each.get(name) for each in later}
        if len(before) == len(after) == 1 and before != after:
            words = [f'"{value[:_LONGEST_VALUE]}"' if value is not None else "unset" for value in (*before, *after)]
            yield f"{name}: {words[0]} -> {words[1]}"


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
    decided = len(series) - untold
    if outcome == "steady":
        return f"steady: {metric.name} keeps its level in {decided} series{rest}"
    # The largest first: it is what a reader looks at.
    worst = max(found, key=lambda each: abs(each.changes[-1].share))
    kind = "regression" if outcome == "worse" else "better"
    number = f" in {len(found)} of {decided} series" if decided > 1 else ""
    return f"{kind}{number}: {worst.title} on {worst.group} is {worst.sentence}{rest}"


# How many runs on either side of a change must agree on what else is another.
_BESIDE = 5
_UNKNOWN = {"host": "unknown host", "platform": "unknown platform", "tag": "without a tag"}
# Place of the run, value, and number of the strand; places are those of `Strands.runs`.
_Value = tuple[int, float, int]


def trend(found: Strands, metric: Metric, *, by: GroupedBy, false_alarms: float, least_change: float) -> Trend:
    """Return the series that points make, and what is to be said of them.

    `false_alarms` is for the whole call: each of its series has an equal share (Bonferroni). `least_change` is a share
    of the level before.
    """
    gathered = _gathered(found, by)
    kinds = {key: found.strands[values[0][2]].kind for key, values in gathered.items()}
    share = false_alarms / max(len(gathered), 1)
    titled = series_title(tuple(kinds.values()))
    least = least_values(share)
    making = _Making(found, metric, share, least_change, least)
    series = tuple(
        making.series(str(key[0]), titled(kinds[key]), _merged(gathered[key]))
        for key in sorted(gathered, key=lambda key: _order(key, kinds[key]))
    )
    outcome = _together([each.outcome for each in series])
    return Trend(
        metric=metric,
        by=by,
        false_alarms=false_alarms,
        least_change=least_change,
        least_runs=least,
        series=series,
        without_value=found.without_value,
        outcome=outcome,
        sentence=trend_sentence(series, outcome, metric, least),
    )


def _gathered(found: Strands, by: GroupedBy) -> dict[tuple[object, ...], list[_Value]]:
    """Return the values of each series, in the order of time."""
    gathered: dict[tuple[object, ...], list[_Value]] = {}
    for number, strand in enumerate(found.strands):
        identity, values = _identity(strand.kind, by), zip(strand.runs, strand.values, repeat(number), strict=False)
        if by == "host":
            gathered.setdefault((strand.kind.hosts or _UNKNOWN[by], *identity), []).extend(values)
            continue
        for each in values:
            for group in _groups(found.runs[each[0]], by):
                gathered.setdefault((group, *identity), []).append(each)
    for all_values in gathered.values():
        all_values.sort()
    return gathered


def _groups(run: RunInTime, by: GroupedBy) -> tuple[str, ...]:
    names = (run.platform or "",) if by == "platform" else run.tags
    return tuple(name or _UNKNOWN[by] for name in names) or (_UNKNOWN[by],)


def _identity(point: PointKind, by: GroupedBy) -> tuple[object, ...]:
    """Return what two points of one series have in common."""
    return (
        point.collective,
        point.size_bytes,
        point.dtype,
        point.op,
        point.root,
        point.in_place,
        point.ranks,
        point.mode,
        point.source,
        point.target,
        point.group,
        point.backend,
        point.statistic,
        # Over how many hosts, where the hosts are not what the series are told apart by.
        point.hosts.count(",") if by != "host" else None,
    )


def _order(key: tuple[object, ...], point: PointKind) -> tuple[str, str, int, str]:
    return str(key[0]), point.collective, point.size_bytes or 0, str(key)


def _merged(values: list[_Value]) -> list[_Value]:
    """Return one value for each run: the median of those it has."""
    if len({place for place, _, _ in values}) == len(values):
        return values
    return [
        (place, median_of(value for _, value, _ in same), same[0][2])
        for place, same in ((place, list(those)) for place, those in groupby(values, itemgetter(0)))
    ]


@dataclass(frozen=True, slots=True)
class _Making:
    """What all series of a call have in common."""

    found: Strands
    metric: Metric
    false_alarms: float
    least_change: float
    least_runs: int

    def series(self, group: str, title: str, values: Sequence[_Value]) -> TrendSeries:
        """Return a series with its levels, its changes, and what is to be said of it."""
        numbers = [value for _, value, _ in values]
        places = change_points(numbers, false_alarms=self.false_alarms, least_change=self.least_change)
        levels = tuple(
            _level(first, numbers[first:last])
            for first, last in zip((0, *places), (*places, len(numbers)), strict=True)
        )
        changes = tuple(self._change(values, before, after) for before, after in pairwise(levels))
        outcome: TrendOutcome = "cannot_tell" if not changes and len(values) < self.least_runs else "steady"
        if changes:
            outcome = "worse" if changes[-1].is_worse else "better"
        point = self.found.strands[values[0][2]].kind
        return TrendSeries(
            group=group,
            title=title,
            collective=point.collective,
            size_bytes=point.size_bytes,
            dtype=point.dtype,
            in_place=point.in_place,
            ranks=point.ranks,
            mode=point.mode,
            backend=point.backend,
            observations=tuple(self._observation(place, value) for place, value, _ in values),
            levels=levels,
            changes=changes,
            outcome=outcome,
            sentence=_sentence(levels, changes, self.metric, outcome, self.least_runs),
        )

    def _observation(self, place: int, value: float) -> TrendObservation:
        run = self.found.runs[place]
        return TrendObservation(run_id=run.run_id, created_unix_s=run.created_unix_s, value=value)

    def _change(self, values: Sequence[_Value], before: Level, after: Level) -> Change:
        share = after.median / before.median - 1
        run = self.found.runs[values[after.first][0]]
        earlier = values[max(after.first - _BESIDE, before.first) : after.first]
        later = values[after.first : after.first + min(_BESIDE, after.runs)]
        return Change(
            first=after.first,
            run_id=run.run_id,
            created_unix_s=run.created_unix_s,
            share=share,
            is_worse=(share < 0) == self.metric.more_is_better,
            with_it=tuple(changed_with_it(self._points(earlier), self._points(later))),
        )

    def _points(self, values: Sequence[_Value]) -> tuple[PointInTime, ...]:
        return tuple((self.found.runs[place], self.found.strands[number].kind) for place, _, number in values)


def _level(first: int, numbers: Sequence[float]) -> Level:
    ordered = sorted(numbers)
    low, high = median_interval(ordered) or (None, None)
    return Level(first=first, runs=len(numbers), median=median(ordered), low=low, high=high)


def _sentence(
    levels: Sequence[Level], changes: Sequence[Change], metric: Metric, outcome: TrendOutcome, least_runs: int
) -> str:
    if outcome == "cannot_tell":
        return f"cannot tell: {counted(levels[0].runs, 'run')}, and a change shows from {least_runs} on"
    if not changes:
        return f"steady over {counted(levels[0].runs, 'run')}"
    return change_words(changes[-1], levels[-2], levels[-1], metric)


def _together(outcomes: Sequence[TrendOutcome]) -> TrendOutcome:
    """Return the answer of a call: worse where any series is; cannot tell where none could be told."""
    decided = [outcome for outcome in outcomes if outcome != "cannot_tell"]
    if not decided:
        return "cannot_tell"
    return "worse" if "worse" in decided else "better" if "better" in decided else "steady"


_TIMES = (
    ("time", "time_s", "median time of one exchange"),
    ("min", "min_s", "shortest sample"),
    ("max", "max_s", "longest sample"),
    ("mean", "mean_s", "mean of the samples"),
    ("p50", "p50_s", "50th percentile of the samples"),
    ("p95", "p95_s", "95th percentile of the samples"),
    ("p99", "p99_s", "99th percentile of the samples"),
)
_RATES = (
    ("busbw", "busbw_Bps", "bus bandwidth"),
    ("algbw", "algbw_Bps", "algorithm bandwidth"),
    ("bandwidth", "bandwidth_Bps", "bandwidth as an imported tool counts it"),
)
METRICS = {
    metric.name: metric
    for metric in (
        *(Metric(name=n, field=f, unit="B/s", more_is_better=True, meaning=m) for n, f, m in _RATES),
        *(Metric(name=n, field=f, unit="s", more_is_better=False, meaning=m) for n, f, m in _TIMES),
        Metric(
            name="messages",
            field="messages_per_s",
            unit="messages/s",
            more_is_better=True,
            meaning="messages a second, all pairs together",
        ),
    )
}


def metric_called(name: str) -> Metric:
    """Return the metric of that name. Raises InputError when there is none."""
    if name not in METRICS:
        raise InputError(f"{name[:40]!r} is not a metric", hint="one of: " + ", ".join(METRICS))
    return METRICS[name]
