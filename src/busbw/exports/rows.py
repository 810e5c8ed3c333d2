"""Results as flat rows, one a point: the one form that every export is written from."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Literal, TypeVar

from msgspec.structs import replace

from busbw.model.finding import Finding, Verdict
from busbw.model.imported import Device
from busbw.model.value import Integer, Value

T = TypeVar("T")
ROW_SCHEMA = 1
# A point that was planned and never measured.
MISSING = "missing"


class PointRow(Value, kw_only=True, frozen=True):
    """One point of one run, or one row of an imported table. None: not measured, not told, or void.

    A point whose result was wrong has no time and no rate in any field.
    """

    run_id: str
    kind: Literal["run", "import"]
    created: str
    busbw_version: str
    tag: str | None
    # The verdict on the whole run; None for imports, which busbw does not judge.
    verdict: str | None
    # Names separated by commas; "" when the tool does not say.
    hosts: str
    # What measured: a backend of busbw, or the tool an import comes from.
    backend: str
    libraries: str
    # The file and line it was read from.
    read_from: str | None
    table: Integer
    # How many rows before it are of the same point: repetitions of a sweep.
    repeat: Integer = 0
    collective: str
    size_bytes: Integer | None
    count: Integer | None
    dtype: str | None
    # None: the collective does not reduce, has no root.
    op: str | None
    root: Integer | None
    in_place: bool | None
    ranks: Integer | None
    # The two ends where only they exchange: ranks, or what an imported tool names them.
    source: str | None = None
    target: str | None = None
    # Ranks of one node, or of a group that stands for it, in exchanges of two levels.
    group: Integer | None = None
    mode: str | None = None
    samples: Integer | None = None
    calls_per_sample: Integer | None = None
    warmup_calls: Integer | None = None
    # What `time_s` is, and the rates are computed from: "median" for runs, else what the tool says.
    statistic: str
    time_s: float | None = None
    median_s: float | None = None
    # The interval of the median, and its confidence.
    low_s: float | None = None
    high_s: float | None = None
    confidence: float | None = None
    min_s: float | None = None
    max_s: float | None = None
    mean_s: float | None = None
    p50_s: float | None = None
    p95_s: float | None = None
    p99_s: float | None = None
    algbw_Bps: float | None = None
    busbw_Bps: float | None = None
    # As the imported tool counts it.
    bandwidth_Bps: float | None = None
    messages_per_s: float | None = None
    # What NCCL says it used, several separated by commas; None: it does not say.
    algorithm: str | None = None
    protocol: str | None = None
    # Wrong elements; None: not verified, or not measured.
    wrong: Integer | None
    verified: bool
    # What ended the sampling; "missing" for a point that was not measured; None when the tool does not say.
    ended: str | None


class Group(Value, kw_only=True, frozen=True):
    """What the rows of one table share: who took part, and whether all of it was measured."""

    table: Integer
    devices: tuple[Device, ...]
    # What the tool printed of its own options: ("iters", "20").
    parameters: tuple[tuple[str, str], ...] = ()
    # Whether the tool's own end was seen and nothing planned is missing.
    complete: bool


class Export(Value, kw_only=True, frozen=True):
    """Everything an export may say."""

    run_id: str
    created: str
    busbw_version: str
    tag: str | None
    verdict: str | None
    # Codes of the findings the verdict rests on.
    because: tuple[str, ...]
    # The verdict in a sentence, and all findings; of an import there is no verdict.
    sentence: str | None = None
    findings: tuple[Finding, ...] = ()
    # What single points were judged to be, by the number of their row.
    judged: tuple[tuple[Integer, Verdict], ...] = ()
    groups: tuple[Group, ...]
    rows: tuple[PointRow, ...]


def numbered(items: Iterable[T], key: Callable[[T], Hashable]) -> list[tuple[T, int]]:
    """Return each item with how many of the same key came before it."""
    seen: Counter[Hashable] = Counter()
    found = []
    for item in items:
        found.append((item, seen[key(item)]))
        seen[key(item)] += 1
    return found


def is_wrong(row: PointRow) -> bool:
    """Whether the result was checked and wrong."""
    return row.wrong is not None and row.wrong > 0


def is_missing(row: PointRow) -> bool:
    """Whether the point was planned and not measured."""
    return row.ended == MISSING


def with_repeats(rows: Sequence[PointRow]) -> tuple[PointRow, ...]:
    """Return the rows with `repeat` counted."""
    return tuple(replace(row, repeat=before) if before else row for row, before in numbered(rows, identity))


def identity(row: PointRow) -> tuple[Hashable, ...]:
    """Return what two rows of the same point have in common."""
    return (
        row.backend,
        row.hosts,
        row.statistic,
        row.collective,
        row.size_bytes,
        row.dtype,
        row.op,
        row.root,
        row.in_place,
        row.ranks,
        row.mode,
        row.source,
        row.target,
        row.group,
    )
