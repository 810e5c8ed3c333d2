"""An import as text for a terminal: its tables one line each, what was not read, what was found."""

from collections.abc import Mapping
from pathlib import Path

from rich.table import Table as Grid
from rich.text import Text

from busbw.model.imported import Imported
from busbw.show.plain import printable
from busbw.show.text.import_digest import Digest, Listing, table_cells
from busbw.show.text.terminal import console, say_finding
from busbw.show.weighing import by_weight

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
    withheld = sum(table.environment_withheld for table in imported.tables)
    if withheld:
        out.print(Text(f"{_counted(withheld, 'environment variable')} outside the allow-list withheld"))
    for finding in by_weight(imported.findings):
        say_finding(out, finding)
    out.print(Text(f"import: {printable(str(where))}", style="dim"), soft_wrap=True)


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
