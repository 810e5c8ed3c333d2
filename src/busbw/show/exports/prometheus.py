"""Gauges in the text format of Prometheus, as node_exporter reads them from a file: base units, no timestamps."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

from busbw.base.moment import unix_s
from busbw.base.text import one_line
from busbw.model.finding import Outcome
from busbw.model.gates import PointRow, is_missing, is_wrong
from busbw.model.history import Trend, TrendOutcome, TrendSeries
from busbw.show.exports.rows import Export

Labels = tuple[tuple[str, str], ...]
Sample = tuple[Labels, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """One quantity: its name, what it is, and its samples."""

    name: str
    help: str
    samples: tuple[Sample, ...]


def families_text(families: Iterable[Family]) -> str:
    """Return the families that have samples; label values are escaped."""
    return "".join(_text(family) for family in families if family.samples)


def _text(family: Family) -> str:
    lines = [f"# HELP {family.name} {_help(family.help)}", f"# TYPE {family.name} gauge"]
    lines += [f"{family.name}{_labels(labels)} {value!r}" for labels, value in family.samples]
    return "\n".join(lines) + "\n"


def _labels(labels: Sequence[tuple[str, str]]) -> str:
    """Return labels in braces; an empty one is left out: to Prometheus it is the same as none."""
    shown_labels = ",".join(f'{name}="{_value(value)}"' for name, value in labels if value)
    return f"{{{shown_labels}}}" if shown_labels else ""


def _value(text: str) -> str:
    """Return a label's value: backslash, quote and line end escaped, other control characters shown."""
    lines = (one_line(line).replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n"))
    return "\\n".join(lines)


def _help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


# (metric, field of a row, what it is)
_QUANTITIES = (
    ("busbw_time_seconds", "time_s", "Median time of one exchange; of imports the statistic that the label names."),
    ("busbw_time_low_seconds", "low_s", "Lower end of the interval of the median time."),
    ("busbw_time_high_seconds", "high_s", "Upper end of the interval of the median time."),
    ("busbw_time_min_seconds", "min_s", "Shortest sample."),
    ("busbw_time_max_seconds", "max_s", "Longest sample."),
    ("busbw_time_mean_seconds", "mean_s", "Mean of the samples."),
    ("busbw_time_p50_seconds", "p50_s", "50th percentile of the samples."),
    ("busbw_time_p95_seconds", "p95_s", "95th percentile of the samples."),
    ("busbw_time_p99_seconds", "p99_s", "99th percentile of the samples."),
    ("busbw_algorithm_bandwidth_bytes_per_second", "algbw_Bps", "Size by time."),
    ("busbw_bus_bandwidth_bytes_per_second", "busbw_Bps", "Size by time, times the factor of the collective."),
    ("busbw_bandwidth_bytes_per_second", "bandwidth_Bps", "Bandwidth as the imported tool counts it."),
    ("busbw_messages_per_second", "messages_per_s", "Messages a second, all pairs together."),
    ("busbw_samples", "samples", "Samples taken."),
    ("busbw_wrong_elements", "wrong", "Elements of the first wrong rank that are wrong; absent: not verified."),
)


def prometheus_text(export: Export) -> str:
    """Return the families of an export. What was not measured, and the time of a wrong result, has no sample."""
    return families_text((*_run_families(export), *_point_families(export)))


def _run_families(export: Export) -> tuple[Family, ...]:
    tag: Labels = (("tag", export.tag or ""),)
    created_s = unix_s(export.created)
    states = Counter(map(_state, export.rows))
    verdicts = get_args(Outcome) if export.verdict is not None else ()
    return (
        Family(
            name="busbw_run_info",
            help="What was measured last; always 1.",
            samples=((_run_labels(export), 1),),
        ),
        Family(
            name="busbw_run_created_timestamp_seconds",
            help="When the run was planned, or the import made, in seconds since 1970.",
            samples=((tag, created_s),) if created_s is not None else (),
        ),
        Family(
            name="busbw_run_verdict",
            help="1 for the verdict of the run, 0 for the others.",
            samples=tuple(((("verdict", each), *tag), int(each == export.verdict)) for each in verdicts),
        ),
        Family(
            name="busbw_run_points",
            help="Points of the run by what came of them.",
            samples=tuple(((("state", each), *tag), states[each]) for each in _STATES),
        ),
    )


_STATES = ("right", "unverified", "wrong", "missing")


def _state(row: PointRow) -> str:
    if is_missing(row):
        return "missing"
    return "wrong" if is_wrong(row) else "right" if row.verified else "unverified"


def _run_labels(export: Export) -> Labels:
    def distinct(names: Iterable[str]) -> str:
        return ",".join(dict.fromkeys(name for name in names if name))

    return (
        ("run_id", export.run_id),
        ("busbw_version", export.busbw_version),
        ("hosts", distinct(row.hosts for row in export.rows)),
        ("backend", distinct(row.backend for row in export.rows)),
        ("libraries", distinct(row.libraries for row in export.rows)),
        ("tag", export.tag or ""),
    )


def _point_families(export: Export) -> Iterable[Family]:
    labels = [_point_labels(row) for row in export.rows]
    for name, field, meaning in _QUANTITIES:
        values = [getattr(row, field) for row in export.rows]
        yield Family(
            name=name,
            help=meaning,
            samples=tuple((each, value) for each, value in zip(labels, values, strict=True) if value is not None),
        )


def _point_labels(row: PointRow) -> Labels:
    """Return what tells the points of one export apart."""
    return (
        ("collective", row.collective),
        ("size_bytes", _number(row.size_bytes)),
        ("dtype", row.dtype or ""),
        ("op", row.op or ""),
        ("root", _number(row.root)),
        ("in_place", "" if row.in_place is None else str(row.in_place).lower()),
        ("ranks", _number(row.ranks)),
        ("mode", row.mode or ""),
        ("hosts", row.hosts),
        ("backend", row.backend),
        ("source", row.source or ""),
        ("target", row.target or ""),
        ("group", _number(row.group)),
        ("statistic", row.statistic),
        ("repeat", str(row.repeat) if row.repeat else ""),
        ("tag", row.tag or ""),
    )


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


_UNIT = {"s": "seconds", "B/s": "bytes_per_second", "messages/s": "messages_per_second"}


def trend_prometheus(trend: Trend) -> str:
    """Return the gauges of a trend; those of a change only where there is one."""
    labelled = [(_trend_labels(each, trend), each) for each in trend.series]
    outcomes = get_args(TrendOutcome)
    return families_text(
        (
            Family(
                name=f"busbw_trend_level_{_UNIT[trend.metric.unit]}",
                help="Median of the runs since the latest change.",
                samples=tuple((labels, each.levels[-1].median) for labels, each in labelled),
            ),
            Family(
                name="busbw_trend_runs",
                help="Runs in the series.",
                samples=tuple((labels, len(each.observations)) for labels, each in labelled),
            ),
            Family(
                name="busbw_trend_last_timestamp_seconds",
                help="When the latest run was made, in seconds since 1970.",
                samples=tuple((labels, each.observations[-1].created_unix_s) for labels, each in labelled),
            ),
            Family(
                name="busbw_trend_change_ratio",
                help="The level now over the one before the latest change.",
                samples=tuple((labels, 1 + each.changes[-1].share) for labels, each in labelled if each.changes),
            ),
            Family(
                name="busbw_trend_change_timestamp_seconds",
                help="When the first run after the latest change was made, in seconds since 1970.",
                samples=tuple((labels, each.changes[-1].created_unix_s) for labels, each in labelled if each.changes),
            ),
            Family(
                name="busbw_trend_outcome",
                help="1 for what is said of the series, 0 for the others.",
                samples=tuple(
                    ((("outcome", outcome), *labels), int(outcome == each.outcome))
                    for labels, each in labelled
                    for outcome in outcomes
                ),
            ),
        )
    )


def _trend_labels(series: TrendSeries, trend: Trend) -> Labels:
    return (
        ("metric", trend.metric.name),
        (trend.by, series.group),
        ("series", series.title),
        ("collective", series.collective),
        ("size_bytes", str(series.size_bytes) if series.size_bytes is not None else ""),
        ("ranks", str(series.ranks) if series.ranks is not None else ""),
        ("backend", series.backend),
    )
