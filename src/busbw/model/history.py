"""What is kept of each stored run so that thousands can be asked at once; lists and trends of them."""

from typing import Literal

from busbw.base.value import Integer, Value


class ListRow(Value, kw_only=True, frozen=True):
    """One run, import, comparison, bisection or search over groups in a list.

    Of an import the points are readings, and nothing is planned; of a comparison they are those that both of two sides
    have; of a bisection those of the comparison of its ends; of a search the runs of its groups.
    """

    kind: Literal["run", "import", "comparison", "bisection", "isolation"] = "run"
    run_id: str
    path: str
    created: str | None
    # The host that it was planned on; all hosts that took part.
    host: str | None
    hosts: tuple[str, ...] = ()
    ranks: Integer | None
    # The platform of the planning host where it was recognised, else its GPUs (`8x NVIDIA H200`) or its processor.
    platform: str | None = None
    backend: str | None = None
    # Versions of NCCL in use; more than one when ranks loaded different ones.
    nccl: tuple[str, ...] = ()
    busbw_version: str | None = None
    # What was measured; of an import the tools that it is from.
    collectives: tuple[str, ...]
    measured: Integer
    planned: Integer
    # The tag it was made with, and all: that one first, then those it was given later.
    tag: str | None
    tags: tuple[str, ...] = ()
    # How the execution ended (model.run.Outcome); "unfinished": under way, or cut off before that could be written.
    ended: str | None = None
    # The verdict's outcome, as in model.run, model.comparison or model.bisection, "imported" for an import, or
    # "unreadable".
    outcome: str
    sentence: str


class PointKind(Value, kw_only=True, frozen=True):
    """What a point of a run is, without its numbers. None: not told."""

    backend: str
    # The hosts' names separated by commas; libraries with their versions.
    hosts: str
    libraries: str
    collective: str
    size_bytes: Integer | None
    dtype: str | None
    op: str | None
    root: Integer | None
    in_place: bool | None
    ranks: Integer | None
    mode: str | None
    source: str | None
    target: str | None
    group: Integer | None
    statistic: str
    algorithm: str | None
    protocol: str | None


class HistoryPoint(PointKind, kw_only=True, frozen=True):
    """One point of one run. None: not measured, not told, or void; a wrong result has no time and no rate."""

    # Place in the run, from 0.
    number: Integer
    verified: bool
    wrong: Integer | None
    time_s: float | None
    min_s: float | None
    max_s: float | None
    mean_s: float | None
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None
    algbw_Bps: float | None
    busbw_Bps: float | None
    bandwidth_Bps: float | None
    messages_per_s: float | None


class HistoryRun(Value, kw_only=True, frozen=True):
    """One run, import, comparison or bisection as the history keeps it."""

    row: ListRow
    # Seconds since 1970; None: neither the run nor its name says when it was made.
    created_unix_s: float | None
    # NAME=value of the settings it was started with, those of the allow-list (model.variables).
    settings: tuple[str, ...] = ()
    points: tuple[HistoryPoint, ...]


class Selection(Value, kw_only=True, frozen=True):
    """Which runs are meant: those that every part which is given holds for."""

    # "run", "import", "comparison", "bisection" or "isolation".
    kind: str | None = None
    # Patterns (`node0*`): one of the hosts, the platform.
    host: str | None = None
    platform: str | None = None
    collective: str | None = None
    # One of these; (): any.
    outcomes: tuple[str, ...] = ()
    # Seconds since 1970; the first belongs to it, the second does not.
    since_unix_s: float | None = None
    until_unix_s: float | None = None
    # All of these.
    tags: tuple[str, ...] = ()
    backend: str | None = None
    # A version or its beginning: 2.28 means 2.28.9 too.
    nccl: str | None = None


class PointSelection(Value, kw_only=True, frozen=True):
    """Which points of those runs are meant."""

    collective: str | None = None
    # (): any.
    sizes_bytes: tuple[Integer, ...] = ()
    dtype: str | None = None
    op: str | None = None
    in_place: bool | None = None
    ranks: Integer | None = None


class RunInTime(Value, kw_only=True, frozen=True):
    """What is needed of a run whose points are followed over time."""

    run_id: str
    created_unix_s: float
    platform: str | None
    tags: tuple[str, ...]
    busbw_version: str | None
    settings: tuple[str, ...] = ()


class Strand(Value, kw_only=True, frozen=True):
    """One number of all points of one kind: its values, and which of the runs each is of; in no order."""

    kind: PointKind
    runs: tuple[Integer, ...]
    values: tuple[float, ...]


class Strands(Value, kw_only=True, frozen=True):
    """One number of the points of many runs, by the kind of point."""

    # In the order of time.
    runs: tuple[RunInTime, ...]
    strands: tuple[Strand, ...]
    # Points without the number, or with one that is not positive.
    without_value: Integer


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


class TrendObservation(Value, kw_only=True, frozen=True, gc=False):
    """What one run says; the median where it has the point several times."""

    run_id: str
    created_unix_s: float
    value: float


class Level(Value, kw_only=True, frozen=True):
    """The runs between two changes: `runs` of them from number `first` of the series on."""

    first: Integer
    runs: Integer
    median: float
    # Interval of the median at 95 % (stats.distributions); None: too few runs for one.
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
    observations: tuple[TrendObservation, ...]
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
