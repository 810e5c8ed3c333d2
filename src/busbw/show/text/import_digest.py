"""What the tables of an import come to, a line each."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from busbw.base.units import format_rate, format_size, format_time
from busbw.model.imported import Reading, Table, Unread

_MOST_SHOWN = 5
_LONGEST_NAME = 28


@dataclass(slots=True)
class Digest:
    """What the readings of one table come to, without keeping them."""

    what: Counter[str] = field(default_factory=Counter)
    smallest_bytes: int | None = None
    largest_bytes: int | None = None
    least_time_s: float | None = None
    best_Bps: float | None = None
    best_size_bytes: int | None = None

    def add(self, reading: Reading) -> None:
        """Take one reading. A wrong result has no rate worth showing."""
        if len(self.what) < _MOST_SHOWN or reading.what in self.what:
            self.what[reading.what] += 1
        size_bytes = reading.size_bytes
        if size_bytes is not None:
            self.smallest_bytes = size_bytes if self.smallest_bytes is None else min(size_bytes, self.smallest_bytes)
            self.largest_bytes = size_bytes if self.largest_bytes is None else max(size_bytes, self.largest_bytes)
        if reading.wrong:
            return
        # A row of nothing has a time too: that of a call that returns at once.
        time_s = reading.time_s if size_bytes != 0 else None
        if time_s is not None and (self.least_time_s is None or time_s < self.least_time_s):
            self.least_time_s = time_s
        rate_Bps = reading.busbw_Bps if reading.busbw_Bps is not None else reading.bandwidth_Bps
        if rate_Bps is not None and (self.best_Bps is None or rate_Bps > self.best_Bps):
            self.best_Bps, self.best_size_bytes = rate_Bps, size_bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """What of the unread lines is shown: how many for each reason, and the first of them."""

    reasons: Mapping[str, int]
    first: tuple[Unread, ...]


def table_cells(table: Table, digest: Digest, *, wide: bool) -> list[str]:
    """Return number, tool, what was measured, ranks, rows, sizes, the least time where `wide`, best, and checked."""
    what = ", ".join(name[:_LONGEST_NAME] for name in digest.what) or (table.program or "")[:_LONGEST_NAME]
    cells = [
        str(table.number),
        f"{table.tool} {table.tool_version}" if wide and table.tool_version else table.tool,
        what,
        _ranks(table),
        str(table.readings),
        _sizes(digest),
    ]
    if wide:
        cells.append(format_time(digest.least_time_s) if digest.least_time_s is not None else "")
    return [*cells, _best(digest), _checked(table)]


def _best(digest: Digest) -> str:
    """Return the highest rate, or the least time of a table that has no rates."""
    if digest.best_Bps is not None:
        return format_rate(digest.best_Bps)
    return format_time(digest.least_time_s) if digest.least_time_s is not None else ""


def _ranks(table: Table) -> str:
    declared, revealed = table.ranks, table.ranks_from_rates
    if declared is not None and revealed is not None and declared != revealed:
        return f"{declared}, by rates {revealed}"
    ranks = declared if declared is not None else revealed
    return str(ranks) if ranks is not None else "?"


def _sizes(digest: Digest) -> str:
    if digest.smallest_bytes is None or digest.largest_bytes is None:
        return ""
    smallest, largest = format_size(digest.smallest_bytes), format_size(digest.largest_bytes)
    return smallest if smallest == largest else f"{smallest} to {largest}"


def _checked(table: Table) -> str:
    if table.wrong:
        checked = f"{table.wrong} wrong"
    elif not table.readings:
        checked = ""
    else:
        checked = "no" if table.unchecked == table.readings else "yes" if table.unchecked == 0 else "in part"
    return checked if table.complete else f"{checked}, cut off".lstrip(", ")
