"""Results as flat rows, one a point: the one form that every export is written from."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from busbw.base.value import Integer, Value
from busbw.model.finding import Finding, Verdict
from busbw.model.gates import PointRow, same_point
from busbw.model.imported import ListedDevice

T = TypeVar("T")
ROW_SCHEMA = 1


class RowGroup(Value, kw_only=True, frozen=True):
    """What the rows of one table share: who took part, and whether all of it was measured."""

    table: Integer
    devices: tuple[ListedDevice, ...]
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
    groups: tuple[RowGroup, ...]
    rows: tuple[PointRow, ...]


def numbered(items: Iterable[T], key: Callable[[T], Hashable]) -> list[tuple[T, int]]:
    """Return each item with how many of the same key came before it."""
    seen: Counter[Hashable] = Counter()
    found = []
    for item in items:
        found.append((item, seen[key(item)]))
        seen[key(item)] += 1
    return found


def with_repeats(rows: Sequence[PointRow]) -> tuple[PointRow, ...]:
    """Return the rows with `repeat` counted."""
    return tuple(replace(row, repeat=before) if before else row for row, before in numbered(rows, identity))


def identity(row: PointRow) -> tuple[Hashable, ...]:
    """Return what repetitions of the same point on the same hosts have in common."""
    return (row.hosts, *same_point(row))
