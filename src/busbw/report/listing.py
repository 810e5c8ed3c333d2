"""A list of runs as text for a terminal."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from busbw.model.listing import Row
from busbw.report.plain import printable
from busbw.report.terminal import console


def listing_text(rows: Sequence[Row]) -> None:
    """Print one line a run."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("run", no_wrap=True)
    for heading in ("ranks", "points", "verdict"):
        table.add_column(heading)
    for heading in ("collectives", "host", "tag"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        cells = (
            row.run_id,
            row.ranks if row.ranks is not None else "?",
            f"{row.measured}/{row.planned}",
            row.outcome.replace("_", " "),
            row.sentence if row.outcome == "unreadable" else ", ".join(row.collectives),
            row.host or "",
            row.tag or "",
        )
        table.add_row(*(Text(printable(str(cell))) for cell in cells))
    console().print(table)
