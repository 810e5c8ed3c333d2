"""A list of runs and imports as text for a terminal."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from busbw.model.listing import Row
from busbw.report.plain import printable
from busbw.report.terminal import console

# With fewer columns host and tag are left to --json, and a row stays one line.
_WIDTH_FOR_ALL = 100
_LEAST_ROOM = 12
_WHOLE = ("run", "ranks", "points", "verdict")


def listing_text(rows: Sequence[Row]) -> None:
    """Print one line a run or import."""
    out = console()
    wide = out.width >= _WIDTH_FOR_ALL
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    cells = [_cells(row) for row in rows]
    for heading in _WHOLE:
        # A name that is cut off cannot be pasted.
        table.add_column(heading, no_wrap=True)
    taken = sum(max(len(heading), *(len(row[index]) for row in cells)) + 2 for index, heading in enumerate(_WHOLE))
    room = out.width - taken
    # The name says most of it where there is no room left.
    headings = ("collectives", "host", "tag") if wide else ("collectives",) if room >= _LEAST_ROOM else ()
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for whole, row in zip(cells, rows, strict=True):
        about = printable(_about(row))
        others = (about, row.host or "", row.tag or "") if wide else (about[:room],)
        cells_shown = (*whole, *others[: len(headings)])
        table.add_row(*(Text(printable(cell)) for cell in cells_shown))
    out.print(table)


def _cells(row: Row) -> tuple[str, ...]:
    """Return what stands under the headings that are never shortened."""
    if row.kind == "import":
        return row.run_id, "", str(row.measured), row.outcome
    ranks = str(row.ranks) if row.ranks is not None else "?"
    return row.run_id, ranks, f"{row.measured}/{row.planned}", row.outcome.replace("_", " ")


def _about(row: Row) -> str:
    if row.outcome == "unreadable":
        return row.sentence
    return ", ".join(row.collectives) + (f", {row.sentence}" if row.kind == "import" else "")
