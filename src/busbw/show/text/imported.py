"""An import as text for a terminal: its tables one line each, what was not read, what was found."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.table import Table as Grid
from rich.text import Text

from busbw.base.text import printable
from busbw.base.units import format_rate, format_size, format_time
from busbw.model.imported import Imported, Reading, Table, UnreadLine
from busbw.show.text.terminal import console, say_finding
from busbw.show.weighing import by_weight

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
    # The best rate as the tool printed it.
    best_printed: str | None = None

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
            self.best_Bps, self.best_size_bytes, self.best_printed = rate_Bps, size_bytes, reading.printed


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """What of the unread lines is shown: how many for each reason, and the first of them."""

    reasons: Mapping[str, int]
    first: tuple[UnreadLine, ...]


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
        return digest.best_printed or format_rate(digest.best_Bps)
    return format_time(digest.least_time_s) if digest.least_time_s is not None else ""


def _ranks(table: Table) -> str:
    declared, revealed = table.ranks, table.ranks_from_rates
    if declared is not None and revealed is not None and declared != revealed:
        return f"{declared}, by rates {revealed}"
    ranks = declared if declared is not None else revealed
    return f"{ranks}{', stated' if 'ranks' in dict(table.stated) else ''}" if ranks is not None else "?"


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


_MOST_TABLES = 40
# With fewer columns times and versions are left to --json.
_WIDTH_FOR_ALL = 100


def import_text(imported: Imported, digests: Mapping[int, Digest], unread: Listing, where: Path) -> None:
    """Print what an import found."""
    out = console()
    lines = sum(source.lines for source in imported.sources)
    out.print(
        Text(
            f"{_counted(len(imported.sources), 'source')}, {_counted(lines, 'line')}: "
            f"{_counted(imported.readings, 'reading')} in {_counted(len(imported.tables), 'table')}"
        )
    )
    if imported.tables:
        out.print()
        out.print(_grid(imported, digests, wide=out.width >= _WIDTH_FOR_ALL))
    if len(imported.tables) > _MOST_TABLES:
        out.print(Text(f"and {_counted(len(imported.tables) - _MOST_TABLES, 'more table')}"))
    out.print()
    out.print(
        Text(
            f"lines: {imported.reading_lines} with readings, {imported.known_lines} known without one, "
            f"{imported.unread} unread"
        ),
        soft_wrap=not out.is_terminal,
    )
    for why, number in sorted(unread.reasons.items(), key=lambda item: -item[1]):
        out.print(Text(printable(f"  {number}: {why}")), soft_wrap=True)
    for line in unread.first:
        place = f"{imported.sources[line.source].name}:{line.line}"
        shown = printable(f"  {place}: {line.text[:100]}")
        # On a terminal one row each: the whole lines are in unread.jsonl.
        out.print(Text(shown[: out.width] if out.is_terminal else shown, style="dim"), soft_wrap=True)
    for said in _stated(imported):
        out.print(Text(printable(said)), soft_wrap=not out.is_terminal)
    withheld = sum(table.environment_withheld for table in imported.tables)
    if withheld:
        out.print(Text(f"{_counted(withheld, 'environment variable')} outside the allow-list withheld"))
    for finding in by_weight(imported.findings):
        say_finding(out, finding)
    out.print(Text(f"import: {printable(str(where))}", style="dim"), soft_wrap=True)


def _stated(imported: Imported) -> Iterator[str]:
    """Yield what was stated, and for how many tables it was needed."""
    for name in ("collective", "ranks", "nodes", "platform"):
        value = getattr(imported.stated, name)
        if value is not None:
            used = sum(name in dict(table.stated) for table in imported.tables)
            yield f"stated: {name} {value}, for {used} of {_counted(len(imported.tables), 'table')}"


def _grid(imported: Imported, digests: Mapping[int, Digest], *, wide: bool) -> Grid:
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column("#", justify="right")
    grid.add_column("tool", overflow="fold")
    grid.add_column("measured", overflow="fold")
    grid.add_column("ranks", justify="right")
    grid.add_column("rows", justify="right")
    grid.add_column("sizes", overflow="fold")
    if wide:
        grid.add_column("least time", justify="right")
    grid.add_column("best", justify="right")
    grid.add_column("checked")
    for table in imported.tables[:_MOST_TABLES]:
        grid.add_row(
            *(Text(printable(cell)) for cell in table_cells(table, digests.get(table.number, Digest()), wide=wide))
        )
    return grid


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
