"""What is kept of each stored run so that thousands can be asked at once, and what can be asked."""

from busbw.base.value import Integer, Value
from busbw.model.listing import Row


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

    row: Row
    # Seconds since 1970; None: neither the run nor its name says when it was made.
    created_unix_s: float | None
    # NAME=value of the settings it was started with, those of the allow-list (model.variables).
    settings: tuple[str, ...] = ()
    points: tuple[HistoryPoint, ...]


class Selection(Value, kw_only=True, frozen=True):
    """Which runs are meant: those that every part which is given holds for."""

    # "run", "import", "comparison" or "bisection".
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
