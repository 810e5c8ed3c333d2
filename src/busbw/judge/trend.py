"""From points of many runs to series, levels and changes (stats.change_points).

A series holds only what can stand on one line: one group, one collective, size, type, operation, placement, mode,
number of ranks and backend. Libraries and versions are not among it: that they changed is what one wants to see.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median as median_of

from busbw.judge.changed_with_it import changed_with_it
from busbw.judge.phrases import counted
from busbw.judge.trend_words import change_words, series_title, trend_sentence
from busbw.model.history import HistoryPoint, PointOfRun
from busbw.model.trend import Change, GroupedBy, Level, Metric, Observation, Trend, TrendOutcome, TrendSeries
from busbw.stats.change_points import change_points, least_values
from busbw.stats.median import median, median_interval

# How many runs on either side of a change must agree on what else is another.
_BESIDE = 5
_UNKNOWN = {"host": "unknown host", "platform": "unknown platform", "tag": "without a tag"}
# Positive, in the order of time, with the point it is of.
_Value = tuple[Observation, PointOfRun]


def trend(
    points: Iterable[PointOfRun], metric: Metric, *, by: GroupedBy, false_alarms: float, least_change: float
) -> Trend:
    """Return the series that points make, which come in the order of time, and what is to be said of them.

    `false_alarms` is for the whole call: each of its series has an equal share (Bonferroni). `least_change` is a share
    of the level before.
    """
    without_value = 0
    gathered: dict[tuple[object, ...], list[_Value]] = {}
    for each in points:
        value = getattr(each.point, metric.field)
        if value is None or value <= 0:
            without_value += 1
            continue
        seen = Observation(run_id=each.run_id, created_unix_s=each.created_unix_s, value=value)
        for group in _groups(each, by):
            gathered.setdefault((group, *_identity(each.point, by)), []).append((seen, each))
    share = false_alarms / max(len(gathered), 1)
    titled = series_title([values[0][1].point for values in gathered.values()])
    least = least_values(share)
    series = tuple(
        _series(str(key[0]), titled(values[0][1].point), _merged(values), metric, share, least_change, least)
        for key, values in sorted(gathered.items(), key=lambda item: _order(item[0], item[1][0][1].point))
    )
    outcome = _together([each.outcome for each in series])
    return Trend(
        metric=metric,
        by=by,
        false_alarms=false_alarms,
        least_change=least_change,
        least_runs=least,
        series=series,
        without_value=without_value,
        outcome=outcome,
        sentence=trend_sentence(series, outcome, metric, least),
    )


def _groups(point: PointOfRun, by: GroupedBy) -> tuple[str, ...]:
    names = {"host": (point.point.hosts,), "platform": (point.platform or "",), "tag": point.tags}[by]
    return tuple(name or _UNKNOWN[by] for name in names) or (_UNKNOWN[by],)


def _identity(point: HistoryPoint, by: GroupedBy) -> tuple[object, ...]:
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


def _order(key: tuple[object, ...], point: HistoryPoint) -> tuple[str, str, int, str]:
    return str(key[0]), point.collective, point.size_bytes or 0, str(key)


def _merged(values: Sequence[_Value]) -> list[_Value]:
    """Return one value for each run: the median of those it has."""
    of_run: dict[tuple[str, float], list[_Value]] = {}
    for seen, point in values:
        of_run.setdefault((seen.run_id, seen.created_unix_s), []).append((seen, point))
    return [
        (
            Observation(run_id=run_id, created_unix_s=created, value=median_of(seen.value for seen, _ in same)),
            same[0][1],
        )
        for (run_id, created), same in of_run.items()
    ]


def _series(
    group: str,
    title: str,
    values: Sequence[_Value],
    metric: Metric,
    false_alarms: float,
    least_change: float,
    least_runs: int,
) -> TrendSeries:
    observations = tuple(seen for seen, _ in values)
    numbers = [seen.value for seen in observations]
    places = change_points(numbers, false_alarms=false_alarms, least_change=least_change)
    levels = tuple(
        _level(first, numbers[first:last]) for first, last in zip((0, *places), (*places, len(numbers)), strict=True)
    )
    changes = tuple(_change(values, before, after, metric) for before, after in pairwise(levels))
    outcome: TrendOutcome = "cannot_tell" if not changes and len(values) < least_runs else "steady"
    if changes:
        outcome = "worse" if changes[-1].is_worse else "better"
    point = values[0][1].point
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
        observations=observations,
        levels=levels,
        changes=changes,
        outcome=outcome,
        sentence=_sentence(levels, changes, metric, outcome, least_runs),
    )


def _level(first: int, numbers: Sequence[float]) -> Level:
    ordered = sorted(numbers)
    low, high = median_interval(ordered) or (None, None)
    return Level(first=first, runs=len(numbers), median=median(ordered), low=low, high=high)


def _change(values: Sequence[_Value], before: Level, after: Level, metric: Metric) -> Change:
    share = after.median / before.median - 1
    seen = values[after.first][0]
    earlier = [point for _, point in values[max(after.first - _BESIDE, before.first) : after.first]]
    later = [point for _, point in values[after.first : after.first + min(_BESIDE, after.runs)]]
    return Change(
        first=after.first,
        run_id=seen.run_id,
        created_unix_s=seen.created_unix_s,
        share=share,
        is_worse=(share < 0) == metric.more_is_better,
        with_it=tuple(changed_with_it(earlier, later)),
    )


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
    told = [outcome for outcome in outcomes if outcome != "cannot_tell"]
    if not told:
        return "cannot_tell"
    return "worse" if "worse" in told else "better" if "better" in told else "steady"
