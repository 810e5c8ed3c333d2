"""A metric over time: series of runs that can stand on one line, their levels, and what is to be said of them."""

from typing import Literal

from busbw.base.value import Integer, Value

TREND_SCHEMA = 1
GroupedBy = Literal["host", "platform", "tag"]
# steady: no change; worse, better: the latest change; cannot_tell: too few runs for any change to be claimed.
TrendOutcome = Literal["steady", "better", "worse", "cannot_tell"]


class Metric(Value, kw_only=True, frozen=True):
    """A number that a point has, and which way is better."""

    name: str
    field: str
    unit: Literal["s", "B/s", "messages/s"]
    more_is_better: bool
    meaning: str


class Observation(Value, kw_only=True, frozen=True, gc=False):
    """What one run says; the median where it has the point several times."""

    run_id: str
    created_unix_s: float
    value: float


class Level(Value, kw_only=True, frozen=True):
    """The runs between two changes: `runs` of them from number `first` of the series on."""

    first: Integer
    runs: Integer
    median: float
    # Interval of the median at 95 % (stats.median); None: too few runs for one.
    low: float | None
    high: float | None


class Change(Value, kw_only=True, frozen=True):
    """Where a level ends and another begins."""

    # Number of the first run after it in the series, its name, and when it was made.
    first: Integer
    run_id: str
    created_unix_s: float
    # Median after it over the median before it, less 1.
    share: float
    is_worse: bool
    # What else is another after it than before: `libraries: Open MPI 5.0.7 -> Open MPI 5.0.11`.
    with_it: tuple[str, ...] = ()


class TrendSeries(Value, kw_only=True, frozen=True):
    """One point of one group over time."""

    # The host, platform or tag; and what tells the series from others of the group, in words.
    group: str
    title: str
    collective: str
    size_bytes: Integer | None
    dtype: str | None
    in_place: bool | None
    ranks: Integer | None
    mode: str | None
    backend: str
    observations: tuple[Observation, ...]
    levels: tuple[Level, ...]
    changes: tuple[Change, ...]
    outcome: TrendOutcome
    sentence: str


class Trend(Value, kw_only=True, frozen=True):
    """Every series that was asked for, and the answer they give together."""

    schema: Integer = TREND_SCHEMA
    metric: Metric
    by: GroupedBy
    # Probability that any series of this call is said to change where none does; and the least change looked for.
    false_alarms: float
    least_change: float
    # How many runs a series of this call must have for a change to be claimed at all.
    least_runs: Integer
    series: tuple[TrendSeries, ...]
    # Points that have no such number: their result was wrong, or it was not measured.
    without_value: Integer
    outcome: TrendOutcome
    sentence: str
